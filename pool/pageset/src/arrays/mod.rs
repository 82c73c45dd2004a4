//! The fast path's arrays: a small stack of blocks for each CPU and order class.
//!
//! The base counts the blocks in an array as allocated. Only one thread at a time changes an array, by a
//! restartable sequence (`rseq/`) or under the CPU's lock (`locked`). Each change ends with a single store of
//! the head word, so a concurrent reader sees a complete stack.

mod batch;
mod caps;
mod class;
mod entry;
mod locked;
mod set;
mod sync;

pub(crate) use batch::Batch;
pub(crate) use caps::{Caps, Share};
pub(crate) use class::{Class, StackAt};
pub(crate) use entry::{Entry, ZeroState};
pub(crate) use set::{ArraySet, CpuArrays};
