//! A build without the feature `perf` counts nothing.

/// No counters can be had.
pub(in super::super) enum Counters {}

impl Counters {
    /// Names the missing feature.
    pub(in super::super) fn of_this_thread() -> Result<Self, String> {
        Err("pageset was built without its feature `perf`; the default build has it".to_owned())
    }

    pub(in super::super) fn read(&self) -> Result<(u64, u64), String> {
        match *self {}
    }
}
