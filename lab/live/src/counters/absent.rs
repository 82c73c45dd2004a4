//! A build without the feature `perf` counts nothing.

use super::{CpuCounts, Cpus};

/// Counters that cannot exist.
#[derive(Debug)]
pub enum Counters {}

impl Counters {
    /// Returns the reason: the feature is missing.
    ///
    /// # Errors
    /// Always.
    pub fn open(_cpus: &Cpus) -> Result<Self, String> {
        Err("pageset was built without its feature `perf`; the default build has it".to_owned())
    }

    /// Never called.
    #[must_use]
    pub fn read(&mut self, _cpus: &Cpus) -> Vec<CpuCounts> {
        match *self {}
    }
}
