//! The time of an allocation, as a simulation of the recording gives it.

use std::path::Path;

use serde::Serialize;

use super::forecast::Forecast;

/// Simulates the recording at this path with this number of CPUs: under the policy with this name, and under
/// the forecast's settings or kernel. Returns `None` if it cannot be simulated; the advice is then printed
/// without these times.
pub type Simulate = fn(&Path, u32, &str, &Forecast) -> Option<Latency>;

/// Times of an allocation in virtual time, under the recorded settings and under the advised ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// The machine that was simulated.
    pub machine: &'static str,
    /// As recorded.
    pub now: Times,
    /// Under the advised settings.
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
