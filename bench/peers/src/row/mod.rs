//! The work.
//!
//! A job is what a child does in one process; it gives a value for each of its rows. `list` names them all:
//!
//! - `pair`: allocate and free at once;
//! - `bulk`: allocate many, free them in some order;
//! - `mix`: replace random pages among many that live;
//! - `latency`: the same, every operation timed;
//! - `handoff`: one thread allocates, another one frees;
//! - `touch`: allocate, write, free;
//! - `burst`: the same with a gibibyte, once and again;
//! - `resident`: what memory a burst leaves behind, and what comes after it costs;
//! - `huge`: how many huge blocks scattered pages occupy;
//! - `overhead`: memory besides the pages themselves;
//! - `client`: blocks of many sizes that are a steady part of all memory.

mod bulk;
mod burst;
mod client;
mod handoff;
mod huge;
mod latency;
mod list;
mod mix;
mod overhead;
mod pair;
mod resident;
mod touch;

pub(crate) use list::{JOBS, Job, RowInfo, run, selected};

/// Why a value is missing.
pub(crate) const EXHAUSTED: &str = "the target has a block";
