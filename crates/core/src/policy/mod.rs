//! Policies: what a kernel version decides, as values.
//!
//! A [`Policy`] says which rule each mechanism of [`pcp`](crate::pcp) and of the buddy lists follows, and with which
//! constants. A kernel version is one constant in one file of this folder and one line in [`POLICIES`]; nothing else
//! changes. Most rules are read on slow paths (refill, limit, drain, tick). Every allocation and free reads three:
//! which orders page sets hold ([`lists`](Policy::lists)), how the high watermark is looked at
//! ([`tuning`](Policy::tuning)), and how the history of frees goes on ([`free_history`](Policy::free_history)).

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
pub use pageblock_ownership::{BusyOwner, ClaimLimit, PageblockOwnership};
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

/// One kernel version's decisions.
///
/// To make a policy of your own, change some rules of a named one. A new kernel may add rules:
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
    /// The name that commands and results use.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub name: &'static str,
    /// The kernel it describes.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub kernel: &'static str,
    /// One sentence: what it is.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub summary: &'static str,
    /// Where its rules and constants come from.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub source: &'static str,
    /// Which orders and types per-CPU page sets hold, and in how many lists.
    pub lists: ListScheme,
    /// How `batch` follows from the zone's size.
    pub batch: BatchRule,
    /// How the limits of `count` follow from the zone.
    pub high: HighRule,
    /// How many blocks a refill fetches.
    pub refill: RefillRule,
    /// When `high` moves between its limits by itself.
    #[cfg_attr(feature = "serde", serde(with = "or_none"))]
    pub tuning: Option<Tuning>,
    /// What a page set remembers of recent frees, and how that sizes a drain.
    pub free_history: FreeHistory,
    /// When consecutive high-order frees drain the page set, if they do.
    #[cfg_attr(feature = "serde", serde(with = "or_none"))]
    pub free_high: Option<FreeHighRule>,
    /// What the reclaimer's activity does to the limit of a free.
    pub reclaim: ReclaimLimit,
    /// Which lists a drain visits, and how long it stays.
    pub drain_order: DrainOrder,
    /// When a drain takes its blocks off the page set.
    pub drain_picks: DrainPicks,
    /// How a free takes the page set's lock for its drain.
    pub free_drain: FreeDrain,
    /// How the pages of a block that was split go when all are freed at once.
    #[cfg_attr(feature = "serde", serde(default))]
    pub split_frees: SplitFrees,
    /// Refill, free history and decay never scale `batch` by more than `2^scale_max`.
    pub scale_max: u8,
    /// How a periodic tick drains what exceeds `high`.
    pub decay_drain: DecayDrain,
    /// How much a drain on demand takes from a page set before it releases the lock.
    pub demand_drain: DemandDrain,
    /// The zone's own lists.
    pub buddy: BuddyRules,
    /// Whether CPUs own whole pageblocks, and how. Its page sets hold every order up to the pageblock's
    /// ([`ListScheme::EveryOrder`]).
    #[cfg_attr(feature = "serde", serde(with = "or_none"))]
    pub ownership: Option<PageblockOwnership>,
}

impl Policy {
    /// The policy called `name`, now or [formerly](FORMER_NAMES).
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        let today = FORMER_NAMES.iter().find(|(former, _)| *former == name).map_or(name, |(_, today)| today);
        POLICIES.iter().find(|policy| policy.name == today)
    }

    /// Whether its page sets decide by themselves, whatever is on the zone's lists. Only then can they be played without a
    /// zone.
    #[must_use]
    pub const fn is_of_page_sets_alone(&self) -> bool {
        self.ownership.is_none()
    }
}

/// How many blocks a refill of order `o` fetches (spec §2.7.2, §3.5, §4.3). All rules give 1 for batch 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum RefillRule {
    /// `batch`, whatever the order.
    BatchOfBlocks,
    /// `max(batch >> o, 2)`.
    Batch,
    /// As `Batch`, and order 0 doubles at each refill without a free in between, up to `batch << scale_max` and the
    /// room left below `high`.
    Doubling,
}

/// Automatic tuning of `high` (patch 7 and later of the 2023 series).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub struct Tuning {
    /// What keeps a refill from raising `high`.
    pub raise: RaiseHigh,
    /// What a tick takes off `high`.
    pub decay: Decay,
    /// What happens while the zone is below its high watermark.
    pub below_high: BelowHigh,
}

/// What keeps a refill from raising `high` by what it fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum RaiseHigh {
    /// The reclaimer is at work in this zone (patch 7).
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

/// What a tick takes off `high` while it is above its lower limit (spec §2.11, §3.7, §3.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub struct Decay {
    /// Which part of `high`.
    pub part: Part,
    /// What becomes of a part of a page.
    pub rounded: Rounded,
    /// Whether it takes no more than the pages that stayed unused since the last tick.
    pub unused_only: bool,
}

impl Decay {
    /// A fifth (patch 7 as posted).
    pub const FIFTH: Self = Self { part: Part::new(1, 5), rounded: Rounded::Up, unused_only: false };
    /// A fifth, but no more than the pages that stayed unused since the last tick (patch 9 as posted).
    pub const UNUSED_UP_TO_FIFTH: Self =
        Self { part: Part::new(1, 5), rounded: Rounded::Down, unused_only: true };
    /// An eighth (as merged).
    pub const EIGHTH: Self = Self { part: Part::new(1, 8), rounded: Rounded::Down, unused_only: false };

    /// What it takes off `high`, if so many pages stayed unused.
    pub(crate) fn of(self, high: i32, unused: i32) -> i32 {
        let part = match self.rounded {
            Rounded::Down => self.part.of(high),
            Rounded::Up => high - self.part.rest().of(high),
        };
        if self.unused_only { part.min(unused) } else { part }
    }
}

