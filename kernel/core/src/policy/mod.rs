//! Policies: the decisions of kernel versions, as values.
//!
//! A [`Policy`] names the rule, with its constants, for each mechanism of [`pcp`](crate::pcp) and of the
//! buddy lists. A kernel version is one constant in a file of this folder and one line in [`POLICIES`]. Most
//! rules are read on slow paths only: refill, limit, drain, tick. Every allocation and free reads these
//! three:
//! - which orders page sets hold ([`lists`](Policy::lists)),
//! - how the high watermark is checked ([`tuning`](Policy::tuning)),
//! - how the history of frees changes ([`free_history`](Policy::free_history)).

mod buddy;
mod limits;
mod linux_4;
mod linux_5_14;
mod linux_6_1;
mod linux_6_12;
mod linux_6_18;
mod linux_6_19;
mod linux_7_2;
#[cfg(feature = "serde")]
mod or_none;
mod pageblock_ownership;
mod part;
mod pcp_buddy;
mod series;
mod superpageblock;

pub use buddy::{BoostConsumer, BuddyRules, DivertedFrees, DrainType, Fallback, HighAtomicRule};
pub(crate) use limits::MIN_HIGH_FRACTION;
pub use limits::{BatchRule, HighRule, LimitInputs, high_share, zone_batch};
pub use linux_4::{
    HIGH_ORDER_V5, HIGH_ORDER_V5_EXCESS, HIGH_ORDER_V5_LAST_LIST, HIGH_ORDER_V5_SCALED_REFILL, LINUX_4_9,
    LINUX_4_15_PICKS, LINUX_4_15_PREFETCH, LINUX_4_18, LINUX_4_19, fixed,
};
pub use linux_5_14::LINUX_5_14;
pub use linux_6_1::LINUX_6_1;
pub use linux_6_12::{LINUX_6_12, LINUX_6_12_0};
pub use linux_6_18::{LINUX_6_18, LINUX_6_18_0};
pub use linux_6_19::LINUX_6_19;
pub use linux_7_2::LINUX_7_2;
pub use pageblock_ownership::{BusyOwner, ClaimLimit, PageblockOwnership, RemoteFrees};
pub use part::Part;
pub use pcp_buddy::PCP_BUDDY_RFC;
pub use series::{
    LINUX_6_6, LINUX_6_7, PATCH_1, PATCH_2, PATCH_3, PATCH_4, PATCH_5, PATCH_6, PATCH_7, PATCH_8, PATCH_9,
    PATCH_10,
};

pub use superpageblock::{SUPERPAGEBLOCK_RFC, UnitSteering};

use crate::pcp::ListScheme;

/// Every named policy, oldest first.
pub static POLICIES: &[Policy] = &[
    LINUX_4_9,
    HIGH_ORDER_V5,
    HIGH_ORDER_V5_LAST_LIST,
    HIGH_ORDER_V5_EXCESS,
    HIGH_ORDER_V5_SCALED_REFILL,
    LINUX_4_15_PICKS,
    LINUX_4_15_PREFETCH,
    LINUX_4_18,
    LINUX_4_19,
    LINUX_5_14,
    LINUX_6_1,
    LINUX_6_6,
    PATCH_1,
    PATCH_2,
    PATCH_3,
    PATCH_4,
    PATCH_5,
    PATCH_6,
    PATCH_7,
    PATCH_8,
    PATCH_9,
    PATCH_10,
    LINUX_6_7,
    LINUX_6_12_0,
    LINUX_6_12,
    LINUX_6_18_0,
    LINUX_6_18,
    LINUX_6_19,
    LINUX_7_2,
    PCP_BUDDY_RFC,
    SUPERPAGEBLOCK_RFC,
];

/// Former names of policies, each with its present name.
pub static FORMER_NAMES: &[(&str, &str)] = &[("linux-6.18-sliced", "linux-6.19")];

