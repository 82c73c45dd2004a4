//! Records the page events of the running Linux kernel into a trace file.
//!
//! ```text
//! tracefs ─► instance ─► setup: clock, buffers, events ─► ring (one a CPU): pages ─► records ─► events
//!                                                           merge: one order, by time ─► writing ─► .pgtrace
//! /proc, /sys ─► machine, before and after ────────────────────────────────────────────────┘
//!                sampler, every 20 ms ─────────────────────────────────────────────────────┘
//! roll_call: which threads of the trace are the recorder's        intrusion: what other programs write into the instance
//! a second instance ─► watch ─► alarm: the events of one condition, which ends a flight recorder
//! ```
//!
//! [`Session::prepare`] makes a private instance of the kernel's tracing and says what is missing if it cannot.
//! [`Session::run`] records. [`check`] tells what a recording would need. Nothing is printed here.
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

// Its types are in signatures here.
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

/// The crate's README, its example run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
