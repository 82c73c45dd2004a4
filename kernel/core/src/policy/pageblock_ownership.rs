//! How CPUs own whole pageblocks.

/// CPUs claim whole pageblocks from the zone and split them in their page sets. A freed page goes to the
/// owner of its pageblock, whichever CPU frees it. A drain merges the pages of owned pageblocks before it
/// takes the zone's lock.
///
/// Source: the RFC "pcp buddy allocator" (posted in April 2026, not merged). Each point that its text leaves
/// open is a field here; decision 0016 gives the reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", default, deny_unknown_fields))]
#[non_exhaustive]
pub struct PageblockOwnership {
    /// The destination of a page that another CPU than the owner frees.
    pub remote: RemoteFrees,
    /// The destination of a freed page if the lock of the owner's page set is taken.
    pub busy_owner: BusyOwner,
    /// A page set claims no pageblock beyond this number of pages.
    pub claims: ClaimLimit,
    /// A refill searches at most this many of the CPU's pageblocks for free blocks, with the zone's lock
    /// held.
    pub recovery_looks_max: u32,
}

impl PageblockOwnership {
    /// The rule of the RFC. Decision 0016 says which values the RFC leaves open.
    pub const RFC: Self = Self {
        remote: RemoteFrees::PageSet,
        busy_owner: BusyOwner::Zone,
        claims: ClaimLimit::HighMax,
        recovery_looks_max: 16,
    };
}

impl Default for PageblockOwnership {
    /// The rule of the RFC.
    fn default() -> Self {
        Self::RFC
    }
}

/// The destination of a page that another CPU than the owner frees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub enum RemoteFrees {
    /// The owner's page set, if its lock is free.
    #[cfg_attr(feature = "serde", serde(rename = "page set"))]
    PageSet,
    /// A list of the owner, whose page set takes it in later. The freeing CPU does not touch the page set.
    /// Source: the RFC "superpageblocks" (posted in April and May 2026, not merged).
    #[cfg_attr(feature = "serde", serde(rename = "owner's list"))]
    OwnersList,
}

/// The destination of a freed page of an owned pageblock if the owner's page set is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum BusyOwner {
    /// The zone's free lists.
    Zone,
    /// The page set of the freeing CPU. There the page counts as a page without owner.
    FreeingCpu,
}

/// Number of pages that a page set may hold, including the pageblock that it claims or recovers. A zone whose
/// limit is smaller than a pageblock has no owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum ClaimLimit {
    /// The upper limit of `high`.
    HighMax,
    /// The current `high`.
    High,
}
