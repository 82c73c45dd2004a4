//! Measures this machine: page faults through the fault engine and through the kernel, the clearing and
//! copying of pages, and the cost of a zone visit.
//!
//! | module | measures |
//! |---|---|
//! | [`pft`] | the page fault test, through the fault engine and through the kernel |
//! | [`pageops`] | clearing and copying pages |
//! | [`calibrate`] | which way of clearing and copying is the fastest |
//! | [`visit_cost`] | the running kernel's cost of a zone visit |
//! | [`host`] | CPUs, memory, CPU time, settings that are changed and put back |
//!
//! This crate knows neither recordings nor simulations, and prints nothing.
//!
//! ```
//! println!("{}", pageset_measure::host::line());
//! ```
#![forbid(unsafe_code)]

pub mod calibrate;
pub mod host;
pub mod pageops;
pub mod pft;
pub mod visit_cost;

// Types of these crates appear in public signatures of this crate.
pub use {pageset_core, pageset_fault, pageset_pageops, pageset_report, pageset_trace};

pub use anyhow::Error;

/// Runs the example of the crate's README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
