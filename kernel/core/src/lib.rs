//! Linux's page-frame allocator as a library: zones, buddy lists, per-CPU page sets, watermarks and NUMA. A
//! policy is a value that describes the decisions of one kernel version.
//!
//! Frames are numbers. The crate never touches the contents of pages, so it needs no unsafe code. The same
//! allocator runs in a kernel, in a simulator of a larger machine, and in a replay of a recording.
//!
//! The host supplies locks and an event sink through [`Platform`]. The caller provides memory for the
//! metadata of frames ([`Tables`]): 9 bytes per frame and 1 byte per pageblock.
//!
//! An allocation uses the modules in this order: [`allocator`](PageAllocator) (chooses a zone), `pcp` (this
//! CPU's page set), `zone` (lock, watermarks), `buddy` (free lists), `frame` (metadata). Other modules are,
//! for example, `policy` (a kernel version's decisions), `numa` (zonelists), `stats` (counters) and `check`
//! (`validate`).
//!
//! `cargo xtask ci full` builds the crate without `std` for `x86_64-unknown-none`,
//! `riscv64gc-unknown-none-elf`, `riscv32imac-unknown-none-elf` and `thumbv7em-none-eabi`. The processor must
//! have word-sized atomics with compare-and-exchange, which excludes ARMv6-M and RISC-V without the A
//! extension. On 32-bit machines, counts of events that no lock protects wrap around after 2^32, as the
//! kernel's counts do.
//!
//! "Spec §n" in comments refers to the behavioural specification that this crate was written from. The
//! specification states facts about Linux kernels. The specification also names the public mailing-list posts
//! behind each fact. "The 2016 series" is *high-order per-cpu page allocator* (version 5), and "the 2023
//! series" is *PCP high auto-tuning*. A comment names a patch of a series by the patch's number.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(feature = "lab"), expect(unreachable_pub, reason = "`pcp` is public with `lab`"))]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(test, doctest))]
extern crate std;

mod allocator;
mod bad_page;
mod buddy;
mod check;
mod count;
mod error;
mod event;
mod frame;
mod frame_allocator;
mod ids;
mod numa;
#[cfg(feature = "lab")]
pub mod pcp;
#[cfg(not(feature = "lab"))]
mod pcp;
mod platform;
pub mod policy;
mod request;
mod stats;
mod storage;
#[cfg(test)]
mod vectors;
mod zone;

pub use allocator::{
    BelowHighMark, BlockInfo, BlockUse, CacheSlice, Config, Cpu, CpuMemory, FreeTraits, PageAllocator,
    PagesetInfo, Reclaim, TableCounts, Tables, TickOutcome, ZoneConfig, ZoneInfo, ZoneMemory,
    spread_tick_offset,
};
pub use check::{FrameCensus, Violation};
pub use error::{AllocError, ConfigError, FreeError, RegionFault};
pub use event::{DrainReason, Event, EventSink, FoundAt};
pub use frame::{
    FrameCounts, FrameIndex, FrameLinks, FrameMemory, FrameState, FrameTables, PageblockOwner, PageblockType,
};
pub use frame_allocator::{FrameAllocator, FrameUsage};
pub use ids::*;
pub use lock_api;
pub use pcp::{ListScheme, Pageset};
pub use platform::Platform;
pub use policy::{POLICIES, Policy};
pub use request::{NodeChoice, Request, RequestTraits};
pub use stats::Counters;
pub use storage::Storage;
pub use zone::{Watermark, WatermarkInputs, WatermarkSettings, Watermarks, Zone, default_min_free_kbytes};

/// The crate's README. Doc tests run its example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
