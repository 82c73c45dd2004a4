//! Replaces the counters of instructions and cycles in a build without the feature `perf`.

/// The counters of a build without the feature `perf`. No value of this type exists.
pub(in super::super) enum Counters {}

impl Counters {
    /// Always fails, with an error that names the missing feature.
    pub(in super::super) fn of_this_thread() -> Result<Self, String> {
        Err("pageset was built without its feature `perf`; the default build has it".to_owned())
    }

    pub(in super::super) fn read(&self) -> Result<(u64, u64), String> {
        match *self {}
    }
}
