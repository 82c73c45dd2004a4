//! Counters. If the kernel has the same counter, ours has the kernel's name.

use core::ops::AddAssign;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counters of a zone, of a CPU or of the whole allocator, since the allocator was built. A counter
        /// never falls.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            pub(crate) const ZERO: Self = Self { $($name: 0,)* };

            /// Returns by how much each counter has grown since `earlier`.
            #[must_use]
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $($name: self.$name.saturating_sub(earlier.$name),)* }
            }

            /// All counters with their names, in the order of the struct.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }
        }

        impl AddAssign<&Self> for Counters {
            fn add_assign(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    /// Number of pages allocated (kernel: `pgalloc_<zone>`).
    pgalloc,
    /// Number of pages freed (kernel: `pgfree`). Under the rules of Linux 6.1, `pgfree` leaves out pages that
    /// bypass a page set because its lock is taken, or because their pageblock is isolated.
    pgfree,
    /// Number of allocations from this zone that preferred this zone's node.
    numa_hit,
    /// Number of allocations from this zone that preferred another node.
    numa_miss,
    /// Number of allocations that preferred this zone's node, but were served by another node.
    numa_foreign,
    /// Number of allocations from this zone by a CPU of the zone's node.
    numa_local,
    /// Number of allocations from this zone by a CPU of another node.
    numa_other,
    /// Number of blocks that allocations took from per-CPU page sets.
    pcp_alloc,
    /// Number of blocks that frees put into per-CPU page sets.
    pcp_free,
    /// Number of blocks that requests took directly from the free lists.
    direct_alloc,
    /// Number of blocks that frees put directly on the free lists.
    direct_free,
    /// Number of pages that went from the free lists to a user, or from a user to the free lists, without a
    /// page set.
    direct_pages,
    /// Number of refills of per-CPU page sets. A refill takes the zone lock once. If CPUs own pageblocks, two
    /// refills may share one hold of the lock.
    refills,
    /// Number of blocks that refills fetched.
    refilled_blocks,
    /// Number of pages that refills fetched: the 2023 series' *alloc_zone*.
    refilled_pages,
    /// Number of drains of per-CPU page sets. Each drain, and each slice of a drain, takes the zone lock once
    /// and counts as one.
    drains,
    /// Number of pages that left page sets in drains.
    drained_pages,
    /// Number of drains that consecutive high-order frees caused: the 2023 series' *free_high*.
    free_high_drains,
    /// Number of times that an operation took the zone's lock.
    zone_lock_acquisitions,
    /// Number of times that an allocated block was split, by `split_range` or because a part of it was freed.
    /// Each split takes the zone lock once. Linux has no such counter.
    splits,
    /// Number of allocations and frees that found the page set's lock taken, or had to bypass the page set.
    trylock_failures,
    /// Number of requests that could wait and found no memory (kernel: `allocstall_<zone>`).
    allocstall,
    /// Number of times that a block was found to be bad. The block went out of service, or was out of service
    /// already.
    bad_pages,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_is_summed_and_named() {
        let mut one = Counters { pgalloc: 3, bad_pages: 2, ..Counters::ZERO };
        one += &Counters { pgalloc: 4, ..Counters::ZERO };
        assert_eq!(one.named().next(), Some(("pgalloc", 7)));
        assert_eq!(one.named().last(), Some(("bad_pages", 2)));
    }
}
