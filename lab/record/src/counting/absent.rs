//! Replaces the counters in a build without the feature `perf`, which cannot count.

use super::{Seen, Slice};
use crate::cpus::CpuList;
use crate::error::RecordError;

/// Counters that [`Counters::open`] never makes.
#[derive(Debug)]
pub(crate) struct Counters(());

impl Counters {
    pub(crate) fn open(_cpus: &CpuList) -> Result<Self, RecordError> {
        Err(RecordError::Refused {
            problem: "pageset was built without its feature `perf`, which counts".to_owned(),
            remedy: "the default build has it".to_owned(),
        })
    }

    pub(crate) const fn has(&self, _tracepoint: usize) -> bool {
        false
    }

    pub(crate) const fn switch(&mut self, _tracepoint: usize, _is_on: bool) -> Result<(), RecordError> {
        Ok(())
    }

    pub(crate) const fn attach(&mut self, _tracepoint: usize) -> Result<(), RecordError> {
        Ok(())
    }

    pub(crate) const fn detach(&mut self, _tracepoint: usize) {}

    pub(crate) fn take(&mut self, _tracepoint: usize) -> Slice {
        Slice::default()
    }

    pub(crate) const fn can_sample(&self) -> bool {
        false
    }

    pub(crate) const fn switch_samples(&mut self, _is_on: bool) -> Result<(), RecordError> {
        Ok(())
    }

    pub(crate) fn take_samples(&mut self) -> Seen {
        Seen::default()
    }

    pub(crate) const fn has_chains(&self) -> bool {
        false
    }

    pub(crate) fn site_name(&self, _site: u32) -> String {
        String::new()
    }
}
