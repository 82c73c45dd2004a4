//! Runs workloads that allocate pages: on simulated machines, on threads of this machine, and directly on an
//! allocator. Sweeps of many runs and published studies are in the crate `pageset-reproduce`.
//!
//! | module | what it does |
//! |---|---|
//! | [`load`] | the benchmarks; each runs on any [`Target`]: threads, virtual CPUs, an allocator |
//! | [`simulate`] | runs a workload on a simulated machine, under one policy |
//! | [`key`] | hashes all that decides the result of a run |
//! | [`ageing`] | simulates how a day of work mixes memory, on whole allocators |
//! | [`contest`] | repeats a recording on whole allocators, Linux's and our own |
//! | [`pft`] | the page fault test: on threads, on the kernel, on a simulated machine |
//! | [`huge_copy`] | copies huge pages: on this machine, and on models of caches |
//! | [`machine`] | measures the costs of operations on this machine, and writes a machine file for simulations |
//! | [`latency`] | simulates how long the allocations of a recording take |
//! | [`jobs`] | does pieces of work side by side, and reports their progress |
//! | [`run_on_threads`] | runs a workload on threads of this machine |
//!
//! Most functions take a description of the work (a *spec*) and return a result. Specs and results can be
//! written as JSON. A function that takes long reports to a [`Progress`](pageset_report::Progress), and the
//! `Progress` can stop the function. No function of this crate prints or ends the process.
//!
//! ```
//! use pageset_study::simulate::{RunSpec, simulate};
//!
//! let spec = RunSpec { duration_ms: Some(5), ..RunSpec::new("epyc-2", "page_fault1", "linux-6.12") };
//! let result = simulate(&spec)?;
//! assert!(result.score_per_s > 0.0);
//! # Ok::<_, pageset_study::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod ageing;
pub mod contest;
mod fnv;
pub mod huge_copy;
pub mod jobs;
pub mod key;
pub mod latency;
pub mod load;
mod lru;
pub mod machine;
pub mod pft;
mod random_time;
pub mod simulate;
mod slab;
mod target;
mod threads;

// Public signatures of this crate use types of the following crates.
pub use {
    pageset_core, pageset_fault, pageset_measure, pageset_pageops, pageset_replay, pageset_report,
    pageset_sim, pageset_trace,
};

pub use anyhow::Error;
pub use jobs::jobs_of_this_machine;
pub use slab::Object;
pub use target::{Access, Block, ChannelId, Fill, Hold, LockId, Message, Received, Target, locked};
pub use threads::{ThreadError, ThreadOptions, ThreadOutcome, run_on_threads};

/// The crate's README. Doc tests run its example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
