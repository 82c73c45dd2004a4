//! Policies: values that describe the decisions of kernel versions.
//!
//! A [`Policy`] has a rule, with its constants, for each mechanism of [`pcp`](crate::pcp) and of the buddy
//! lists. A kernel version has one constant in a file of this folder, and one line in each of the two lists
//! behind [`POLICIES`]. The allocator reads most rules only in refills, drains and ticks, or when it computes
//! limits. Allocations and frees that a page set serves read only a few rules. Examples:
//! - [`lists`](Policy::lists) says which orders page sets hold.
//! - [`tuning`](Policy::tuning) says how an allocation checks the high watermark.
//! - [`free_history`](Policy::free_history) says how the history of frees changes.

mod buddy;
#[cfg(feature = "lab")]
mod lab;
mod limits;
mod linux_5_14;
mod linux_6_1;
mod linux_6_12;
mod linux_6_18;
mod linux_6_19;
mod linux_6_6;
mod linux_6_7;
mod linux_7_2;
#[cfg(feature = "serde")]
mod or_none;
mod pageblock_ownership;
mod part;
mod superpageblock;

pub use buddy::{BoostConsumer, BuddyRules, DivertedFrees, DrainType, Fallback, HighAtomicRule};
#[cfg(feature = "lab")]
pub use lab::*;
pub(crate) use limits::MIN_HIGH_FRACTION;
pub use limits::{BatchRule, HighRule, LimitInputs, high_share, zone_batch};
pub use linux_5_14::LINUX_5_14;
pub use linux_6_1::LINUX_6_1;
pub use linux_6_6::LINUX_6_6;
pub use linux_6_7::LINUX_6_7;
pub use linux_6_12::{LINUX_6_12, LINUX_6_12_0};
pub use linux_6_18::{LINUX_6_18, LINUX_6_18_0};
pub use linux_6_19::LINUX_6_19;
pub use linux_7_2::LINUX_7_2;
pub use pageblock_ownership::{BusyOwner, ClaimLimit, PageblockOwnership, RemoteFrees};
pub use part::Part;
pub use superpageblock::UnitSteering;

use crate::pcp::ListScheme;

/// Every named policy, oldest first.
#[cfg(feature = "lab")]
pub static POLICIES: &[Policy] = lab::ALL;
/// Every named policy, oldest first. The feature `lab` adds more.
#[cfg(not(feature = "lab"))]
pub static POLICIES: &[Policy] = KERNELS;

/// The policies of every build. Builds with the feature `lab` have more policies.
#[cfg(any(test, not(feature = "lab")))]
const KERNELS: &[Policy] = &[
    LINUX_5_14,
    LINUX_6_1,
    LINUX_6_6,
    LINUX_6_7,
    LINUX_6_12_0,
    LINUX_6_12,
    LINUX_6_18_0,
    LINUX_6_18,
    LINUX_6_19,
    LINUX_7_2,
];

/// Whether this build contains the mechanisms that no kernel of today has. Without the mechanisms of `lab`,
/// an allocator refuses a policy that has a [`lab_rule`](Policy::lab_rule).
pub(crate) const HAS_LAB: bool = cfg!(feature = "lab");

/// Former names of policies, each with its present name.
pub static FORMER_NAMES: &[(&str, &str)] = &[("linux-6.18-sliced", "linux-6.19")];

