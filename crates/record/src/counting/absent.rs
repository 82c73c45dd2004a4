//! A build without the feature `perf` counts nothing.

use super::Slice;
use crate::cpus::CpuList;
use crate::error::RecordError;

/// No counters can be had.
#[derive(Debug)]
pub(crate) enum Counters {}

impl Counters {
    pub(crate) fn open(_cpus: &CpuList) -> Result<Self, RecordError> {
        Err(RecordError::Refused {
            problem: "pageset was built without its feature `perf`, which counts".to_owned(),
            remedy: "the default build has it".to_owned(),
        })
    }

    pub(crate) fn has(&self, _tracepoint: usize) -> bool {
        match *self {}
    }

    pub(crate) fn switch(&mut self, _tracepoint: usize, _is_on: bool) -> Result<(), RecordError> {
        match *self {}
    }

    pub(crate) fn take(&mut self, _tracepoint: usize) -> Slice {
        match *self {}
    }

    pub(crate) fn can_sample(&self) -> bool {
        match *self {}
    }

    pub(crate) fn switch_samples(&mut self, _is_on: bool) -> Result<(), RecordError> {
        match *self {}
    }

    pub(crate) fn take_samples(&mut self) -> Slice {
        match *self {}
    }
}
