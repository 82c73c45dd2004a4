//! The time that an allocation takes, from a simulation of the recording.

use std::path::Path;

use serde::Serialize;

use super::forecast::Forecast;

/// The type of a function that simulates a recording twice: under the recorded kernel's policy, and under the
/// settings or kernel of a forecast. The arguments are the recording's path, the number of CPUs, the name of
/// the recorded kernel's policy, and the forecast. The result is `None` if the recording cannot be simulated.
pub type Simulate = fn(&Path, u32, &str, &Forecast) -> Option<Latency>;

/// Times of an allocation in virtual time, under the recorded settings and kernel, and under the advised
/// settings or kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// The machine that was simulated.
    pub machine: &'static str,
    /// Times under the recorded settings and kernel.
    pub now: Times,
    /// Times under the advised settings or kernel.
    pub advised: Times,
}

/// Percentiles of the time of an allocation, in nanoseconds of virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Times {
    /// The 99th percentile.
    pub p99_ns: f64,
    /// The 99.9th percentile.
    pub p999_ns: f64,
}