/// The decisions of one kernel version.
///
/// To make your own policy, start from a named policy and change some rules. Code that starts from a named
/// policy still compiles when a later version of this crate adds rules:
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
    /// The source of the policy's rules and constants.
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
    /// How `high` changes between its limits. `None`: `high` stays at the lower limit.
    #[cfg_attr(feature = "serde", serde(with = "or_none"))]
    pub tuning: Option<Tuning>,
    /// How a page set remembers recent frees. After many frees, drains are larger.
    pub free_history: FreeHistory,
    /// When consecutive high-order frees drain the page set. `None`: high-order frees drain as all other
    /// frees do.
    #[cfg_attr(feature = "serde", serde(with = "or_none"))]
    pub free_high: Option<FreeHighRule>,
    /// Whether a running reclaimer lowers the limit at which a free drains.
    pub reclaim: ReclaimLimit,
    /// The lists that a drain visits, and how many blocks the drain takes from each list.
    pub drain_order: DrainOrder,
    /// When a drain takes its blocks off the page set.
    pub drain_picks: DrainPicks,
    /// How a free takes the page set's lock for its drain.
    pub free_drain: FreeDrain,
    /// How the pages of a split block enter the page set if all these pages are freed at once.
    #[cfg_attr(feature = "serde", serde(default))]
    pub split_frees: SplitFrees,
    /// Refills, drains, the free history and decay multiply `batch` by at most `2^scale_max`.
    pub scale_max: u8,
    /// How a periodic tick drains the pages above `high`.
    pub decay_drain: DecayDrain,
    /// The count that a free compares with `high`.
    #[cfg_attr(feature = "serde", serde(default))]
    pub counting: Counting,
    /// How many pages a drain on demand takes before it releases the page set's lock.
    pub demand_drain: DemandDrain,
    /// The rules for the zone's free lists.
    pub buddy: BuddyRules,
    /// How CPUs own whole pageblocks. `None`: CPUs own no pageblocks. If CPUs own pageblocks, page sets hold
    /// every order up to a pageblock's ([`ListScheme::EveryOrder`]). Needs the feature `lab`.
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

    /// How CPUs own whole pageblocks. Without the feature `lab`, the compiler sees that no policy has owners,
    /// and leaves the mechanism out.
    #[inline]
    pub(crate) fn ownership(&self) -> Option<PageblockOwnership> {
        self.ownership.filter(|_| HAS_LAB)
    }

    /// The name of this policy's first rule that needs the feature `lab`.
    pub(crate) fn lab_rule(&self) -> Option<&'static str> {
        let rules = [
            ("lists", self.lists == ListScheme::EveryOrder),
            ("ownership", self.ownership.is_some()),
            ("buddy.steering", self.buddy.steering.is_some()),
            ("drain_order", self.drain_order != DrainOrder::ListByList),
            ("counting", self.counting != Counting::Pages),
        ];
        rules.into_iter().find_map(|(rule, needs_lab)| needs_lab.then_some(rule))
    }

    /// Whether a page set's refills and drains depend on the page set alone. If CPUs own pageblocks, refills
    /// and drains also depend on the zone, so a replay without a zone is not possible.
    #[must_use]
    pub const fn is_of_page_sets_alone(&self) -> bool {
        self.ownership.is_none()
    }
}

/// The number of blocks that a refill of order `o` fetches (spec §2.7.2, §3.5, §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum RefillRule {
    /// A refill fetches `batch` blocks of every order.
    BatchOfBlocks,
    /// A refill fetches `max(batch >> o, 2)` blocks, or 1 if `batch` is 1.
    Batch,
    /// As with `Batch`, but for order 0 the number of blocks doubles at each refill if no page was freed
    /// since the last refill. For order 0, a refill fetches at most `batch << scale_max` blocks, and at most
    /// `max(high - count - batch, batch)` blocks. If `high` is below `batch`, a refill fetches one block.
    Doubling,
}

/// Automatic tuning of `high` (patch 7 and later of the 2023 series).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub struct Tuning {
    /// The condition under which a refill does not raise `high`.
    pub raise: RaiseHigh,
    /// How much a tick lowers `high`.
    pub decay: Decay,
    /// How the policy treats zones below their high watermark.
    pub below_high: BelowHigh,
}

/// The condition under which a refill does not raise `high`. Otherwise a refill raises `high` by the number
/// of wanted pages, at most to the upper limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum RaiseHigh {
    /// The reclaimer runs in this zone (patch 7).
    UnlessReclaimActive,
    /// The zone is below its high watermark (patch 8 and later).
    UnlessBelowHigh,
}

/// How the zone walk sets a zone's `BELOW_HIGH` flag (spec §2.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum BelowHigh {
    /// The policy does not have the flag `BELOW_HIGH`.
    Ignored,
    /// The zone walk checks the high watermark each time, even if the flag `BELOW_HIGH` is set (patch 8 as
    /// posted).
    CheckAlways,
    /// The zone walk does not check the high watermark while the flag `BELOW_HIGH` is set (as merged).
    CheckOnce,
}

