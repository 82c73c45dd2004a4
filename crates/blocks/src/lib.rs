//! The successor of `pageset-blocks` in the making: a page-frame allocator without a lock, in which no operation's cost grows with memory.
//!
//! It has the same interface, [`BlockAllocator`], and passes the same model. Nothing uses it yet: the README says what is measured and
//! what is missing. A walk through it, from the bottom:
//!
//! - `row`: the frames of a row in one word, two bits each. One exchange takes a block or frees it, and checks its order on the way.
//! - `rows`: the rows of a pageblock, which any CPU may change at any time. It says which operations may race, and who loses.
//! - `state`: what a pageblock is for. `index`: sets of pageblocks, in which the next member is found in a few steps.
//! - `cpu_lists`: the pageblocks that a CPU reserves. `zone`: how much is free.
//! - `allocator`: the operations. A CPU reserves a pageblock, takes its frames, and reserves the next one: of those in part use the
//!   fullest that has what is wanted, or else a whole one. Pageblocks that no CPU reserves stand in a set by type and by the order of
//!   their largest free block. A free looks at that only if it may change the set.
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
