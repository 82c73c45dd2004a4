//! Whether requests are steered by units of memory above pageblocks, and how.

use super::{BuddyRules, PCP_BUDDY_RFC, Policy};

/// Memory is divided into units of 1 GiB. A unit is tainted if it has pageblocks of a type that cannot be moved, and clean otherwise.
/// What cannot be moved is steered to tainted units, and what can be moved to clean ones.
///
/// Source: the RFC "superpageblocks" (posted in April and May 2026, not merged). Inferred, since its texts leave it open: units
/// are counted from the zone's first frame; a pageblock that is free as a whole taints nothing; fullness is counted in
/// pageblocks that are free as a whole; among units of the same fullness the first one that is met is taken; a fragment whose
/// pageblock is not worth claiming is taken alone. Left out: the worker that moves pages out of tainted units (a laboratory
/// models it), the search of contiguous requests, lock-free lists of remote frees. The RFC keeps counts for each unit; here they
/// are counted anew each time, which gives the same answers and takes longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
#[non_exhaustive]
pub struct UnitSteering {
    /// Entries of a free list that are looked at for one in a unit that suits.
    pub looks_max: u32,
    /// In a zone with more units than this, what cannot be moved may also claim blocks below a pageblock in tainted units, before a
    /// pageblock of a clean unit is claimed.
    pub fragments_above_units: u32,
}

impl UnitSteering {
    /// As the RFC says, as far as it does.
    pub const RFC: Self = Self { looks_max: 8, fragments_above_units: 8 };
}

/// The RFC "superpageblocks": page sets of whole pageblocks, and units of 1 GiB.
pub const SUPERPAGEBLOCK_RFC: Policy = Policy {
    name: "superpageblock-rfc",
    kernel: "RFC of May 2026",
    summary: "as pcp-buddy-rfc; what cannot be moved is kept to as few units of 1 GiB as possible",
    source: "mailing-list posts (RFC, superpageblocks, April and May 2026); what is inferred stands at its rule",
    buddy: BuddyRules { steering: Some(UnitSteering::RFC), ..PCP_BUDDY_RFC.buddy },
    ..PCP_BUDDY_RFC
};
