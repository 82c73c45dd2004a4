//! A page-frame allocator without a lock, for kernels and programs: CPUs reserve pageblocks, and what a call costs does not grow with memory.
//!
//! [`BlockAllocator`] hands out frames of zones, as `pageset-core`'s `PageAllocator` does, with the same requests,
//! configuration and errors. It does not follow Linux: it is what we would do instead. [`CpuArrays`] are the ordinary front.
//!
//! - Every misuse of a [`BlockAllocator`] is an error value: a double free, a wrong order, frames that are not in use. Only a second free
//!   of a block that has got another user meanwhile cannot be told from that user's own.
//! - **With [`CpuArrays`], a block that is freed twice may be handed out twice.** [They](CpuArrays#double-frees) say when that is found.
//! - Blocks in [`CpuArrays`] are in use to the allocator. Before a host reports that memory is short, each CPU drains its own.
//! - Ordinary requests leave a zone's minimum watermark to those that cannot wait. So [`Config::min_free_kbytes`](pageset_core::Config)
//!   has to be `Some(0)`, or a request [ignores watermarks](pageset_core::RequestTraits::NO_WATERMARKS), where every frame shall be had.
//! - Calls for parts of blocks may give up with [`Busy`](pageset_core::FreeError::Busy).
//!
//! Import by name: `pageset-core` has other types of the names `Tables`, `TableCounts` and `Zone`. The README explains the allocator, and
//! says what may race and which calls an interrupt handler may make. A walk through the files, from the bottom:
//!
//! - `row`: the frames of a row in one word, two bits each. One exchange takes a block or frees it, and checks its order on the way.
//! - `rows`: the rows of a pageblock, which any CPU may change at any time. It says which operations may race, and who loses.
//! - `state`: what a pageblock is for. `index`: sets of pageblocks, in which the next member is found in a few steps.
//! - `cpu_lists`: the pageblocks that a CPU reserves. `zone`: how much is free.
//! - `allocator`: the operations. `every_cpu`: the allocator below the arrays of all CPUs, for laboratories.
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
mod block_word;
mod cpu_lists;
#[cfg(feature = "alloc")]
mod every_cpu;
mod frame_allocator;
mod index;
#[cfg(feature = "line-counts")]
mod last_change;
mod row;
mod rows;
mod state;
mod zone;

pub use access::{Access, Alone, Shared};
#[cfg(feature = "line-counts")]
pub use allocator::CONTENDED_NS;
pub use allocator::{BlockAllocator, CpuArrays, TableCounts, TableLender, Tables, WholeUse, ZoneUse};
#[cfg(all(feature = "observed", not(any(loom, shuttle))))]
pub use atomic::{LineUse, observe_lines};
pub use bad_bits::BadBits;
pub use block_word::BlockWord;
pub use cpu_lists::{BlockCounters, CpuHome, CpuLists};
#[cfg(feature = "alloc")]
pub use every_cpu::EveryCpu;
pub use index::IndexWord;
pub use rows::Rows;
pub use state::BlockState;
pub use zone::Zone;

/// The crate's README, its example run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
