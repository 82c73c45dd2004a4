//! A day of a machine, compressed: what memory looks like when builds, files, slabs, network buffers and services have come and
//! gone over it many times.
//!
//! Benchmarks begin with empty memory and end before it is mixed. Here the same memory is used again and again, so that it can
//! be seen where an allocator puts what cannot be moved. Nothing is timed: one thread drives an allocator directly, and time is a
//! number of steps.
//!
//! `parameters` is what happens on such a day, each value with its source. `day` makes a stream of acts of it, the same for each
//! allocator: `sources` are those who allocate, `files` what is cached of files, `slots` the blocks that live. `memory` puts the acts
//! to an allocator, and knows where everything lies; `census` counts that by units of 1 GiB; `compaction` moves pages.
//! `course` is one day on one allocator.

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
pub use day::{Act, Day};
pub use parameters::Parameters;
