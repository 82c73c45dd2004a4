//! Steering: memory that cannot be moved is kept in few units of 1 GiB.

/// Memory is divided into units of 1 GiB. A unit is *tainted* if it has pageblocks of a type that cannot be
/// moved, and *clean* otherwise. Requests for movable memory prefer clean units, and other requests prefer
/// tainted units.
///
/// Source: the RFC "superpageblocks" (posted in April and May 2026, not merged). The RFC's texts leave some
/// points open. For the open points, this project chose:
///
/// - Units are counted from the zone's first frame, rounded down to a multiple of 1024 frames.
///
/// - A completely free pageblock does not taint its unit.
///
/// - The fullest unit is the one with the fewest completely free pageblocks. Among equally full units, the
///   search chooses the unit that it finds first.
///
/// - If too few frames of a pageblock are free for a claim, a request takes a free block, and the pageblock
///   keeps its type.
///
/// This crate does not model two parts of the RFC: the search of contiguous requests, and the worker that
/// moves pages out of tainted units. The study `ageing` models the worker. The RFC's lists of pages that
/// other CPUs freed are a separate rule, `PageblockOwnership::remote`. The RFC keeps counts for each unit.
/// This crate counts a unit's pageblocks at each request. The answers are the same as with the RFC's counts,
/// but take longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
#[non_exhaustive]
pub struct UnitSteering {
    /// A search for a block in a suitable unit looks at this many blocks of a free list.
    pub looks_max: u32,
    /// In a zone with more units than `fragments_above_units`, a request for memory that cannot be moved also
    /// takes blocks smaller than a pageblock from tainted units. The request tries the blocks of tainted
    /// units before the request claims a pageblock of a clean unit.
    pub fragments_above_units: u32,
}

impl UnitSteering {
    /// The values of the RFC.
    pub const RFC: Self = Self { looks_max: 8, fragments_above_units: 8 };
}
