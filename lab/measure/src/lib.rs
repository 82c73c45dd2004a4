//! What this machine does: page faults on its threads and through its kernel, clearing and copying pages, what a visit to a
//! zone costs.
//!
//! | module | what it does |
//! |---|---|
//! | [`pft`] | the page fault test, through the fault engine and through the kernel |
//! | [`pageops`] | what clearing and copying pages costs |
//! | [`calibrate`] | which way of clearing and copying is the fastest |
//! | [`visit_cost`] | what a visit to a zone costs the running kernel |
//! | [`host`] | CPUs, memory, CPU time, settings that are changed and put back |
//!
//! Nothing here knows a recording or a simulation. Nothing prints.
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

// Their types are in signatures here.
pub use {pageset_core, pageset_fault, pageset_pageops, pageset_report, pageset_trace};

pub use anyhow::Error;

/// The crate's README, its example run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