/// How much a tick lowers `high` while `high` is above its lower limit (spec §2.11, §3.7, §3.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub struct Decay {
    /// A tick lowers `high` by the fraction `part` of `high`.
    pub part: Part,
    /// The rounding to whole pages.
    pub rounded: Rounded,
    /// Whether a tick takes at most the pages that stayed unused since the last tick.
    pub unused_only: bool,
}

impl Decay {
    /// A tick takes off a fifth of `high` (patch 7 as posted).
    pub const FIFTH: Self = Self { part: Part::new(1, 5), rounded: Rounded::Up, unused_only: false };
    /// A tick takes off a fifth of `high`, but at most the pages that stayed unused since the last tick
    /// (patch 9 as posted).
    pub const UNUSED_UP_TO_FIFTH: Self =
        Self { part: Part::new(1, 5), rounded: Rounded::Down, unused_only: true };
    /// A tick takes off an eighth of `high` (as merged).
    pub const EIGHTH: Self = Self { part: Part::new(1, 8), rounded: Rounded::Down, unused_only: false };

    /// Returns by how many pages a tick lowers `high`, if `unused` pages stayed unused.
    pub(crate) fn of(self, high: i32, unused: i32) -> i32 {
        let part = match self.rounded {
            Rounded::Down => self.part.of(high),
            Rounded::Up => high - self.part.rest().of(high),
        };
        if self.unused_only { part.min(unused) } else { part }
    }
}

/// How a part of a number of pages is rounded to whole pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum Rounded {
    /// The part is rounded down.
    Down,
    /// The part is rounded up.
    Up,
}

/// How often a tick's drain takes the page set's lock (spec §2.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum DecayDrain {
    /// The tick's drain takes the lock once.
    Whole,
    /// The tick's drain takes the lock again for each `batch` pages.
    Slices,
}

/// How often a drain on demand takes the page set's lock (spec §2.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum DemandDrain {
    /// The drain takes the lock once.
    Whole,
    /// The drain takes the lock again for each `batch << scale_max` pages.
    Chunks,
}

/// How a page set remembers recent frees (spec §2.8, §3.10). An allocation halves the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum FreeHistory {
    /// There is no history. A free that drains at the limit takes `batch` pages, or one page if the limit is
    /// below `batch`.
    None,
    /// The history is a factor: the next drain wants `batch << factor` pages. Each drain of fewer pages than
    /// the page set's limit minus `batch` raises the factor by one.
    Factor {
        /// The cap on the factor.
        cap: FactorCap,
        /// Whether a drain of exactly the page set's limit minus `batch` raises the factor too.
        grows: FactorGrows,
    },
    /// The history is the number of pages freed lately, up to about `batch << scale_max`.
    Count {
        /// How much a free lowers `high` while memory is short.
        step: PressureStep,
    },
}

/// The cap on the free factor of [`FreeHistory::Factor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum FactorCap {
    /// The factor has no cap of its own. The page set's limit minus `batch` limits each drain (the base of
    /// the 2023 series).
    Room,
    /// The factor is at most `scale_max` (patch 4). The page set's limit minus `batch` limits each drain,
    /// too.
    ScaleMax,
}

/// Whether the free factor also grows if a drain takes exactly the page set's limit minus `batch`
/// ([`FreeHistory::Factor`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum FactorGrows {
    /// The factor grows only if the drain takes fewer pages than the limit minus `batch` (base to patch 6).
    Below,
    /// The factor also grows if the drain takes exactly the limit minus `batch` (patches 7 to 9).
    UpTo,
}

/// How much a free lowers `high` while memory is short, if the free history is a count (spec §3.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum PressureStep {
    /// The number of pages recently freed (patch 10 as posted).
    Count,
    /// The number of pages recently freed, but at least `batch` (as merged).
    CountOrBatch,
}

/// Whether a running reclaimer lowers the limit at which a free drains (spec §2.8). Only policies without
/// [`Tuning`] read this rule. With `Tuning`, the limit is at most four batches while the reclaimer runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum ReclaimLimit {
    /// A running reclaimer does not change the limit.
    Ignored,
    /// While the reclaimer runs, the limit is at most four batches.
    FourBatches,
}

