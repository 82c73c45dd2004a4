//! The rules of policies under which CPUs own whole pageblocks.

/// CPUs claim whole pageblocks from the zone, and split these pageblocks in their page sets. A freed page
/// usually goes to the owner of its pageblock, whichever CPU frees the page. A drain merges the pages of
/// owned pageblocks before the drain takes the zone's lock.
///
/// Source: the RFC "pcp buddy allocator" (posted in April 2026, not merged). `PageblockOwnership` has a field
/// for each point that the RFC's text leaves open. Decision 0016 gives the reasons for the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", default, deny_unknown_fields))]
#[non_exhaustive]
pub struct PageblockOwnership {
    /// The destination of a page that is freed by a CPU other than the owner.
    pub remote: RemoteFrees,
    /// The destination of a freed page if the lock of the owner's page set is taken.
    pub busy_owner: BusyOwner,
    /// A page set claims a pageblock only if the page set's pages then do not exceed the limit `claims`.
    pub claims: ClaimLimit,
    /// A refill takes free blocks from at most `recovery_looks_max` pageblocks that the CPU owns. To find
    /// each of them, the refill looks at no more than `recovery_looks_max` pageblocks on the CPU's list.
    /// While a refill looks at these pageblocks, its CPU holds the zone's lock.
    pub recovery_looks_max: u32,
}

impl PageblockOwnership {
    /// The rules of the RFC. Decision 0016 says which values the RFC leaves open.
    pub const RFC: Self = Self {
        remote: RemoteFrees::PageSet,
        busy_owner: BusyOwner::Zone,
        claims: ClaimLimit::HighMax,
        recovery_looks_max: 16,
    };
}

impl Default for PageblockOwnership {
    /// Returns the rules of the RFC.
    fn default() -> Self {
        Self::RFC
    }
}

/// The destination of a page that is freed by a CPU other than the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub enum RemoteFrees {
    /// The page goes to the owner's page set, if the lock of this page set is free.
    #[cfg_attr(feature = "serde", serde(rename = "page set"))]
    PageSet,
    /// The page goes to a list of the owner. The owner's page set takes in the page later, so the freeing CPU
    /// does not touch the page set. Source: the RFC "superpageblocks" (posted in April and May 2026, not
    /// merged).
    #[cfg_attr(feature = "serde", serde(rename = "owner's list"))]
    OwnersList,
}

/// The destination of a freed page of an owned pageblock if the lock of the owner's page set is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum BusyOwner {
    /// The page goes to the zone's free lists.
    Zone,
    /// The page goes to the page set of the freeing CPU. In that page set, the page counts as a page of a
    /// pageblock without owner.
    FreeingCpu,
}

/// Number of pages that a page set may hold, including the pageblock that the page set claims or recovers. A
/// zone whose limit is smaller than a pageblock has no owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum ClaimLimit {
    /// The upper limit of `high`.
    HighMax,
    /// The current `high`.
    High,
}