/// What becomes of a part of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum Rounded {
    /// It stays.
    Down,
    /// A whole one goes.
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

/// What a page set remembers of recent frees (spec §2.8, §3.10). An allocation halves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum FreeHistory {
    /// Nothing: a drain is always `batch`.
    None,
    /// A power of two by which the next drain exceeds `batch`; each drain that fits raises it by one.
    Factor {
        /// Where it stops growing.
        cap: FactorCap,
        /// Whether a drain of exactly the room left still raises it.
        grows: FactorGrows,
    },
    /// The pages freed, up to about `batch << scale_max`.
    Count {
        /// What lowers `high` under pressure.
        step: PressureStep,
    },
}

/// Where a free factor stops growing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum FactorCap {
    /// Only where the drain would exceed the room (the series' base).
    Room,
    /// There, and at `scale_max` (patch 4).
    ScaleMax,
}

/// Whether the free factor grows when the drain fills the room exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum FactorGrows {
    /// Only below the room (base to patch 6).
    Below,
    /// Up to the room (patch 7 to 9).
    UpTo,
}

/// How far `high` falls at a free under pressure, with a counted history (spec §3.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum PressureStep {
    /// By the pages recently freed (patch 10 as posted).
    Count,
    /// By those, but at least `batch` (as merged).
    CountOrBatch,
}

/// What the reclaimer's activity does to the limit of a free (spec §2.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum ReclaimLimit {
    /// Nothing.
    Ignored,
    /// The limit is four batches at most.
    FourBatches,
}

/// Which lists a drain visits, and how long it stays (spec §2.10, §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum DrainOrder {
    /// From the list that was freed to, each list until it is empty.
    ListByList,
    /// In turn, one block more at each list than at the one before; a lone list gives everything.
    RoundRobin(FirstList),
    /// Only lists that hold more than an equal share of `high`, the fullest first; then as `ListByList`.
    ExcessFirst,
}

/// Where a drain in turn begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum FirstList {
    /// At list 0.
    Zero,
    /// At list 1: vanilla Linux 4.9 steps on before it looks.
    One,
    /// Behind the list where the last drain stopped.
    AfterLast,
}

/// When a drain takes its blocks off the page set. The same blocks go the same way; what differs is how long the zone's lock is
/// held, and what has to be waited for meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum DrainPicks {
    /// One by one, under the zone's lock.
    UnderLock,
    /// All, before the zone's lock is asked for.
    BeforeLock {
        /// Whether the metadata of each block's buddy, which the zone looks at first, is fetched ahead.
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
    /// Once per `batch` pages, each time only if nobody else has it meanwhile; otherwise the rest stays.
    Slices(NextSlice),
}

/// Whether a drain in slices takes another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum NextSlice {
    /// While pages are due and the page set has some (as merged).
    WhileDue,
    /// While the page set is at its limit, too (as first posted).
    WhileAtLimit,
}

impl FreeDrain {
    /// Pages that are drained under one hold of the lock, of so many that are due.
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

/// How the pages of a block that was allocated whole and split (a task's stack, say) go when all are freed at once. Read by
/// those who play recordings: the kernel reports each page, and the events do not say which of the two it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum SplitFrees {
    /// Page by page.
    #[default]
    Singly,
    /// As the block that they were.
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
    /// How much history it takes, if the history is a count.
    pub threshold: FreeHighThreshold,
    /// How much is drained.
    pub drains: FreeHighDrains,
}

/// Whether the previous free matters to free_high.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum PreviousFree {
    /// It does not.
    Any,
    /// It must have been of order 1 to 3.
    HighOrder,
}

/// Which share of the data caches counts as large: more than `batches · batch` pages (spec §2.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub struct SliceRule {
    /// Which caches are summed.
    pub caches: SliceCaches,
    /// The threshold, in batches.
    pub batches: u32,
}

/// Which caches make up a CPU's slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum SliceCaches {
    /// All data and unified caches (as posted).
    All,
    /// The last level (as merged).
    LastLevel,
}

/// The count of freed pages from which free_high is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub struct FreeHighThreshold {
    /// So many batches,
    pub batches: u16,
    /// and this part of the lower limit of `high`.
    pub high_min_part: Part,
}

impl FreeHighThreshold {
    /// `batch`.
    pub const BATCH: Self = Self { batches: 1, high_min_part: Part::NONE };
    /// `batch + high_min / 2` (Linux 6.16).
    pub const BATCH_AND_HALF_HIGH_MIN: Self = Self { batches: 1, high_min_part: Part::new(1, 2) };

    /// Whether so many freed pages are enough.
    #[inline]
    pub(crate) fn is_reached(self, freed: i32, batch: i32, high_min: i32) -> bool {
        let (freed, batches) = (i64::from(freed), i64::from(batch) * i64::from(self.batches));
        // Most frees end at the first: the second divides.
        freed >= batches && freed >= batches + i64::from(self.high_min_part.of(high_min))
    }
}

/// How much a free_high drain takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub struct FreeHighDrains {
    /// Which part of the pages of the page set: at least one page.
    pub part: Part,
    /// Whether it is `batch << scale_max` pages at most (patch 7).
    pub capped: bool,
}

impl FreeHighDrains {
    /// Everything.
    pub const ALL: Self = Self { part: Part::ALL, capped: false };
    /// At most `batch << scale_max` pages (patch 7).
    pub const CAPPED: Self = Self { part: Part::ALL, capped: true };

    /// How many of `count` pages, if `most` is the cap.
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