/// The lists that a drain visits, and how many blocks the drain takes from each list (spec §2.10, §4.2). All
/// variants but `ListByList` need the feature `lab`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum DrainOrder {
    /// The drain begins with the list of the freed block, or with list 0 if no free caused the drain. The
    /// drain empties each list before it visits the next list.
    ListByList,
    /// Round-robin: the drain takes up to one block from the first list, up to two blocks from the second
    /// list, and so on. If only one list has blocks, this list gives all blocks.
    RoundRobin(FirstList),
    /// The drain begins with the lists that hold more than an equal share of `high`, the fullest first. After
    /// the lists in excess, the drain continues as with `ListByList`.
    ExcessFirst,
    /// The drain begins with the lists of the freed block's class: order 0, or all higher orders. Within the
    /// class, the drain takes blocks as with `ListByList`. After the lists of this class, the drain visits
    /// all other lists.
    ClassFirst,
}

/// The count that a free compares with `high`.
///
/// All variants but `Pages` need the feature `lab`. A page set always counts only its pages. When the number
/// of pages reaches `high`, a free counts the blocks, or the pages of the class, too. The free drains only if
/// the number of blocks, or the pages of the class, also reaches `high`. Policies of real kernels compare
/// only pages, so these policies do not pay for other counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum Counting {
    /// The number of all pages in the page set.
    #[default]
    Pages,
    /// The number of blocks in the page set, of any order (review of the high-order series v5, 2016).
    Blocks,
    /// The number of pages in the freed block's class: order 0, or all higher orders. With `PagesOfClass`,
    /// `high` limits order 0 and the higher orders separately (review of the high-order series v5, 2016).
    PagesOfClass,
}

/// The first list of a round-robin drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum FirstList {
    /// A drain begins with list 0.
    Zero,
    /// A drain begins with list 1: Linux 4.9 starts at list 0, but moves to the next list before it takes the
    /// first block.
    One,
    /// A drain begins with the list after the list where the last drain stopped.
    AfterLast,
}

/// When a drain takes its blocks off the page set. All variants drain the same blocks in the same order. The
/// variants differ in how long the drain holds the zone's lock, and in how much the drain does before it asks
/// for the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum DrainPicks {
    /// The drain takes blocks one by one, with the zone's lock held.
    UnderLock,
    /// The drain takes all blocks before it asks for the zone's lock.
    BeforeLock {
        /// Whether the drain also prefetches the metadata of each block's buddy. A merge of the block in the
        /// zone reads this metadata first.
        prefetches_buddies: bool,
    },
}

/// How often a free takes the page set's lock for its drain (spec §3.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum FreeDrain {
    /// The free takes the page set's lock once, for the whole drain.
    Whole,
    /// The free takes the lock again for each `batch` pages. If another CPU holds the lock between two
    /// slices, the remaining pages stay in the page set.
    Slices(NextSlice),
}

/// The condition for another slice of a drain in slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum NextSlice {
    /// Pages are still due, and the page set has pages (as merged).
    WhileDue,
    /// The conditions of `WhileDue` hold, and the page set is at its limit (as first posted).
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

    /// Whether the drain continues with another slice if pages are still due.
    #[must_use]
    pub const fn goes_on(self, count: i32, limit: i32) -> bool {
        match self {
            Self::Whole => false,
            Self::Slices(NextSlice::WhileDue) => count > 0,
            Self::Slices(NextSlice::WhileAtLimit) => count > 0 && count >= limit,
        }
    }
}

/// How the pages of a split block enter the page set if all of these pages are freed at once. For example,
/// Linux allocates a task's stack as one block, and then splits the block. The allocator of this crate
/// ignores `SplitFrees`, because its frees name whole blocks. Replays of recordings obey `SplitFrees`,
/// because the kernel's events do not show whether the pages enter one by one or as one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum SplitFrees {
    /// The pages enter one by one.
    #[default]
    Singly,
    /// The pages enter as the original block.
    Joined,
}

/// When consecutive frees of order 1 to 3 drain the page set: *free_high* (spec §2.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub struct FreeHighRule {
    /// Whether the previous free must have been of order 1 to 3 too (patch 1).
    pub previous: PreviousFree,
    /// The rule that exempts CPUs with a large share of the data caches (patches 2 and 3). The page set of an
    /// exempt CPU drains by free_high only if the page set holds at least `batch` pages. `None`: no CPU is
    /// exempt.
    #[cfg_attr(feature = "serde", serde(with = "or_none"))]
    pub keep_batch: Option<SliceRule>,
    /// The number of recently freed pages that a drain by free_high needs, if the history is a count.
    pub threshold: FreeHighThreshold,
    /// How many pages a drain by free_high takes.
    pub drains: FreeHighDrains,
}

