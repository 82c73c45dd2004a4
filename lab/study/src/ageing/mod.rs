//! Simulates the memory of a machine over a day. Builds, files, slabs, network buffers and services use the
//! same memory.
//!
//! During a simulated day, programs free most memory and allocate it again many times. So a day shows where
//! an allocator puts pages that cannot be moved. Benchmarks do not show where these pages lie, because
//! benchmarks begin with empty memory and end early. The simulation does not model time: one thread calls an
//! allocator directly, and a day is a number of steps.
//!
//! `parameters` describes the day, each value with its source. `day` makes a stream of events from the
//! parameters. Every allocator gets the same stream of events. `day` uses `sources` (processes and other
//! users of memory), `files` (the page cache) and `slots` (live blocks). `memory` sends the events to an
//! allocator and records where each block lies. `census` counts the pages in use in each unit of 1 GiB, and
//! `compaction` moves pages. `course` runs one day on one allocator.

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
