//! Limits the partly used slabs that a CPU keeps for itself. When a CPU reaches the limit, it gives all of
//! its partly used slabs to their nodes.
//!
//! Source of the rules: the changelog of Linux 5.16's "mm, slub: change percpu partial accounting from
//! objects to pages". The limits are SLUB's defaults, which are general knowledge and not in the spec.

use crate::load::setup::Generation;

/// The limit on a CPU's partly used slabs. The limit counts free objects or slabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartialRule {
    /// Before Linux 5.16 the limit counts the free objects that a slab has when it joins the CPU's list. A
    /// full slab joins the list when its first object is freed, and counts as one object. So a CPU that frees
    /// other CPUs' objects collects as many slabs as the limit allows objects. Most of these slabs are empty
    /// when the CPU gives them to their nodes.
    Objects(u32),
    /// Since Linux 5.16 the limit counts slabs. The kernel computes the limit from a wanted number of free
    /// objects, and assumes that half of each slab is free.
    Slabs(u32),
}

impl PartialRule {
    /// Returns the rule of a kernel for a cache with objects of `size` bytes and slabs of `objects` objects.
    pub(super) fn new(generation: Generation, size: u32, objects: u32) -> Self {
        if generation < Generation::V6_6 {
            return Self::Objects(match size {
                4096.. => 2,
                1024.. => 6,
                256.. => 13,
                _ => 30,
            });
        }
        let wanted: u32 = match size {
            4096.. => 6,
            1024.. => 24,
            256.. => 52,
            _ => 120,
        };
        Self::Slabs((2 * wanted).div_ceil(objects))
    }

    /// Returns the amount that a slab with `free` free objects adds to the count when it joins the CPU's
    /// list.
    pub(super) fn weight(self, free: u32) -> u32 {
        match self {
            Self::Objects(_) => free,
            Self::Slabs(_) => 1,
        }
    }

    /// Whether a CPU whose partly used slabs have the total weight `counted` must give these slabs away
    /// before it adds another slab.
    pub(super) fn is_full(self, counted: u32) -> bool {
        match self {
            Self::Objects(limit) => counted > limit,
            Self::Slabs(limit) => counted >= limit,
        }
    }

    /// Whether a CPU that has taken slabs of the total weight `counted` from a node's list has taken enough.
    pub(super) fn is_enough(self, counted: u32) -> bool {
        let (Self::Objects(limit) | Self::Slabs(limit)) = self;
        counted > limit / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_kernel_collects_a_slab_for_each_object_allowed() {
        let rule = PartialRule::new(Generation::V4_9, 512, 16);
        assert_eq!(rule, PartialRule::Objects(13));
        let joined = (0..).take_while(|slabs| !rule.is_full(slabs * rule.weight(1))).count();
        assert_eq!(joined, 14);
        assert!(rule.is_enough(rule.weight(16)), "one slab with 16 free objects is enough to take");
    }

    #[test]
    fn a_new_kernel_counts_slabs() {
        let rule = PartialRule::new(Generation::V6_6, 512, 16);
        assert_eq!(rule, PartialRule::Slabs(7));
        assert!(!rule.is_full(6) && rule.is_full(7));
        assert!(!rule.is_enough(3) && rule.is_enough(4));
        assert_eq!(PartialRule::new(Generation::V6_6, 8192, 4), PartialRule::Slabs(3));
    }
}
