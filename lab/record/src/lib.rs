//! Records the page events of the running Linux kernel into a trace file.
//!
//! ```text
//! tracefs ─► instance ─► setup: clock, buffers, events ─► ring (one per CPU): pages ─► records ─► events
//!                                                           merge: one order, by time ─► writing ─► .pgtrace
//! /proc, /sys ─► machine, before and after ────────────────────────────────────────────────┘
//!                sampler, every 20 ms ─────────────────────────────────────────────────────┘
//! roll_call: the recorder's threads in the trace     intrusion: writes of other programs to the instance
//! a second instance ─► watch ─► alarm: the condition that ends a flight recorder
//! ```
//!
//! [`Session::prepare`] makes a private tracing instance of the kernel, or returns an error about the missing
//! requirement. [`Session::run`] records. [`check`] says whether a recording is possible. This crate prints
//! nothing.
#![forbid(unsafe_code)]

mod alarm;
mod call_sites;
mod check;
mod clock;
mod condition;
mod cost;
mod counting;
mod cpus;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod instance;
mod intrusion;
mod lock_watch;
mod losses;
mod machine;
mod merge;
mod options;
mod probes;
mod reader;
mod ring;
mod roll_call;
mod sampler;
mod session;
mod setup;
mod task_watch;
mod tracefs;
mod watch;
mod writing;

// Signatures of this crate's public functions contain types of `pageset_trace`.
pub use pageset_trace;

pub use check::{Check, check};
pub use condition::{Condition, Met, NoCondition};
pub use cost::{busy, measure};
pub use counting::count;
pub use cpus::{CpuList, NoCpuList};
pub use error::RecordError;
pub use lock_watch::{LockWatch, WaitTotals, Waited};
pub use options::{Options, Timing};
pub use session::{Ending, Going, Recording, Session, Status};

/// Runs the example of the crate's README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
