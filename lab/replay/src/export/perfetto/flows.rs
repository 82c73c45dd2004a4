//! Draws arrows for some blocks, from their allocation to their free. Arrows for all blocks would hide the
//! tracks.

use std::collections::HashMap;

/// One allocation in this number of allocations is chosen to be followed.
pub const FOLLOWED_ONE_IN: u64 = 16;
/// Maximum number of blocks that are followed at the same time.
const FOLLOWED_MAX: usize = 64 << 10;

/// Counts of followed blocks, and of allocations that were chosen but not followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// Number of allocations that were chosen to be followed: one in 16.
    pub allocations: u64,
    /// Number of followed blocks that another CPU freed: each has an arrow.
    pub arrows: u64,
    /// Number of allocations that were chosen but not followed, because too many blocks were followed at the
    /// time.
    pub given_up: u64,
}

/// An allocation of a followed block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) cpu: u16,
    pub(super) at_ns: u64,
    pub(super) pid: u32,
}

/// Follows blocks.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// The followed blocks, by their first frame.
    followed: HashMap<u64, Origin>,
    seen: u64,
    pub(super) counts: Followed,
}

impl Flows {
    #[inline]
    pub(super) fn allocated(&mut self, pfn: u64, origin: Origin) {
        let is_chosen = self.seen.is_multiple_of(FOLLOWED_ONE_IN);
        self.seen += 1;
        if !is_chosen {
            // If the frame's earlier block is still followed, the event of the earlier block's free was lost.
            self.followed.remove(&pfn);
            return;
        }
        self.counts.allocations += 1;
        if self.followed.len() >= FOLLOWED_MAX && !self.followed.contains_key(&pfn) {
            self.counts.given_up += 1;
            return;
        }
        self.followed.insert(pfn, origin);
    }

    /// Returns the allocation of the block that `cpu` frees. `None` if the block was not followed, or if
    /// `cpu` allocated the block itself.
    #[inline]
    pub(super) fn freed(&mut self, pfn: u64, cpu: u16) -> Option<Origin> {
        let origin = self.followed.remove(&pfn).filter(|origin| origin.cpu != cpu)?;
        self.counts.arrows += 1;
        Some(origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(cpu: u16) -> Origin {
        Origin { cpu, at_ns: 5, pid: 7 }
    }

    #[test]
    fn one_in_sixteen_is_followed_to_another_cpu() {
        let mut flows = Flows::default();
        (0..64).for_each(|pfn| flows.allocated(pfn, origin(0)));
        assert_eq!((0..64).filter_map(|pfn| flows.freed(pfn, 1)).count(), 4);
        assert_eq!(flows.counts, Followed { allocations: 4, arrows: 4, given_up: 0 });
        flows.allocated(0, origin(0));
        assert_eq!(flows.freed(0, 0), None, "expected no arrow from a CPU to itself");
    }

    #[test]
    fn what_is_followed_is_bounded_and_the_rest_is_counted() {
        let mut flows = Flows::default();
        let blocks = (FOLLOWED_MAX as u64 + 3) * FOLLOWED_ONE_IN;
        (0..blocks).for_each(|pfn| flows.allocated(pfn, origin(0)));
        assert_eq!((flows.followed.len(), flows.counts.given_up), (FOLLOWED_MAX, 3));
    }

    #[test]
    fn a_block_whose_free_was_lost_comes_from_its_last_allocation() {
        let mut flows = Flows::default();
        flows.allocated(3, origin(0));
        flows.allocated(3, origin(1));
        assert_eq!(flows.freed(3, 2), None);
    }
}
