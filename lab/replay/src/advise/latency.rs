//! The time that an allocation takes, from a simulation of the recording.

use std::path::Path;

use serde::Serialize;

use super::forecast::Forecast;

/// The type of a function that simulates a recording twice: under the policy with this name, and under the
/// settings or kernel of a forecast. The first two arguments are the recording's path and the number of CPUs.
/// The result is `None` if the recording cannot be simulated; the advice is then printed without these times.
pub type Simulate = fn(&Path, u32, &str, &Forecast) -> Option<Latency>;

/// Times of an allocation in virtual time, under the recorded settings and under the advised settings.
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
    /// 99 %.
    pub p99_ns: f64,
    /// 99.9 %.
    pub p999_ns: f64,
}