/// The decisions of one kernel version.
///
/// To make your own policy, start from a named one and change some rules. So your policy still compiles when
/// later kernels add rules:
///
/// ```
/// use pageset_core::policy::{BatchRule, HighRule, LINUX_6_12, Policy};
///
/// const MINE: Policy = {
///     let mut policy = LINUX_6_12;
///     policy.name = "mine";
///     policy.batch = BatchRule::Fixed(31);
///     policy.high = HighRule::Fixed(186);
///     policy
/// };
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
#[non_exhaustive]
pub struct Policy {
    /// The policy's name in commands and results.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub name: &'static str,
    /// The kernel that the policy describes.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub kernel: &'static str,
    /// A summary of one sentence.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub summary: &'static str,
    /// Where the policy's rules and constants come from.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub source: &'static str,
    /// The orders and types that page sets hold, and the number of lists.
    pub lists: ListScheme,
    /// The rule for `batch`.
    pub batch: BatchRule,
    /// The rule for the limits of `count`.
    pub high: HighRule,
    /// The number of blocks that a refill fetches.
    pub refill: RefillRule,
    /// How `high` moves between its limits by itself, if it does.
    #[cfg_attr(feature = "serde", serde(with = "or_none"))]
    pub tuning: Option<Tuning>,
    /// A page set's memory of recent frees. After many frees, drains are larger.
    pub free_history: FreeHistory,
    /// When consecutive high-order frees drain the page set, if they do.
    #[cfg_attr(feature = "serde", serde(with = "or_none"))]
    pub free_high: Option<FreeHighRule>,
    /// Whether a running reclaimer lowers the limit at which a free drains.
    pub reclaim: ReclaimLimit,
    /// The lists that a drain visits, and how many blocks it takes from each.
    pub drain_order: DrainOrder,
    /// When a drain takes its blocks off the page set.
    pub drain_picks: DrainPicks,
    /// How a free takes the page set's lock for its drain.
    pub free_drain: FreeDrain,
    /// How the pages of a split block enter the page set if all are freed at once.
    #[cfg_attr(feature = "serde", serde(default))]
    pub split_frees: SplitFrees,
    /// Refills, the free history and decay scale `batch` by at most `2^scale_max`.
    pub scale_max: u8,
    /// How a periodic tick drains the pages above `high`.
    pub decay_drain: DecayDrain,
    /// What is compared with `high` when a block is freed.
    #[cfg_attr(feature = "serde", serde(default))]
    pub counting: Counting,
    /// How many pages a drain on demand takes before it releases the page set's lock.
    pub demand_drain: DemandDrain,
    /// The rules of the zone's free lists.
    pub buddy: BuddyRules,
    /// How CPUs own whole pageblocks, if they do. Page sets of such a policy hold every order up to a
    /// pageblock's ([`ListScheme::EveryOrder`]).
    #[cfg_attr(feature = "serde", serde(with = "or_none"))]
    pub ownership: Option<PageblockOwnership>,
}

impl Policy {
    /// The policy whose present or [former](FORMER_NAMES) name is `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        let today = FORMER_NAMES.iter().find(|(former, _)| *former == name).map_or(name, |(_, today)| today);
        POLICIES.iter().find(|policy| policy.name == today)
    }

    /// Whether a page set's refills and drains depend on the page set alone. They do not if CPUs own
    /// pageblocks. Only such a policy can be replayed
    /// without a zone.
    #[must_use]
    pub const fn is_of_page_sets_alone(&self) -> bool {
        self.ownership.is_none()
    }
}

/// The number of blocks that a refill of order `o` fetches (spec §2.7.2, §3.5, §4.3). All rules give 1 for
/// batch 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum RefillRule {
    /// `batch`, whatever the order.
    BatchOfBlocks,
    /// `max(batch >> o, 2)`.
    Batch,
    /// As `Batch`, but for order 0 the number doubles at each refill without a free in between. The limit is
    /// `batch << scale_max` and the room left below `high`.
    Doubling,
}

/// Automatic tuning of `high` (patch 7 and later of the 2023 series).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub struct Tuning {
    /// The condition that keeps a refill from raising `high`.
    pub raise: RaiseHigh,
    /// How much a tick lowers `high`.
    pub decay: Decay,
    /// The handling of zones below their high watermark.
    pub below_high: BelowHigh,
}

/// The condition that keeps a refill from raising `high` by the number of pages it fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum RaiseHigh {
    /// The reclaimer runs in this zone (patch 7).
    UnlessReclaimActive,
    /// The zone is below its high watermark (patch 8 and later).
    UnlessBelowHigh,
}

/// How the zone's `BELOW_HIGH` flag is set by the zone walk (spec §2.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum BelowHigh {
    /// There is no such flag.
    Ignored,
    /// The high watermark is checked on every pass, flag or not (patch 8 as posted).
    CheckAlways,
    /// Nothing is checked while the flag is set (as merged).
    CheckOnce,
}

/// How much a tick lowers `high` while it is above its lower limit (spec §2.11, §3.7, §3.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub struct Decay {
    /// The part of `high` that is taken off.
    pub part: Part,
    /// The rounding to whole pages.
    pub rounded: Rounded,
    /// Whether a tick takes at most the pages that stayed unused since the last tick.
    pub unused_only: bool,
}

