//! Blocks that a CPU freed to other CPUs' pageblocks and has not given back yet: a ring, for whoever gets hold of it.

use crate::atomic::{Acquire, AtomicU32, Relaxed, Release, array, constant};

/// Blocks of one order and type that a CPU freed to pageblocks of others, by index of their first frame. They are in use as far
/// as their pageblocks know.
///
/// Whoever finds it busy goes on without it, so that nobody waits: not for a CPU that was interrupted in here, and not for one
/// that stopped.
#[derive(Debug)]
pub(crate) struct Kept<const SLOTS: usize> {
    ends: Ends,
    frames: [AtomicU32; SLOTS],
}

#[derive(Debug)]
struct Ends {
    busy: AtomicU32,
    first: AtomicU32,
    len: AtomicU32,
}

impl<const SLOTS: usize> Kept<SLOTS> {
    constant! {
        pub(crate) fn new() -> Self {
            Self {
                ends: Ends { busy: AtomicU32::new(0), first: AtomicU32::new(0), len: AtomicU32::new(0) },
                frames: array!(AtomicU32::new(0)),
            }
        }
    }

    #[inline]
    pub(crate) fn ring(&self) -> Ring<'_> {
        Ring { ends: &self.ends, frames: &self.frames }
    }
}

/// Kept blocks, as many as there may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring<'k> {
    ends: &'k Ends,
    frames: &'k [AtomicU32],
}

impl<'k> Ring<'k> {
    /// How many blocks it has.
    #[inline]
    pub(crate) fn len(self) -> usize {
        self.ends.len.load(Relaxed) as usize
    }

    /// Calls `work` if nobody else is here.
    #[inline]
    pub(crate) fn try_with<R>(self, work: impl FnOnce(Held<'k>) -> R) -> Option<R> {
        if self.ends.busy.swap(1, Acquire) != 0 {
            return None;
        }
        let result = work(Held(self));
        self.ends.busy.store(0, Release);
        Some(result)
    }

    /// All blocks. Exact only while nobody else is here.
    pub(crate) fn iter(self) -> impl Iterator<Item = u32> {
        let first = self.ends.first.load(Relaxed) as usize;
        (0..self.len()).map(move |at| self.frames[(first + at) % self.frames.len()].load(Relaxed))
    }
}

/// Kept blocks, held by one.
#[derive(Debug)]
pub(crate) struct Held<'k>(Ring<'k>);

impl Held<'_> {
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() == self.0.frames.len()
    }

    /// Half of what there is room for.
    pub(crate) fn half(&self) -> usize {
        self.0.frames.len() / 2
    }

    /// Adds a block; there must be room.
    #[inline]
    pub(crate) fn push(&mut self, frame: u32) {
        let (first, len) = (self.0.ends.first.load(Relaxed), self.0.ends.len.load(Relaxed));
        self.slot(first.wrapping_add(len)).store(frame, Relaxed);
        self.0.ends.len.store(len + 1, Relaxed);
    }

    /// Takes the block that was added last.
    #[inline]
    pub(crate) fn pop_last(&mut self) -> Option<u32> {
        let (first, len) = (self.0.ends.first.load(Relaxed), self.0.ends.len.load(Relaxed));
        let left = len.checked_sub(1)?;
        self.0.ends.len.store(left, Relaxed);
        Some(self.slot(first.wrapping_add(left)).load(Relaxed))
    }

    /// Takes the block that has been here longest.
    pub(crate) fn pop_first(&mut self) -> Option<u32> {
        let (first, len) = (self.0.ends.first.load(Relaxed), self.0.ends.len.load(Relaxed));
        let left = len.checked_sub(1)?;
        self.0.ends.len.store(left, Relaxed);
        self.0.ends.first.store((first + 1) % self.0.frames.len() as u32, Relaxed);
        Some(self.slot(first).load(Relaxed))
    }

    #[inline]
    fn slot(&self, at: u32) -> &AtomicU32 {
        &self.0.frames[at as usize % self.0.frames.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_and_the_last_come_back() {
        let kept = Kept::<4>::new();
        let ring = kept.ring();
        let told = ring.try_with(|mut held| {
            for round in 0..10 {
                (0..4).for_each(|frame| held.push(round * 4 + frame));
                assert!(held.is_full() && held.half() == 2);
                assert!(ring.try_with(|_| ()).is_none(), "somebody is here");
                assert_eq!(held.pop_first(), Some(round * 4));
                assert_eq!(held.pop_last(), Some(round * 4 + 3));
                assert_eq!(ring.iter().collect::<std::vec::Vec<_>>(), [round * 4 + 1, round * 4 + 2]);
                assert_eq!((held.pop_last(), held.pop_last()), (Some(round * 4 + 2), Some(round * 4 + 1)));
                assert_eq!((held.pop_last(), held.pop_first()), (None, None));
            }
        });
        assert_eq!((told, ring.len()), (Some(()), 0));
    }
}
