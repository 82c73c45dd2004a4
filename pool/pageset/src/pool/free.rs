//! Frees blocks and runs. A block goes into this CPU's array, and if the array is full, a flush makes room
//! first. Runs, and blocks without an array, go directly to the base.

use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;

use pageset_core::{FreeError, Order};

use super::{Inner, bytes_of};
use crate::arrays::{Class, Entry, ZeroState};
use crate::error::AllocError;
use crate::pages::Span;
use crate::sys::advice::{Discarded, discard};
use crate::sys::link;

/// How an operation must free deferred frames. Each word of the list of deferred spans has this value in a
/// bit that no [`Span`] uses.
#[derive(Clone, Copy)]
#[repr(u64)]
enum Deferred {
    /// The frames are a block or a run as it was allocated.
    Whole = 0,
    /// The frames are a part of a block or a run, so the base has to split the block first.
    Part = 1 << 47,
}

impl Inner {
    /// Frees a block or a run of frames.
    #[inline(always)]
    pub(crate) fn free_span(&self, span: Span) {
        if !self.percpu.push_in_sequence(span) {
            self.free_out_of_line(span);
        }
    }

    /// Frees frames without a sequence: into an array under the array's lock, by a flush, or directly to the
    /// base. The function is separate, so that the fast path stays small enough to be inlined where pages are
    /// dropped.
    #[inline(never)]
    fn free_out_of_line(&self, span: Span) {
        self.percpu.note_taken_back(span.frame(), span.count());
        let class = span.class();
        if !class.is_some_and(|class| self.percpu.push_locked(class, Entry::dirty(span.frame()))) {
            self.free_slow(span, class);
        }
    }

    /// Frees frames that did not go into an array: a run, a block without an array, or a block whose array is
    /// full or locked. If the array is full, also flushes half of the array.
    #[cold]
    #[inline(never)]
    fn free_slow(&self, span: Span, class: Option<Class>) {
        match self.enter() {
            Ok(_inside) => self.free_inside(span, class, ZeroState::Unknown),
            Err(AllocError::WouldBlock) => self.defer(span, Deferred::Whole),
            // A child of `fork` frees nothing.
            Err(_) => {}
        }
    }

    /// Frees a block whose array is full, or a run of frames. The caller has entered the pool by `enter`, and
    /// still holds the `Inside` value.
    fn free_inside(&self, span: Span, class: Option<Class>, zero: ZeroState) {
        self.percpu.fit(self.capacity.left());
        let frames = span.frame()..span.frame() + span.count();
        if let Some(class) = class.filter(|class| self.percpu.holds_many(*class)) {
            // If the block is zero, note this fact in the array's entry and not in the ledger. The fast path
            // does not tell the ledger when a user takes the block and writes to the block.
            return self.flush(class, Entry::with_zero(span.frame(), zero));
        }
        if zero == ZeroState::Zero {
            // Note zero frames before another thread can allocate them.
            self.ledger.note_zero(frames.clone());
        }
        match span.order() {
            Some(order) => {
                let freed = self.base.free(self.percpu.cpu(), span.frame(), order);
                // Frames that were cut from a larger run may be several blocks in the base. Free frames that
                // may be several blocks as a range.
                let freed = freed.or_else(|error| match order {
                    Order::MAX => self.base.free_range(frames),
                    _ => Err(error),
                });
                self.note_freed(span.count(), freed);
            }
            None => self.free_frames_inside(frames),
        }
    }

    /// Gives the memory of a block or a run back to the system, and frees the frames. Returns the number of
    /// bytes that went back.
    pub(crate) fn discard_span(&self, span: Span) -> usize {
        self.discarded(span).unwrap_or_else(|| {
            self.free_span(span);
            0
        })
    }

    /// Does the same as [`discard_span`](Self::discard_span), but frees nothing and returns `None` if no
    /// memory can go back.
    fn discarded(&self, span: Span) -> Option<usize> {
        let _inside = self.enter().ok()?;
        self.percpu.note_taken_back(span.frame(), span.count());
        let bytes = self.give_back_inside(&span.frames())?;
        let zero = Entry::with_zero(span.frame(), ZeroState::Zero);
        let class = span.class();
        if !class.is_some_and(|class| self.percpu.push(class, zero)) {
            self.free_inside(span, class, ZeroState::Zero);
        }
        Some(bytes)
    }

    /// Gives the memory behind these frames back to the system. The owner keeps the frames. Returns the
    /// number of bytes that went back to the system.
    pub(crate) fn give_back(&self, frames: &Range<u32>) -> usize {
        if frames.is_empty() {
            return 0;
        }
        let Ok(_inside) = self.enter() else { return 0 };
        self.give_back_inside(frames).unwrap_or(0)
    }

    /// Does the same as [`give_back`](Self::give_back) for a caller that has entered the pool by `enter`.
    /// Returns `None` if no memory can go back.
    fn give_back_inside(&self, frames: &Range<u32>) -> Option<usize> {
        let (begun, bytes) = (Instant::now(), bytes_of(frames));
        {
            // While this thread holds the lock `returning`, no other thread can pin the pool.
            let _batch = self.returning.lock();
            if discard(&self.memory, bytes.clone(), self.giveback()) == Discarded::No {
                return None;
            }
        }
        self.note_returned(bytes.len() as u64, begun.elapsed());
        Some(bytes.len())
    }

