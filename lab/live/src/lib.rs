//! Observes the page allocator of a running Linux kernel: readings of `/proc`, rates, counted tracepoints.
//!
//! A [`Monitor`] takes a reading, compares the reading with the reading before, and returns a [`View`]. A
//! view holds plain values, and the caller prints these values. The files of this crate, in the order of a
//! number's way through them:
//!
//! - `reading`: a reading of `/proc/zoneinfo` and `/proc/vmstat`.
//! - `difference`: differences of counters and gauges.
//! - `flow`: bounds for the pages that moved between zones and page sets.
//! - `unchanged`: how long each page set has kept its count.
//! - `counters`: tracepoints, counted by the kernel on each CPU.
//! - `zone_lock`: waits for zone locks, by caller.
//! - `view`: all values of one interval. `monitor` makes a view in each interval.
//! - `verdict`: whether page sets take so much CPU time that a change may pay.
//! - `openmetrics`: a view for programs that collect metrics.
//!
//! Only `counters` and `zone_lock` need privileges. A view lists the missing data.
#![forbid(unsafe_code)]

mod counters;
mod difference;
mod flow;
mod monitor;
mod openmetrics;
mod reading;
mod unchanged;
mod verdict;
mod view;
mod zone_lock;

// Types of these crates appear in public signatures of this crate.
pub use {pageset_core, pageset_trace};

pub use counters::{Counters, CpuCounts, Tracepoint};
pub use flow::{Bounds, Flow};
pub use monitor::Monitor;
pub use openmetrics::openmetrics;
pub use reading::{Proc, ReadError, Reading};
pub use unchanged::Unchanged;
pub use verdict::{Answer, Share, Verdict, Why};
pub use view::{Counted, CpuRates, PagesetView, Totals, View, ZoneView};
pub use zone_lock::{CallerView, ZoneLockView};

/// Runs the example of the crate's README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
