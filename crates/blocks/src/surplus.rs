//! Free frames of idle pageblocks that a CPU has counted, and of which its zone does not know yet.
//!
//! A pageblock becomes idle, is found, and becomes whole or is used again: each step changes how many frames the zone may count as
//! free. If every CPU told that at once, all would meet at one line. So what is more stays with the CPU, and what is less comes out
//! of that first. The zone never counts more than there are, whoever stops where.

use crate::atomic::{AtomicU32, Relaxed, constant};

/// One CPU's surplus in one zone.
#[derive(Debug)]
pub(crate) struct Surplus(AtomicU32);

impl Surplus {
    constant! {
        pub(crate) fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }

    pub(crate) fn frames(&self) -> u32 {
        self.0.load(Relaxed)
    }

    /// So many more. Returns what is too much for a CPU to keep to itself, if `most` is not: then half of that stays, so that what is
    /// less soon after comes out of it.
    pub(crate) fn add(&self, frames: u32, most: u32) -> u32 {
        let mut now = self.0.load(Relaxed);
        loop {
            let all = now.saturating_add(frames);
            let left = if all > most { most / 2 } else { all };
            match self.0.compare_exchange_weak(now, left, Relaxed, Relaxed) {
                Ok(_) => return all - left,
                Err(other) => now = other,
            }
        }
    }

    /// So many less. Returns what is not here, but in the zone's count.
    pub(crate) fn take(&self, frames: u32) -> u32 {
        let before = self.0.fetch_update(Relaxed, Relaxed, |now| {
            // Nothing to write if there is nothing.
            (now > 0).then(|| now.saturating_sub(frames))
        });
        frames.saturating_sub(before.unwrap_or(0))
    }

    /// All of it.
    pub(crate) fn take_all(&self) -> u32 {
        if self.frames() == 0 { 0 } else { self.0.swap(0, Relaxed) }
    }

    /// Damages it.
    #[cfg(all(test, not(any(loom, miri))))]
    pub(crate) fn set(&self, frames: u32) {
        self.0.store(frames, Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_goes_and_half_of_the_most_stays() {
        let surplus = Surplus::new();
        assert_eq!((surplus.add(60, 100), surplus.add(40, 100)), (0, 0));
        assert_eq!((surplus.add(1, 100), surplus.frames()), (51, 50));
        assert_eq!((surplus.add(7, 0), surplus.frames()), (57, 0), "nothing may be kept");
    }

    #[test]
    fn what_is_less_comes_out_of_it_first() {
        let surplus = Surplus::new();
        surplus.add(10, 100);
        assert_eq!((surplus.take(4), surplus.frames()), (0, 6));
        assert_eq!((surplus.take(9), surplus.frames()), (3, 0));
        assert_eq!(surplus.take(5), 5);
        surplus.add(u32::MAX, u32::MAX);
        assert_eq!((surplus.add(5, u32::MAX), surplus.take_all(), surplus.take_all()), (0, u32::MAX, 0));
    }
}
