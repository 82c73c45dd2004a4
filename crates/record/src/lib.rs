//! Records the page events of the running Linux kernel into a trace file.
//!
//! ```text
//! tracefs ─► instance ─► setup: clock, buffers, events ─► ring (one a CPU): pages ─► records ─► events
//!                                                           merge: one order, by time ─► writing ─► .pgtrace
//! /proc, /sys ─► machine, before and after ────────────────────────────────────────────────┘
//!                sampler, every 20 ms ─────────────────────────────────────────────────────┘
//! ```
//!
//! [`Session::prepare`] makes a private instance of the kernel's tracing and says what is missing if it cannot.
//! [`Session::run`] records. [`check`] tells what a recording would need. Nothing is printed here.
#![forbid(unsafe_code)]

mod check;
mod clock;
mod cpus;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod instance;
mod losses;
mod machine;
mod merge;
mod options;
mod probes;
mod reader;
mod ring;
mod sampler;
mod session;
mod setup;
mod tracefs;
mod writing;

pub use check::{Check, check};
pub use cpus::{CpuList, NoCpuList};
pub use error::RecordError;
pub use options::{Options, Timing};
pub use session::{Ending, Going, Recording, Session, Status};
