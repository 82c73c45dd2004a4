//! Whether CPUs own whole pageblocks, and what follows from it.

/// CPUs claim whole pageblocks from the zone and split them in their page sets. A page that is freed goes to
/// the owner of its pageblock, whoever frees it. A drain merges pages of owned pageblocks before it takes the
/// zone's lock.
///
/// Source: the RFC "pcp buddy allocator" (posted in April 2026, not merged). What its text leaves open is a
/// field here; decision 0016 gives the reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
#[non_exhaustive]
pub struct PageblockOwnership {
    /// Where a page goes if somebody holds the lock of the owner's page set.
    pub busy_owner: BusyOwner,
    /// Up to which number of pages a page set claims pageblocks.
    pub claims: ClaimLimit,
    /// How many pageblocks on its list a refill looks at for fragments to take back: it does so with the
    /// zone's lock held.
    pub recovery_looks_max: u32,
}

impl PageblockOwnership {
    /// As the RFC says, as far as it does.
    pub const RFC: Self =
        Self { busy_owner: BusyOwner::Zone, claims: ClaimLimit::HighMax, recovery_looks_max: 16 };
}

/// Where a page of an owned pageblock goes if the owner's page set is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum BusyOwner {
    /// To the zone's free lists.
    Zone,
    /// To the page set of the CPU that frees it, as a page that nobody owns.
    FreeingCpu,
}

/// Up to how many pages a page set holds with the pageblock that it claims, or takes back fragments of. A
/// zone whose limit is smaller than a pageblock has no owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum ClaimLimit {
    /// The upper limit of `high`.
    HighMax,
    /// `high` at this moment.
    High,
}
