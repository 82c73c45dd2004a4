//! The fast path's arrays: per CPU and order class a small stack of blocks.
//!
//! From the base's view the blocks in an array are allocated. An array is changed by one CPU at a time: with a
//! restartable sequence (`rseq/`), or under that CPU's try-lock (`locked`). Both change it by the same single store of
//! its head word, so that whoever looks sees a whole stack.

mod batch;
mod caps;
mod class;
mod entry;
mod locked;
mod set;
mod sync;

pub(crate) use batch::Batch;
pub(crate) use caps::Caps;
pub(crate) use class::{Class, StackAt};
pub(crate) use entry::{Entry, ZeroState};
pub(crate) use set::{ArraySet, CpuArrays};