/// The condition that the previous free must meet, so that a free may drain by free_high.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum PreviousFree {
    /// The previous free may be of any order.
    Any,
    /// The previous free was of order 1 to 3.
    HighOrder,
}

/// The rule that decides whether a CPU's share of the data caches is large: more than `batches · batch` pages
/// fit into the share (spec §2.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub struct SliceRule {
    /// The caches whose sizes make up a CPU's share.
    pub caches: SliceCaches,
    /// The threshold, in batches.
    pub batches: u32,
}

/// The caches that make up a CPU's share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum SliceCaches {
    /// All data and unified caches count (as posted).
    All,
    /// Only the last-level cache counts (as merged).
    LastLevel,
}

/// The smallest number of recently freed pages that allows a drain by free_high. The threshold is `batches`
/// batches plus `high_min_part` of the lower limit of `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub struct FreeHighThreshold {
    /// The number of batches in the threshold.
    pub batches: u16,
    /// The part of `high`'s lower limit in the threshold.
    pub high_min_part: Part,
}

impl FreeHighThreshold {
    /// The threshold is `batch`.
    pub const BATCH: Self = Self { batches: 1, high_min_part: Part::NONE };
    /// The threshold is `batch + high_min / 2` (Linux 6.16).
    pub const BATCH_AND_HALF_HIGH_MIN: Self = Self { batches: 1, high_min_part: Part::new(1, 2) };

    /// Whether `freed` pages reach the threshold.
    #[inline]
    pub(crate) fn is_reached(self, freed: i32, batch: i32, high_min: i32) -> bool {
        let (freed, batches) = (i64::from(freed), i64::from(batch) * i64::from(self.batches));
        // Compare with the batches first. Most frees fail the comparison with the batches, and therefore need
        // no division.
        freed >= batches && freed >= batches + i64::from(self.high_min_part.of(high_min))
    }
}

/// How many pages a drain by free_high takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub struct FreeHighDrains {
    /// The drain takes the fraction `part` of the page set's pages, but at least one page.
    pub part: Part,
    /// Whether a drain takes at most `batch << scale_max` pages (patch 7).
    pub capped: bool,
}

impl FreeHighDrains {
    /// The drain takes all pages.
    pub const ALL: Self = Self { part: Part::ALL, capped: false };
    /// The drain takes at most `batch << scale_max` pages (patch 7).
    pub const CAPPED: Self = Self { part: Part::ALL, capped: true };

    /// Returns how many of `count` pages a free drains: at least one page, if there is one. With `capped`, at
    /// most `most` pages.
    pub(crate) fn of(self, count: i32, most: i32) -> i32 {
        let pages = self.part.of(count).max(count.min(1));
        if self.capped { pages.min(most) } else { pages }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_5_14_and_later_need_no_lab() {
        let later =
            POLICIES.iter().filter(|policy| policy.name.starts_with("linux-") && policy.name >= "linux-5");
        assert!(later.eq(KERNELS));
        for policy in KERNELS {
            assert_eq!(policy.lab_rule(), None, "{}", policy.name);
        }
    }

    #[test]
    fn each_rule_of_the_lab_is_named() {
        #[track_caller]
        fn check(rule: &str, change: impl FnOnce(&mut Policy)) {
            let mut policy = LINUX_6_18;
            change(&mut policy);
            assert_eq!(policy.lab_rule(), Some(rule));
        }
        check("lists", |policy| policy.lists = ListScheme::EveryOrder);
        check("ownership", |policy| policy.ownership = Some(PageblockOwnership::RFC));
        check("buddy.steering", |policy| policy.buddy.steering = Some(UnitSteering::RFC));
        check("counting", |policy| policy.counting = Counting::Blocks);
        check("counting", |policy| policy.counting = Counting::PagesOfClass);
        let first = [FirstList::Zero, FirstList::One, FirstList::AfterLast].map(DrainOrder::RoundRobin);
        for order in first.into_iter().chain([DrainOrder::ExcessFirst, DrainOrder::ClassFirst]) {
            check("drain_order", |policy| policy.drain_order = order);
        }
    }

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
