//! One line of the result.

use serde::Serialize;

/// What one contender does in one place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Row {
    /// `clear` or `copy`.
    pub(crate) op: &'static str,
    pub(crate) page_bytes: usize,
    pub(crate) order: &'static str,
    pub(crate) kernel: &'static str,
    /// `none` where nothing is touched.
    pub(crate) target: &'static str,
    pub(crate) touch_bytes: usize,
    pub(crate) load: &'static str,
    /// `cold`: forgotten by the caches; `hot`: just used.
    pub(crate) memory: &'static str,
    pub(crate) samples: usize,
    /// Medians.
    pub(crate) op_us: f64,
    pub(crate) touch_ns: f64,
    pub(crate) total_us: f64,
    /// A tenth of the samples is below.
    pub(crate) total_us_low: f64,
    /// A tenth of the samples is above.
    pub(crate) total_us_high: f64,
}

impl Row {
    /// Memory that the operation writes, per second.
    pub(crate) fn gigabytes_per_s(&self) -> f64 {
        self.page_bytes as f64 / self.op_us / 1e3
    }
}