    /// Leaves frames to the next operation that enters the pool. A signal handler calls this function if the
    /// handler interrupted its thread inside an operation of the pool. The deferred spans form a list: the
    /// first page of each span has a link to the next span.
    fn defer(&self, span: Span, what: Deferred) {
        let mut first = self.deferred.load(Relaxed);
        // Tell memory checkers that the first page is written, because the link is stored there.
        self.percpu.note_handed_out(span.frame(), 1);
        loop {
            link::set(&self.memory, span.frame(), first);
            // Race: handlers on two threads add spans at once. The later compare-exchange fails. No other
            // thread has the span of the failed exchange yet, so the failed thread writes the link again and
            // retries.
            match self.deferred.compare_exchange_weak(first, span.to_bits() | what as u64, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Frees the pages that [`defer`](Self::defer) left. The caller holds the `Inside` value of the pool.
    #[inline]
    pub(crate) fn free_deferred(&self) {
        if self.deferred.load(Relaxed) == 0 {
            return;
        }
        // Take the whole list at once, so that no other thread frees the same spans.
        let mut first = self.deferred.swap(0, Acquire);
        while let Some(span) = Span::from_bits(first & !(Deferred::Part as u64)) {
            let is_part = first & Deferred::Part as u64 != 0;
            first = link::get(&self.memory, span.frame());
            if is_part {
                self.free_frames_inside(span.frame()..span.frame() + span.count());
            } else {
                self.free_inside(span, span.class(), ZeroState::Unknown);
            }
        }
    }

    /// Frees the frames that a shrink cuts off, which may be parts of blocks.
    pub(crate) fn free_frames(&self, frames: Range<u32>) {
        if frames.is_empty() {
            return;
        }
        self.percpu.note_taken_back(frames.start, frames.end - frames.start);
        match self.enter() {
            Ok(_inside) => self.free_frames_inside(frames),
            Err(AllocError::WouldBlock) => {
                self.defer(Span::of(frames.start, frames.end - frames.start), Deferred::Part);
            }
            Err(_) => {}
        }
    }

    fn free_frames_inside(&self, frames: Range<u32>) {
        self.note_freed(frames.end - frames.start, self.base.free_range(frames));
    }

    fn note_freed(&self, frames: u32, outcome: Result<(), FreeError>) {
        match outcome {
            Ok(()) => self.capacity.uncharge(u64::from(frames)),
            Err(_) => self.counts.note_bad_frees(1),
        }
    }
}

#[cfg(test)]
#[expect(unsafe_code, reason = "pages without an owner")]
mod tests {
    use std::num::NonZeroUsize;
    use std::ops::ControlFlow;

    use super::*;
    use crate::error::ValidateError;
    use crate::{FastPath, Pages, Pool, ReturnPolicy, Stats, Trimmed, Worker};

    /// Simulates a signal handler that interrupts its thread inside an operation of the pool.
    #[test]
    fn an_operation_inside_of_another_is_refused_and_its_frees_come_later() {
        for path in [FastPath::Auto, FastPath::Locks] {
            let returns = ReturnPolicy::default().with_worker(Worker::None);
            let pool = Pool::builder().size(8 << 20).fast_path(path).returns(returns).build().unwrap();
            let (huge, run) = (pool.alloc(Order::MAX).unwrap(), pool.alloc_exact(100).unwrap());
            let mut cut = pool.alloc(Order::new(5).unwrap()).unwrap();
            let singles: Vec<_> = (0..500).map(|_| pool.alloc(Order::ZERO).unwrap()).collect();
            let used = pool.stats().nr_used;
            assert_eq!(used, 1024 + 100 + 32 + 500);

            let interrupted = pool.enter().unwrap();
            assert_eq!(pool.alloc(Order::MAX).unwrap_err(), AllocError::WouldBlock);
            assert_eq!(pool.alloc_exact(3).unwrap_err(), AllocError::WouldBlock);
            assert_eq!(pool.alloc_at(0, Order::ZERO).unwrap_err(), AllocError::WouldBlock);
            let mut list = Vec::new();
            let got = pool.alloc_bulk(800, &mut list);
            assert!(
                got == Err(AllocError::WouldBlock) || got.unwrap() < 800,
                "no more than this CPU's array"
            );
            drop((list, huge, run, singles));
            cut.shrink_to(1..2);
            assert_eq!((pool.trim(), pool.tick()), (Trimmed::default(), Trimmed::default()));
            assert_eq!((pool.resize(0), pool.stats()), (8 << 20, Stats::default()));
            assert_eq!(pool.validate(), Err(ValidateError::WouldBlock));
            let raw = cut.into_raw();
            // SAFETY: the pages were given up above, and this call refuses them.
            assert!(unsafe { Pages::from_raw_checked(&pool, raw) }.is_none());
            let outcome = pool.populate(2 << 20, NonZeroUsize::MIN, |_| ControlFlow::Continue(()));
            outcome.expect("takes no lock");
            drop(interrupted);

            // SAFETY: the pages were given up above, and are taken back only once.
            let cut = unsafe { Pages::from_raw_checked(&pool, raw) };
            assert_eq!(cut.expect("in use").page_count(), 1);
            assert_eq!((pool.stats().nr_used, pool.stats().bad_frees), (0, 0));
            pool.validate().unwrap();
            assert!(pool.alloc_bulk(2048, &mut Vec::new()).is_ok_and(|all| all == 2048), "all are free");
        }
    }
}
