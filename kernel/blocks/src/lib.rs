//! A page-frame allocator without a lock, for kernels and programs. Each CPU reserves a pageblock and takes
//! frames from it, so two CPUs seldom change the same word. The usual cost of a call does not grow with
//! memory.
//!
//! [`BlockAllocator`] hands out frames of zones. It takes the same requests and configuration as
//! `pageset-core`'s `PageAllocator`, and returns the same errors. It does not follow Linux. Most programs
//! use it through [`CpuArrays`].
//!
//! - A [`BlockAllocator`] returns an error for each misuse, such as a double free, a wrong order, or a free
//!   of frames that are not in use. There is one exception: a second free of a block that has a new user
//!   succeeds.
//! - **With [`CpuArrays`], a block that is freed twice may be handed out twice.** [Its
//!   documentation](CpuArrays#double-frees) says when a double free is found.
//! - Blocks in [`CpuArrays`] count as in use. So before your kernel reports that memory is short, it must
//!   make each CPU drain its arrays.
//! - Ordinary requests leave a zone's minimum watermark to requests that cannot wait. To hand out every
//!   frame, set [`Config::min_free_kbytes`](pageset_core::Config) to `Some(0)`, or make requests that [ignore
//!   watermarks](pageset_core::RequestTraits::NO_WATERMARKS).
//! - Calls for parts of blocks may give up with [`Busy`](pageset_core::FreeError::Busy).
//!
//! Do not import both crates with `*`: `pageset-core` has other types called `Tables`, `TableCounts` and
//! `Zone`. The README explains the allocator, its words (such as *whole*, *stock*, *settle*, *withheld*), its
//! races, and the calls that an interrupt handler may make. The files, from the bottom:
//!
//! - `ids`: places of pageblocks and frames in the tables.
//! - `row`: the frames of a row in one word, two bits each. One exchange takes or frees a block and checks
//!   its order.
//! - `rows`: the rows of a pageblock, which any CPU may change at any time. Its first comment lists the
//!   races, and the operation that loses each race.
//! - `state`: the use of a pageblock, in one word. `index`: sets of pageblocks. A search of a set reads a few
//!   words, however large memory is.
//! - `cpu_share`: the pageblocks that a CPU reserves. `zone`: the pageblocks of a zone, its counts of free
//!   frames, and its watermarks.
//! - `allocator`: the operations. `every_cpu`: an allocator and the arrays of all CPUs, for a simulation on
//!   one thread.
#![no_std]
#![cfg_attr(not(all(loom, test)), forbid(unsafe_code))]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(test, doctest, loom, feature = "observed"))]
extern crate std;

mod access;
mod activity;
mod allocator;
mod atomic;
mod bad_bits;
mod cpu_share;
#[cfg(feature = "alloc")]
mod every_cpu;
mod frame_allocator;
mod ids;
mod index;
#[cfg(feature = "line-counts")]
mod last_change;
mod row;
mod row_blocks;
mod rows;
mod state;
mod zone;

pub use access::{Access, Alone, Shared};
#[cfg(feature = "line-counts")]
pub use allocator::CONTENDED_NS;
pub use allocator::{
    BlockAllocator, CpuArrays, TableCounts, TableLender, TableMemory, Tables, WholeUse, ZoneUse,
};
#[cfg(all(feature = "observed", not(any(loom, shuttle))))]
pub use atomic::{LineUse, observe_lines};
pub use cpu_share::BlockCounters;
#[cfg(feature = "alloc")]
pub use every_cpu::EveryCpu;
pub use row_blocks::RowBlocks;
pub use rows::Rows;

/// The crate's README, its example run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
