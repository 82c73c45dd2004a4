//! What the page allocator of a running Linux kernel does: readings of `/proc`, rates, counted tracepoints.
//!
//! A [`Monitor`] reads, compares with the reading before, and gives a [`View`]: plain values, which somebody else
//! prints. In the order in which a number comes about:
//!
//! - `reading`: one look at `/proc/zoneinfo` and `/proc/vmstat`.
//! - `difference`: how far a counter has come, and how far a gauge has moved.
//! - `flow`: between which bounds the pages lie that moved between zones and page sets.
//! - `unchanged`: how long page sets have held what they hold.
//! - `counters`: tracepoints, counted by the kernel for each CPU.
//! - `zone_lock`: how long zone locks are waited for, and by whom.
//! - `view`: all of it together; `monitor`: once for each interval.
//! - `verdict`: whether page sets may take CPU time that is worth a change.
//! - `openmetrics`: a view for programs that collect metrics.
//!
//! No privileges are needed, except for the counters and the waits; a view says what it has not.
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

// Their types are in signatures here.
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

/// The crate's README, its example run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
