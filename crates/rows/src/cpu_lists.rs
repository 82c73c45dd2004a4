//! What one CPU has of one zone: the pageblocks that it reserves.

use pageset_core::{MigrateType, NodeId, Order, ZoneId, ZoneKind};

use crate::activity::Activity;
use crate::atomic::{AtomicU32, AtomicUsize, Relaxed, SeqCst, array, constant};
use crate::index::BlockIndex;
use crate::row::{ROW_ORDER, ROWS};

/// Types of requests.
pub(crate) const TYPES: usize = MigrateType::PCP_COUNT;

/// They themselves, in the order of their numbers.
pub(crate) fn types() -> impl Iterator<Item = MigrateType> {
    MigrateType::ALL.into_iter().take(TYPES)
}

/// Where a CPU's requests go first.
#[derive(Clone, Copy, Debug)]
pub struct CpuHome {
    pub(crate) node: NodeId,
    /// By kind, the first zone that a request for this kind and lower ones uses.
    pub(crate) zones: [ZoneId; ZoneKind::COUNT],
}

impl Default for CpuHome {
    fn default() -> Self {
        Self::new()
    }
}

impl CpuHome {
    /// No zone.
    pub(crate) const NO_ZONE: ZoneId = ZoneId(u16::MAX);

    constant! {
        /// An entry of a table, to be filled when the allocator is built.
        #[must_use]
        pub fn new() -> Self {
            Self { node: NodeId(0), zones: [Self::NO_ZONE; ZoneKind::COUNT] }
        }
    }
}

/// One CPU's share of one zone.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct CpuLists {
    /// The zone's: frame number minus frame index, modulo 2^64.
    pub(crate) offset: u64,
    /// Where this CPU looked for a pageblock last.
    pub(crate) near: AtomicU32,
    /// Its spare whole pageblock, plus 1: a hint that may be old.
    pub(crate) spare: AtomicU32,
    pub(crate) activity: Activity,
    /// By type: the pageblock for single frames, and the one for blocks of several.
    at_hand: [[AtHand; 2]; TYPES],
    /// By type: the row that the last block of each order came from.
    rows: [RowHints; TYPES],
    /// By order, the first frame of the block that the CPU freed last, plus 1: a hint that may be old.
    freed: [AtomicU32; ROW_ORDER + 1],
    pub(crate) counters: Counters,
}

impl Default for CpuLists {
    fn default() -> Self {
        Self::new()
    }
}

impl CpuLists {
    constant! {
        /// An entry of a table, to be filled when the allocator is built.
        #[must_use]
        pub fn new() -> Self {
            Self {
                offset: 0,
                near: AtomicU32::new(0),
                spare: AtomicU32::new(0),
                activity: Activity::new(),
                at_hand: array!(array!(AtHand::new())),
                rows: array!(RowHints::new()),
                freed: array!(AtomicU32::new(0)),
                counters: Counters::new(),
            }
        }
    }

    /// The pageblock that serves such requests.
    #[inline]
    pub(crate) fn at_hand(&self, wanted: Wanted) -> &AtHand {
        &self.at_hand[wanted.migratetype.index()][usize::from(wanted.order > Order::ZERO)]
    }

    /// The pageblock that serves such requests, and the row of it to look at first: hints that may be old.
    #[inline]
    pub(crate) fn place(&self, wanted: Wanted) -> Option<(BlockIndex, usize)> {
        let row = self.rows[wanted.migratetype.index()].get(wanted.order);
        self.at_hand(wanted).get().map(|block| (block, row))
    }

    /// Such requests look at this row first from here on.
    #[inline]
    pub(crate) fn advance(&self, wanted: Wanted, row: usize) {
        self.rows[wanted.migratetype.index()].set(wanted.order, row);
    }

    /// The CPU freed this block of an order up to a row's.
    #[inline]
    pub(crate) fn note_freed(&self, index: usize, order: Order) {
        if let Some(freed) = self.freed.get(order.index()) {
            // Frames beyond 16 TiB have no hint.
            freed.store(u32::try_from(index + 1).unwrap_or(0), Relaxed);
        }
    }

    /// The block of this order that the CPU freed last: to be tried once.
    #[inline]
    pub(crate) fn take_freed(&self, order: Order) -> Option<usize> {
        let freed = self.freed.get(order.index())?;
        let index = (freed.load(Relaxed) as usize).checked_sub(1)?;
        freed.store(0, Relaxed);
        Some(index)
    }

    /// Requests that this one shares a pageblock with look at the first row first from here on.
    pub(crate) fn forget_rows(&self, wanted: Wanted) {
        let orders = if wanted.order == Order::ZERO { 0..1 } else { 1..ROW_ORDER as u8 + 1 };
        { orders }.filter_map(Order::new).for_each(|order| self.advance(Wanted { order, ..wanted }, 0));
    }

