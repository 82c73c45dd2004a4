//! The decisions of the zone's free lists that differ between kernel versions.

use super::UnitSteering;

/// Rules of the buddy lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub struct BuddyRules {
    /// What happens when a type has no block large enough (spec §1.6).
    pub fallback: Fallback,
    /// Which type's list a drained block goes to (spec §1.5).
    pub drain_type: DrainType,
    /// Who wakes the reclaimer after a steal raised the watermarks (spec §1.6).
    pub boost_consumer: BoostConsumer,
    /// Whether `pgfree` counts frees that a page set would have taken but could not (spec §6).
    pub diverted_frees: DivertedFrees,
    /// How the reserve for atomic high-order requests is sized and charged (spec §1.11, §1.12).
    pub highatomic: HighAtomicRule,
    /// Whether requests are steered by units of 1 GiB, and how.
    #[cfg_attr(feature = "serde", serde(default, with = "super::or_none"))]
    pub steering: Option<UnitSteering>,
}

impl BuddyRules {
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

/// How memory of another type is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum Fallback {
    /// Move free blocks to the wanted type's lists, then look there again; a free block's list may then differ from
    /// its pageblock's type (spec §1.6.1).
    StealAndRetry,
    /// Claim whole pageblocks where possible, else take one block and leave the rest where it is; a free block's list
    /// is always its pageblock's (spec §1.6.2).
    ClaimOrTakeOne,
}

/// Which type a drained block has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum DrainType {
    /// The pageblock's type when it was freed, or the list's when it was fetched.
    Remembered,
    /// The pageblock's type now.
    Reread,
}

/// How the HIGHATOMIC reserve counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum HighAtomicRule {
    /// Up to 1 % and one block more; watermark checks subtract whole pageblocks.
    WholeBlocks,
    /// Up to 1 % rounded up, none in small zones; watermark checks subtract the reserve's free frames.
    FreeFrames,
}

/// Which request clears the mark of a boosted zone and wakes the reclaimer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum BoostConsumer {
    /// The next one in that zone.
    AnyRequest,
    /// The next one that may wake it.
    KswapdRequest,
}

/// Whether frees that bypass a page set because it is busy, or because their pageblock is isolated, are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum DivertedFrees {
    /// They are not.
    Uncounted,
    /// They are.
    Counted,
}