impl Decay {
    /// A fifth (patch 7 as posted).
    pub const FIFTH: Self = Self { part: Part::new(1, 5), rounded: Rounded::Up, unused_only: false };
    /// A fifth, but at most the pages that stayed unused since the last tick (patch 9 as posted).
    pub const UNUSED_UP_TO_FIFTH: Self =
        Self { part: Part::new(1, 5), rounded: Rounded::Down, unused_only: true };
    /// An eighth (as merged).
    pub const EIGHTH: Self = Self { part: Part::new(1, 8), rounded: Rounded::Down, unused_only: false };

    /// The amount taken off `high`, if `unused` pages stayed unused.
    pub(crate) fn of(self, high: i32, unused: i32) -> i32 {
        let part = match self.rounded {
            Rounded::Down => self.part.of(high),
            Rounded::Up => high - self.part.rest().of(high),
        };
        if self.unused_only { part.min(unused) } else { part }
    }
}

/// How a part is rounded to whole pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum Rounded {
    /// Down.
    Down,
    /// Up.
    Up,
}

/// How a tick's drain takes the page set's lock (spec §2.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum DecayDrain {
    /// Once.
    Whole,
    /// Once per `batch` pages.
    Slices,
}

/// How a drain on demand takes the page set's lock (spec §2.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum DemandDrain {
    /// Once.
    Whole,
    /// Once per `batch << scale_max` pages.
    Chunks,
}

/// A page set's memory of recent frees (spec §2.8, §3.10). An allocation halves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum FreeHistory {
    /// Nothing: a drain is always `batch`.
    None,
    /// A factor: the next drain takes `batch << factor` pages. Each drain that is smaller than the room
    /// raises the factor by one. The room is the page set's limit minus `batch`.
    Factor {
        /// The cap on the factor.
        cap: FactorCap,
        /// Whether a drain of exactly the room raises the factor too.
        grows: FactorGrows,
    },
    /// The number of pages freed, up to about `batch << scale_max`.
    Count {
        /// How much a free under pressure lowers `high`.
        step: PressureStep,
    },
}

/// The cap on the free factor of [`FreeHistory::Factor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum FactorCap {
    /// Only the room: a drain does not exceed it (the base of the 2023 series).
    Room,
    /// The room and `scale_max` (patch 4).
    ScaleMax,
}

/// Whether the free factor also grows if a drain fills the room exactly ([`FreeHistory::Factor`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum FactorGrows {
    /// It grows only if the drain is smaller than the room (base to patch 6).
    Below,
    /// It grows in both cases (patches 7 to 9).
    UpTo,
}

/// How much a free under pressure lowers `high`, with a counted history (spec §3.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum PressureStep {
    /// The number of pages recently freed (patch 10 as posted).
    Count,
    /// That number, but at least `batch` (as merged).
    CountOrBatch,
}

/// Whether a running reclaimer lowers the limit at which a free drains (spec §2.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum ReclaimLimit {
    /// No effect.
    Ignored,
    /// The limit is at most four batches.
    FourBatches,
}

/// The lists that a drain visits, and how many blocks it takes from each (spec §2.10, §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum DrainOrder {
    /// Begins with the list of the freed block and empties each list before the next.
    ListByList,
    /// Round-robin: one block more from each list than from the previous one. A single nonempty list gives
    /// everything.
    RoundRobin(FirstList),
    /// First the lists that hold more than an equal share of `high`, the fullest first. Then as `ListByList`.
    ExcessFirst,
    /// First the lists of order 0, if the freed block is a single page, or else the lists of all higher orders;
    /// as `ListByList` among them. Then the other lists.
    ClassFirst,
}

/// The number that a free compares with `high`.
///
/// A page set counts its pages only. The other two count when its pages reach `high`, list by list, so that the
/// kernels' policies do not pay for counts that they do not use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum Counting {
    /// All pages of the page set.
    #[default]
    Pages,
    /// Its blocks, whatever their order (review of the high-order series v5, 2016).
    Blocks,
    /// The pages of the freed block's class: order 0, or all higher orders. So each class has `high` for itself
    /// (the same review).
    PagesOfClass,
}

/// The first list of a round-robin drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum FirstList {
    /// List 0.
    Zero,
    /// List 1. Linux 4.9 goes to the next list before it looks at one.
    One,
    /// The list after the one where the last drain stopped.
    AfterLast,
}

/// When a drain takes its blocks off the page set. All variants drain the same blocks in the same order.
/// They differ in how long the drain holds the zone's lock, and in how much it does before it asks for the
/// lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum DrainPicks {
    /// One by one, under the zone's lock.
    UnderLock,
    /// All at once, before the zone's lock is requested.
    BeforeLock {
        /// Whether the metadata of each block's buddy, which the zone reads first, is prefetched.
        prefetches_buddies: bool,
    },
}

/// How a free takes the page set's lock for its drain (spec §3.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum FreeDrain {
    /// Once.
    Whole,
    /// Once per `batch` pages. If another CPU holds the lock by then, the remaining pages stay in the page
    /// set.
    Slices(NextSlice),
}

