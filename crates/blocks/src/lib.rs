//! A page-frame allocator without a lock, for kernels and programs: CPUs own pageblocks, and a free sets a bit.
//!
//! [`BlockAllocator`] hands out frames of zones, as `pageset-core`'s `PageAllocator` does, with the same requests,
//! configuration and errors. It does not follow Linux: it is what we would do instead.
//!
//! - A CPU takes whole pageblocks and splits them, each into blocks of one type, and of one order if it needs many of that. An
//!   allocation clears a bit in the CPU's pageblock, and a free from any CPU sets it: one atomic exchange each, and no lock. No call waits
//!   for another CPU. Calls for parts of blocks may give up with [`Busy`](pageset_core::FreeError::Busy).
//! - A CPU finds what others freed to its pageblocks when it needs blocks. Any CPU may take over the pageblocks of a CPU that does nothing.
//! - A pageblock whose frames are all free is whole again: one bit of a map.
//! - Every misuse of a [`BlockAllocator`] as it is built by default is an error value: a double free, a wrong order, frames that are not in
//!   use. Only a second free of a block that has got another user meanwhile cannot be told from that user's own.
//! - Two choices give up a part of that for speed. **With [`CpuArrays`], a block that is freed twice may be handed out twice**, also if one
//!   CPU does both. The mistake is [counted](BlockCounters::double_frees) when an array gives back a block that is free already, and never
//!   found if both copies stay in use. Where debug assertions are on, [it is an error](CpuArrays#double-frees) on the CPU that has the block
//!   in its arrays. With [`RemoteFrees::Kept`], a block that **two CPUs** free may be handed out twice likewise.
//! - Blocks in [`CpuArrays`] are in use to the allocator. Before a host reports that memory is short, each CPU drains its own.
//! - Ordinary requests leave a zone's minimum watermark to those that cannot wait. So [`Config::min_free_kbytes`](pageset_core::Config)
//!   has to be `Some(0)`, or a request [ignores watermarks](pageset_core::RequestTraits::NO_WATERMARKS), where every frame shall be had.
//! - A pageblock with a [hole](BlockAllocator#holes) has single frames only.
//!
//! Import by name: `pageset-core` has other types of the names `Tables`, `TableCounts` and `Zone`. The README says which calls an interrupt
//! handler may make.
//!
//! Modules from the bottom: `atomic`; `free_bits`, `tail_bits`, `bad_bits` (frames of a pageblock), `block_word` (blocks that
//! lie together), `state` (what a pageblock is for), `stack` (pageblocks with free frames), `whole_map` (pageblocks that are
//! whole); `kept` (what a CPU freed for others), `collected` (the same, of one
//! pageblock in use), `activity`, `budget`, `surplus` (what a CPU counted), `outlook` (what it saw), `cpu_lists` (what a CPU has of a zone), `zone`; `allocator` (the operations).
#![no_std]
#![cfg_attr(not(all(loom, test)), forbid(unsafe_code))]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(test, doctest, loom, feature = "observed"))]
extern crate std;

mod activity;
mod allocator;
mod atomic;
mod bad_bits;
mod block_word;
mod budget;
mod collected;
mod cpu_lists;
mod frame_allocator;
mod free_bits;
mod kept;
#[cfg(feature = "line-counts")]
mod last_change;
#[cfg(all(loom, test))]
mod orderings;
mod outlook;
mod spares;
mod stack;
mod state;
mod surplus;
mod tail_bits;
mod whole_map;
mod zone;

#[cfg(feature = "line-counts")]
pub use allocator::CONTENDED_NS;
pub use allocator::{
    BlockAllocator, CpuArrays, Part, RemoteFrees, TableCounts, TableLender, Tables, WholeUse, ZoneUse,
};
#[cfg(all(feature = "observed", not(any(loom, shuttle))))]
pub use atomic::{LineUse, observe_lines};
pub use bad_bits::BadBits;
pub use block_word::BlockWord;
pub use cpu_lists::{BlockCounters, CpuHome, CpuLists};
pub use free_bits::FreeBits;
pub use state::BlockState;
pub use tail_bits::TailBits;
pub use whole_map::WholeWord;
pub use zone::Zone;

/// The crate's README, its example run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
