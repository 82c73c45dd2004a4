//! Steering: memory that cannot be moved is kept in few units of 1 GiB.

use super::{BuddyRules, PCP_BUDDY_RFC, Policy};

/// Memory is divided into units of 1 GiB. A unit is tainted if it has pageblocks of a type that cannot be
/// moved, and clean otherwise. Requests for movable memory prefer clean units, and other requests prefer
/// tainted units.
///
/// Source: the RFC "superpageblocks" (posted in April and May 2026, not merged). Its texts leave some points
/// open. These are chosen here:
///
/// - Units are counted from the zone's first frame.
///
/// - A completely free pageblock does not taint its unit.
///
/// - The fullest unit is the one with the fewest completely free pageblocks. Among equally full units, the
///   one that the search meets first is taken.
///
/// - If a pageblock is not worth claiming, a free block in it is taken alone.
///
/// Not modelled: the worker that moves pages out of tainted units (`pageset-sim` models it), and the search of
/// contiguous requests. Lists of pages that other CPUs freed are a choice of `PageblockOwnership::remote`. The
/// RFC keeps counts for each unit. Here they are counted anew each time, which gives the same answers and
/// takes longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
#[non_exhaustive]
pub struct UnitSteering {
    /// A search for a block in a suitable unit looks at this many blocks of a free list.
    pub looks_max: u32,
    /// In a zone with more units than this, requests for memory that cannot be moved also take blocks
    /// smaller than a pageblock from tainted units, before they claim a pageblock of a clean unit.
    pub fragments_above_units: u32,
}

impl UnitSteering {
    /// The values of the RFC.
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
