//! A day of a machine, compressed: the state of memory after many builds, files, slabs, network buffers and
//! services.
//!
//! Benchmarks begin with empty memory and end before it is mixed. Here the same memory is used again and
//! again, which shows where an allocator puts pages that cannot be moved. There are no times: one thread
//! drives an allocator directly, and time is a number of steps.
//!
//! `parameters` describes the day, each value with its source. `day` makes a stream of events of it, the same
//! for each allocator. Its parts are `sources` (processes and other users of memory), `files` (the page
//! cache) and `slots` (live blocks). `memory` plays the acts on an allocator and knows the place of
//! everything. `census` counts by units of 1 GiB, and `compaction` moves pages. `course` is one day on one
//! allocator.

mod census;
mod compaction;
mod course;
mod day;
mod files;
mod memory;
mod parameters;
mod random;
mod slots;
mod sources;

pub use census::{Census, UNIT_FRAMES};
pub use compaction::Compaction;
pub use course::{Course, Moment, Work, play, summary};
pub use day::{Day, Event};
pub use parameters::Parameters;
