//! Replaces the sequences on a platform that has none. Every operation fails, so the pool uses the arrays
//! under their locks.

use super::Hot;
use crate::arrays::{Batch, Entry, StackAt};

/// The place of a thread's area for sequences. A platform without sequences has no areas, so no `Area`
/// exists.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Area {}

pub(crate) fn area() -> Option<Area> {
    None
}

pub(crate) fn announce(_: &Hot, area: Area) {
    match area {}
}

pub(super) fn forget(_: &Hot) {}

pub(crate) fn cpu(area: Area) -> usize {
    match area {}
}

#[inline(always)]
pub(crate) fn pop(_: &Hot, _: Area, _: StackAt) -> Option<Entry> {
    None
}

#[inline(always)]
pub(crate) fn push(_: &Hot, _: Area, _: StackAt, _: Entry) -> bool {
    false
}

#[inline(always)]
pub(crate) fn push_first(_: &Hot, _: Entry) -> Option<bool> {
    None
}

pub(crate) fn pop_many(_: &Hot, _: Area, _: StackAt, _: usize, _: &mut Batch) {}

pub(crate) fn push_many(_: &Hot, _: Area, _: StackAt, _: &mut Batch) {}

pub(crate) fn restarts() -> u64 {
    0
}
