//! How many pageblocks with free frames a CPU may have in its own stacks: those beyond it are anybody's.

use crate::atomic::{AtomicU32, AtomicUsize, Relaxed, constant};

/// One CPU's share of a zone's budget.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: AtomicU32,
    /// Pageblocks in the CPU's stacks.
    linked: AtomicU32,
    /// Pageblocks that the CPU had to get from elsewhere since it was asked last.
    misses: AtomicU32,
}

impl Budget {
    constant! {
        pub(crate) fn new() -> Self {
            Self { limit: AtomicU32::new(0), linked: AtomicU32::new(0), misses: AtomicU32::new(0) }
        }
    }

    pub(crate) fn set_limit(&self, blocks: u32) {
        self.limit.store(blocks, Relaxed);
    }

    /// One more pageblock in the CPU's stacks, if there may be.
    pub(crate) fn add(&self) -> bool {
        let limit = self.limit.load(Relaxed);
        let add = |linked: u32| (linked < limit).then_some(linked + 1);
        self.linked.fetch_update(Relaxed, Relaxed, add).is_ok()
    }

    /// One less.
    pub(crate) fn remove(&self) {
        // There is none only if this number is damaged.
        if self.linked.fetch_sub(1, Relaxed) == 0 {
            self.linked.fetch_add(1, Relaxed);
        }
    }

    /// Pageblocks in the CPU's stacks.
    pub(crate) fn linked(&self) -> usize {
        self.linked.load(Relaxed) as usize
    }

    pub(crate) fn is_exceeded(&self) -> bool {
        self.linked.load(Relaxed) > self.limit.load(Relaxed)
    }

    /// Of two who run as the same CPU one may not be counted: this is no more than a hint.
    pub(crate) fn note_miss(&self) {
        self.misses.store(self.misses.load(Relaxed).saturating_add(1), Relaxed);
    }

    /// A CPU that used its limit up, and got pageblocks from elsewhere since the last tick, takes as many from what nobody has of the
    /// zone's budget; one that got none leaves a quarter of its limit there.
    pub(crate) fn adjust(&self, unassigned: &AtomicUsize) {
        let misses = self.misses.swap(0, Relaxed);
        if misses == 0 {
            let back = self.limit.load(Relaxed).div_ceil(4);
            if back == 0 {
                return;
            }
            // Two ticks of the same CPU at once are one.
            if self.limit.fetch_update(Relaxed, Relaxed, |limit| limit.checked_sub(back)).is_ok() {
                unassigned.fetch_add(back as usize, Relaxed);
            }
            return;
        }
        if unassigned.load(Relaxed) == 0 {
            // It did not use what it has.
            return;
        }
        let take = |left: usize| Some(left.saturating_sub(misses as usize));
        if let Ok(left) = unassigned.fetch_update(Relaxed, Relaxed, take) {
            // At most as many as there are pageblocks, which a word holds.
            self.limit.fetch_add(left.min(misses as usize) as u32, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rich_give_what_the_poor_take() {
        let (rich, poor) = (Budget::new(), Budget::new());
        let unassigned = AtomicUsize::new(0);
        rich.set_limit(16);
        assert!((0..16).all(|_| rich.add()) && !rich.add() && !poor.add());
        rich.adjust(&unassigned);
        assert_eq!(unassigned.load(Relaxed), 4);
        assert!(rich.is_exceeded());
        (0..4).for_each(|_| rich.remove());
        assert!(!rich.is_exceeded() && !rich.add());
        (0..6).for_each(|_| poor.note_miss());
        poor.adjust(&unassigned);
        assert_eq!(unassigned.load(Relaxed), 0);
        assert!((0..4).all(|_| poor.add()) && !poor.add());
        (0..100).for_each(|_| rich.adjust(&unassigned));
        assert_eq!(unassigned.load(Relaxed), 12, "nothing is lost");
    }
}
