//! A free: into this CPU's array, by a flush of half of it, or directly to the base.

use std::ops::Range;

use pageset_core::FreeError;

use super::Inner;
use crate::arrays::{Class, Entry};
use crate::pages::Span;

impl Inner {
    /// Frees a block or a run of frames.
    #[inline(always)]
    pub(crate) fn free_span(&self, span: Span) {
        if !self.percpu.push_in_sequence(span) {
            self.free_out_of_line(span);
        }
    }

    /// Frees under a lock, or past the arrays. One call, so that the fast path around it is small enough to be inlined
    /// where pages are dropped.
    #[inline(never)]
    fn free_out_of_line(&self, span: Span) {
        let class = span.class();
        if !class.is_some_and(|class| self.percpu.push_locked(class, Entry::dirty(span.frame()))) {
            self.free_slow(span, class);
        }
    }

    /// Frees a block that its array had no room for, with half of the array; or a run of frames.
    #[cold]
    #[inline(never)]
    fn free_slow(&self, span: Span, class: Option<Class>) {
        if self.is_in_child() {
            return;
        }
        match class {
            Some(class) if class != Class::Order9 || self.percpu.holds_many(class) => {
                self.flush(class, Entry::dirty(span.frame()));
            }
            _ => match span.order() {
                Some(order) => self.note_freed(span.count(), self.base.free(span.frame(), order)),
                None => self.free_frames(span.frame()..span.frame() + span.count()),
            },
        }
    }

    /// Frees frames that are no block: those at the edge of somebody's pages, or what is left of them.
    pub(crate) fn free_frames(&self, frames: Range<u32>) {
        if frames.is_empty() || self.is_in_child() {
            return;
        }
        // The base has to know the pageblock's other parts, and nobody may cut the same block meanwhile.
        let mut depot = self.depot.lock();
        depot.dissolve(frames.start, |free| self.base.release_range(free));
        self.note_freed(frames.end - frames.start, self.base.free_range(frames));
    }

    fn note_freed(&self, frames: u32, outcome: Result<(), FreeError>) {
        match outcome {
            Ok(()) => self.capacity.uncharge(u64::from(frames)),
            Err(_) => self.counts.note_bad_frees(1),
        }
    }
}