/// The condition for another slice of a drain in slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum NextSlice {
    /// Pages are due and the page set has some (as merged).
    WhileDue,
    /// As `WhileDue`, and the page set is at its limit (as first posted).
    WhileAtLimit,
}

impl FreeDrain {
    /// Number of pages to drain under one hold of the lock, if `due` pages are due.
    #[must_use]
    pub const fn slice(self, due: i32, batch: i32) -> i32 {
        match self {
            Self::Slices(_) if batch < due => batch,
            _ => due,
        }
    }

    /// Whether another slice follows, if pages are still due.
    #[must_use]
    pub const fn goes_on(self, count: i32, limit: i32) -> bool {
        match self {
            Self::Whole => false,
            Self::Slices(NextSlice::WhileDue) => count > 0,
            Self::Slices(NextSlice::WhileAtLimit) => count > 0 && count >= limit,
        }
    }
}

/// How pages enter the page set if a block was allocated whole, split, and freed at once, such as a task's
/// stack. Only replays of recordings use this rule: the kernel emits an event per page, and the events do
/// not show whether the pages entered singly or as the block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum SplitFrees {
    /// As single pages.
    #[default]
    Singly,
    /// As the original block.
    Joined,
}

/// When consecutive frees of order 1 to 3 drain the page set: *free_high* (spec §2.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub struct FreeHighRule {
    /// Whether the previous free must have been of order 1 to 3 too (patch 1).
    pub previous: PreviousFree,
    /// Whether a CPU with a large share of the data caches keeps up to `batch` pages (patches 2 and 3).
    #[cfg_attr(feature = "serde", serde(with = "or_none"))]
    pub keep_batch: Option<SliceRule>,
    /// The number of recently freed pages that is needed, if the history is a count.
    pub threshold: FreeHighThreshold,
    /// How much is drained.
    pub drains: FreeHighDrains,
}

/// The condition on the previous free, without which a free does not drain by free_high.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum PreviousFree {
    /// No condition.
    Any,
    /// The previous free was of order 1 to 3.
    HighOrder,
}

/// The rule that says whether a CPU's share of the data caches is large: it is if more than `batches ·
/// batch` pages fit into it (spec §2.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub struct SliceRule {
    /// The caches that are summed.
    pub caches: SliceCaches,
    /// The threshold, in batches.
    pub batches: u32,
}

/// The caches that make up a CPU's share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum SliceCaches {
    /// All data and unified caches (as posted).
    All,
    /// The last level (as merged).
    LastLevel,
}

/// The least number of recently freed pages for a drain by free_high.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub struct FreeHighThreshold {
    /// This many batches,
    pub batches: u16,
    /// plus this part of the lower limit of `high`.
    pub high_min_part: Part,
}

impl FreeHighThreshold {
    /// `batch`.
    pub const BATCH: Self = Self { batches: 1, high_min_part: Part::NONE };
    /// `batch + high_min / 2` (Linux 6.16).
    pub const BATCH_AND_HALF_HIGH_MIN: Self = Self { batches: 1, high_min_part: Part::new(1, 2) };

    /// Whether `freed` pages reach the threshold.
    #[inline]
    pub(crate) fn is_reached(self, freed: i32, batch: i32, high_min: i32) -> bool {
        let (freed, batches) = (i64::from(freed), i64::from(batch) * i64::from(self.batches));
        // Most frees fail the first comparison and avoid the division of the second.
        freed >= batches && freed >= batches + i64::from(self.high_min_part.of(high_min))
    }
}

/// The amount that a free_high drain takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub struct FreeHighDrains {
    /// The part of the page set's pages. At least one page is taken.
    pub part: Part,
    /// Whether the amount is capped at `batch << scale_max` pages (patch 7).
    pub capped: bool,
}

impl FreeHighDrains {
    /// All pages.
    pub const ALL: Self = Self { part: Part::ALL, capped: false };
    /// At most `batch << scale_max` pages (patch 7).
    pub const CAPPED: Self = Self { part: Part::ALL, capped: true };

    /// How many of `count` pages a free drains: at least one, if there is one. A capped rule drains at most
    /// `most`.
    pub(crate) fn of(self, count: i32, most: i32) -> i32 {
        let pages = self.part.of(count).max(count.min(1));
        if self.capped { pages.min(most) } else { pages }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for policy in POLICIES {
            assert_eq!(Policy::named(policy.name), Some(policy));
        }
        assert_eq!(Policy::named("linux-0.01"), None);
        for (former, today) in FORMER_NAMES {
            assert!(Policy::named(former).is_some_and(|policy| policy.name == *today), "{former}");
        }
    }
}
