//! Linux's page-frame allocator as a library: zones, buddy lists, per-CPU page sets, watermarks, NUMA, and the policies
//! of kernel versions as values.
//!
//! Frames are numbers. Nothing here touches page contents, so the crate is safe Rust throughout, and the same code runs
//! in a kernel, in a user-space pool, in a simulator of a machine nobody has, and in a replay of a recording.
//!
//! The world it runs in supplies locks and an event sink through [`Platform`]; memory for metadata comes from the
//! caller ([`Tables`]): 9 bytes per frame and 1 byte per pageblock.
//!
//! Modules in the order in which an allocation meets them: [`allocator`](PageAllocator) (which zone), `pcp` (this CPU's
//! page set), `zone` (the lock, watermarks), `buddy` (free lists), `frame` (metadata); beside them `policy` (what a
//! kernel version decides), `numa` (zonelists), `stats` (counters), `check` (`validate`).
//!
//! Built without `std` for `x86_64-unknown-none`, `riscv64gc-unknown-none-elf`, `riscv32imac-unknown-none-elf` and
//! `thumbv7em-none-eabi` (`cargo xtask ci`). It needs atomics of a word with compare-and-exchange, so cores without those
//! (ARMv6-M, RISC-V without the A extension) are out; on 32-bit machines, counts of events that are kept beside the
//! locks begin anew after 2^32, as the kernel's do.
//!
//! "Spec §n" in comments is the behavioural specification this crate was written from; it states facts about Linux
//! kernels and the public mailing-list texts they come from.
#![no_std]
#![forbid(unsafe_code)]
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
pub mod pcp;
mod platform;
pub mod policy;
mod request;
mod stats;
mod storage;
#[cfg(test)]
mod vectors;
mod zone;

pub use allocator::{
    BelowHighMark, BlockInfo, BlockUse, CacheSlice, Config, Cpu, FreeTraits, PageAllocator, PagesetInfo,
    Reclaim, TableCounts, Tables, TickOutcome, ZoneConfig, ZoneInfo, spread_tick_offset,
};
pub use check::{FrameCensus, Violation};
pub use error::{AllocError, ConfigError, FreeError, RegionFault};
pub use event::{DrainReason, Event, EventSink, FoundAt};
pub use frame::{
    FrameCounts, FrameIndex, FrameLinks, FrameState, FrameTables, PageblockOwner, PageblockType,
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

/// The crate's README, its example run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