    /// All pageblocks that it may have.
    pub(crate) fn all_at_hand(&self) -> impl Iterator<Item = &AtHand> {
        self.at_hand.iter().flatten()
    }
}

/// Order and type of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) order: Order,
    pub(crate) migratetype: MigrateType,
}

/// The pageblock that a CPU reserves for some of its requests: a hint that may be old.
#[derive(Debug)]
pub(crate) struct AtHand(AtomicU32);

impl AtHand {
    constant! {
        fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<BlockIndex> {
        (self.0.load(Relaxed) as BlockIndex).checked_sub(1)
    }

    /// From now on this pageblock. Returns the one before.
    pub(crate) fn replace(&self, block: Option<BlockIndex>) -> Option<BlockIndex> {
        let new = block.map_or(0, |block| block as u32 + 1);
        (self.0.swap(new, SeqCst) as BlockIndex).checked_sub(1)
    }

    /// No pageblock from now on, if it is this one. Returns whether it was.
    pub(crate) fn forget(&self, block: BlockIndex) -> bool {
        self.0.compare_exchange(block as u32 + 1, 0, SeqCst, Relaxed).is_ok()
    }
}

/// A row for each order up to a row's; larger orders have that of a row's. Threads that run as the same CPU may overwrite each other's:
/// then one of them looks at a row more.
#[derive(Debug)]
struct RowHints(AtomicU32);

const HINT_BITS: u32 = ROWS.trailing_zeros();

impl RowHints {
    constant! {
        fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }

    #[inline]
    fn place(order: Order) -> u32 {
        order.index().min(ROW_ORDER) as u32 * HINT_BITS
    }

    #[inline]
    fn get(&self, order: Order) -> usize {
        (self.0.load(Relaxed) >> Self::place(order)) as usize % ROWS
    }

    #[inline]
    fn set(&self, order: Order, row: usize) {
        let (place, others) = (Self::place(order), self.0.load(Relaxed));
        self.0.store(others & !((ROWS as u32 - 1) << place) | (row as u32) << place, Relaxed);
    }
}

/// Pageblocks that a hint can name.
pub(crate) const MAX_BLOCKS: usize = u32::MAX as usize - 1;

const _: () = assert!((ROW_ORDER + 1) * HINT_BITS as usize <= u32::BITS as usize);

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// How often a CPU did what others may notice. All monotone; they begin anew after the largest word.
        #[derive(Debug)]
        pub(crate) struct Counters {
            $(pub(crate) $name: AtomicUsize,)*
        }

        impl Counters {
            constant! {
                fn new() -> Self {
                    Self { $($name: AtomicUsize::new(0),)* }
                }
            }
        }

        /// What a CPU, a zone or an allocator did since it was built.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct BlockCounters {
            $($(#[$doc])* pub $name: usize,)*
        }

        impl BlockCounters {
            pub(crate) fn add(&mut self, counters: &Counters) {
                $(self.$name = self.$name.wrapping_add(counters.$name.load(Relaxed));)*
            }

            /// All counters with their names.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, usize)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }
        }
    };
}

impl BlockCounters {
    /// Times a CPU changed what all CPUs of a zone share: the map of whole pageblocks, the zone's stacks, another CPU's
    /// pageblock. Not counted: frees to another CPU's pageblock, which change its line only.
    #[must_use]
    pub const fn shared(&self) -> usize {
        self.adopted.wrapping_add(self.claimed).wrapping_add(self.published).wrapping_add(self.rescued)
    }
}

counters! {
    /// Pageblocks in part use that a CPU reserved.
    adopted,
    /// Times a CPU took whole pageblocks, one or several.
    claimed,
    /// Times a CPU made whole pageblocks everybody's, one or several.
    published,
    /// Pageblocks that became free as a whole.
    closed,
    /// Blocks that came from pageblocks that other CPUs allocate from, or of other types or orders.
    rescued,
    /// Blocks that came from pageblocks of another type than was asked for.
    foreign,
    /// Pageblocks that changed their type because requests of another one found no other memory.
    retyped,
    /// Blocks that were free already when a CPU gave them back: somebody freed them twice.
    double_frees,
    /// Entries of tables that contradicted another table, and were left alone: the allocator's own data is damaged.
    damaged,
    /// Times a CPU changed the free frames of a pageblock that another one had changed last. Counted with the feature
    /// `line-counts` only.
    line_transfers,
    /// Those of them that came within 10 us of the other CPU's change, by the clock.
    contended_lines,
    /// Times a request found a zone below its low watermark: a reclaimer should work when this rises.
    below_low,
    /// Requests that found no memory.
    failed,
}

pub(crate) fn count(counter: &AtomicUsize) {
    counter.fetch_add(1, Relaxed);
}
