//! Rules of a zone's free lists that differ between kernel versions.

use super::{HAS_LAB, UnitSteering};

/// Rules of the buddy lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub struct BuddyRules {
    /// The fallback when a type has no block large enough (spec §1.6).
    pub fallback: Fallback,
    /// The type whose list receives a drained block (spec §1.5).
    pub drain_type: DrainType,
    /// The request that wakes the reclaimer after a fallback has raised the watermarks (spec §1.6).
    pub boost_consumer: BoostConsumer,
    /// Whether `pgfree` counts frees that bypass a page set (spec §6).
    pub diverted_frees: DivertedFrees,
    /// Size and accounting of the reserve for atomic high-order requests (spec §1.11, §1.12).
    pub highatomic: HighAtomicRule,
    /// How requests are steered to units of 1 GiB. `None`: the policy does not steer. Needs the
    /// feature `lab`.
    #[cfg_attr(feature = "serde", serde(default, with = "super::or_none"))]
    pub steering: Option<UnitSteering>,
}

impl BuddyRules {
    /// How requests are steered to units. Always `None` without the feature `lab`, so that the compiler
    /// leaves the mechanism out.
    #[inline]
    pub(crate) fn steering(&self) -> Option<UnitSteering> {
        self.steering.filter(|_| HAS_LAB)
    }

    /// Linux 6.1 (stable 6.1.192).
    pub const LINUX_6_1: Self = Self {
        fallback: Fallback::StealAndRetry,
        drain_type: DrainType::Remembered,
        boost_consumer: BoostConsumer::AnyRequest,
        diverted_frees: DivertedFrees::Uncounted,
        highatomic: HighAtomicRule::WholeBlocks,
        steering: None,
    };
    /// Linux 6.12 (stable 6.12.117).
    pub const LINUX_6_12: Self = Self {
        fallback: Fallback::ClaimOrTakeOne,
        drain_type: DrainType::Reread,
        boost_consumer: BoostConsumer::KswapdRequest,
        diverted_frees: DivertedFrees::Counted,
        highatomic: HighAtomicRule::FreeFrames,
        steering: None,
    };
}

/// How a request gets memory of another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum Fallback {
    /// The request moves free blocks to the wanted type's lists, and then searches these lists again. Moved
    /// blocks keep their pageblocks' types, so the list of a free block may have another type than the
    /// block's pageblock (spec §1.6.1).
    StealAndRetry,
    /// The request claims a whole pageblock if possible. Otherwise the request takes one block and leaves the
    /// rest of the pageblock. A free block is always on the list of its pageblock's type (spec §1.6.2).
    ClaimOrTakeOne,
}

/// The type whose list receives a drained block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum DrainType {
    /// The type that was stored in the block's state: the pageblock's type when the block was freed, or the
    /// list's type when a refill fetched the block.
    Remembered,
    /// The pageblock's current type.
    Reread,
}

/// The size and accounting of the HIGHATOMIC reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum HighAtomicRule {
    /// A pageblock joins the reserve while the reserve is smaller than 1 % of the zone plus one pageblock.
    /// Watermark checks subtract all frames of the reserve.
    WholeBlocks,
    /// A pageblock joins the reserve while the reserve is smaller than 1 % of the zone, rounded up to
    /// pageblocks. If 1 % of a zone is less than a pageblock, the zone has no reserve. Watermark checks
    /// subtract the reserve's free frames.
    FreeFrames,
}

/// The request that wakes the reclaimer in a zone with raised watermarks. The request that wakes the
/// reclaimer also clears the zone's mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum BoostConsumer {
    /// The next request that tries to take a block from this zone.
    AnyRequest,
    /// The next request that may wake the reclaimer.
    KswapdRequest,
}

/// Whether `pgfree` counts frees that bypass a page set because the page set's lock is taken or the pageblock
/// is isolated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum DivertedFrees {
    /// `pgfree` does not count frees that bypass a page set because of its lock or an isolated pageblock.
    Uncounted,
    /// `pgfree` counts frees that bypass a page set because of its lock or an isolated pageblock.
    Counted,
}
