//! A build without the feature `perf` counts nothing.

use super::{CpuCounts, Cpus};

/// Counters that cannot exist.
#[derive(Debug)]
pub enum Counters {}

impl Counters {
    /// Returns the reason why nothing is counted: the feature `perf` is missing.
    ///
    /// # Errors
    /// The function always returns an error.
    pub fn open(_cpus: &Cpus) -> Result<Self, String> {
        Err("pageset was built without its feature `perf`; the default build has it".to_owned())
    }

    /// No code can call this method, because no value of this type exists.
    #[must_use]
    pub fn read(&mut self, _cpus: &Cpus) -> Vec<CpuCounts> {
        match *self {}
    }
}
