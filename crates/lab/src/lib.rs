//! The laboratory: what the command `pageset` computes, as plain functions over plain values.
//!
//! | module | what it does |
//! |---|---|
//! | [`advise`] | what to do about a machine, from a recording of its load |
//! | [`fleet`] | many recordings of one load: which files they are, and what they say together |
//! | [`dossier`] | everything that a recording shows, over time and per CPU, for a report |
//! | [`recordings`] | a recorded load under other kernels and settings, and forecasts against what happened |
//! | [`export`] | a recording in the formats of other programs |
//! | [`simulate`] | a workload on a simulated machine, under one policy |
//! | [`sweep`] | many simulations from one plan, and the file that keeps their rows |
//! | [`reproduce`] | the published studies, with our values beside the printed ones |
//! | [`pft`] | the page fault test: on threads, on the kernel, on a simulated machine |
//! | [`pageops`] | what clearing and copying pages costs on this machine |
//! | [`calibrate`] | what this machine costs, as a file that simulates it |
//! | [`visit_cost`] | what a visit to a zone costs this machine's kernel |
//! | [`who`] | what each process did, and how much was the command's |
//! | [`host`] | this machine: CPUs, memory, CPU time, settings that are changed and put back |
//!
//! A function is given a spec and returns a result; both can be written as JSON. Long work says how far it is to a
//! [`Progress`], which may end it. Nothing here prints, and nothing ends the process.
//!
//! ```
//! use pageset_lab::simulate::{RunSpec, simulate};
//!
//! let spec = RunSpec { duration_ms: Some(5), ..RunSpec::new("epyc-2", "page_fault1", "linux-6.12") };
//! let result = simulate(&spec)?;
//! assert!(result.score_per_s > 0.0);
//! # Ok::<_, pageset_lab::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod advise;
pub mod calibrate;
pub mod dossier;
pub mod export;
pub mod file;
pub mod fleet;
#[doc(hidden)]
pub mod fuzzing;
pub mod host;
mod jobs;
pub mod pageops;
pub mod pft;
mod progress;
pub mod recordings;
pub mod reproduce;
pub mod simulate;
pub mod sites;
pub mod sweep;
pub mod visit_cost;
pub mod who;

// Their types are in signatures here.
pub use {
    pageset_core, pageset_fault, pageset_pageops, pageset_report, pageset_sim, pageset_trace,
    pageset_workload,
};

pub use anyhow::Error;
pub use jobs::jobs_of_this_machine;
pub use progress::{Cancelled, Progress};

/// The crate's README, its example run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
