//! Counts the recorded kernel's fetches from its zones, and how many may be refills.

use super::{PassedOver, Refills, Verification};

/// Counts of fetches. A fetch is a run of blocks that a CPU took from a zone, with an order and type that
/// page sets hold. The event `mm_page_alloc_zone_locked` marks these blocks with `percpu_refill`. But the
/// mark `percpu_refill` only shows that a page set could hold the blocks, not that the blocks went to a page
/// set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fetches {
    /// Number of all fetches.
    pub all: u64,
    /// Number of fetches past the page set. A fetch past the page set takes a single block, although the list
    /// had blocks, or although a refill would have taken several blocks.
    pub past_page_sets: u64,
    /// Number of fetches that may be refills or may have gone past the page set, because the events are the
    /// same. A fetch counts here in two cases: the fetch took a single block for an empty list that wanted
    /// one block, or no allocation follows the fetch. A fetch of the first case also counts as a refill.
    pub unknown: u64,
}

impl Verification {
    /// Counts the kernel's fetches, the fetches past page sets, and the fetches of unknown kind.
    #[must_use]
    pub const fn fetches(&self) -> Fetches {
        let Refills { observed, cold, of_one, .. } = self.refills;
        let PassedOver { diverted_allocs, orphan_refills, .. } = self.passed_over;
        Fetches {
            all: observed + cold + diverted_allocs + orphan_refills,
            past_page_sets: diverted_allocs,
            unknown: of_one + orphan_refills,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fetch_is_a_refill_or_past_the_page_set_or_unknown() {
        let verification = Verification {
            refills: Refills { observed: 90, cold: 5, of_one: 2, ..Refills::default() },
            passed_over: PassedOver { diverted_allocs: 3, orphan_refills: 4, ..PassedOver::default() },
            ..Verification::default()
        };
        assert_eq!(verification.fetches(), Fetches { all: 102, past_page_sets: 3, unknown: 6 });
    }
}
