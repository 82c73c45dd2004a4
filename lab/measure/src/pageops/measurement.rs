//! Defines one row of the result.

use serde::Serialize;

/// The result of one operation in one way, with one target, touch and load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// `clear` or `copy`.
    pub op: &'static str,
    /// Size of the page.
    pub page_bytes: usize,
    /// Order of the visits to base pages.
    pub order: &'static str,
    /// Name of the instructions, or `libc`.
    pub kernel: &'static str,
    /// The place of the touch, or `none` if nothing is touched.
    pub target: &'static str,
    /// Number of bytes that the touch reads around the target after the operation.
    pub touch_bytes: usize,
    /// The load of the other CPUs.
    pub load: &'static str,
    /// `cold` if the memory was no longer in the caches, and `hot` if the memory was just used.
    pub memory: &'static str,
    /// Number of operations that were timed.
    pub samples: usize,
    /// Median time of the operation.
    pub op_us: f64,
    /// Median time of the touch.
    pub touch_ns: f64,
    /// Median time of operation and touch together.
    pub total_us: f64,
    /// One tenth of the samples took less than this time.
    pub total_us_low: f64,
    /// One tenth of the samples took more than this time.
    pub total_us_high: f64,
}

impl Measurement {
    /// Gigabytes that the operation writes per second.
    pub fn gigabytes_per_s(&self) -> f64 {
        self.page_bytes as f64 / self.op_us / 1e3
    }
}
