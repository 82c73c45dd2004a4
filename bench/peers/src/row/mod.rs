//! The work.
//!
//! A job is the work of one child process. Each job returns a value for each of its rows. `list` has all
//! jobs:
//!
//! - `pair`: allocate and free at once.
//! - `bulk`: allocate many, free them in some order.
//! - `mix`: replace random pages among many live ones.
//! - `latency`: replace random pages as in `mix`, and time every operation.
//! - `handoff`: one thread allocates, another frees.
//! - `touch`: allocate, write, free.
//! - `burst`: allocate and write a gibibyte, free it, and do so once more.
//! - `resident`: memory that stays after a burst, and the cost of the next allocations.
//! - `huge`: huge blocks that scattered pages occupy.
//! - `overhead`: memory besides the pages themselves.
//! - `page_cache`: a cache of pages, half of whose operations write.
//! - `client`: blocks of many sizes that use a steady part of all memory.
//! - `uring`: blocks as the buffers of a ring that reads or writes a file.

mod bulk;
mod burst;
mod client;
mod handoff;
mod huge;
mod latency;
mod list;
mod mix;
mod overhead;
mod page_cache;
mod pair;
mod resident;
mod touch;
mod uring;

pub(crate) use list::{JOBS, Job, RowInfo, run, selected};

/// The beginning of the reason if the system refuses what a row needs.
pub(crate) const NOT_HERE: &str = "not to be had here";

/// The panic of a row when a target has no block.
pub(crate) const EXHAUSTED: &str = "the target has a block";
