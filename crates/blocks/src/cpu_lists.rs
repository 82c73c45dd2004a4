//! What one CPU has of one zone: the pageblocks it allocates from, and those of its own that have free frames.

use pageset_core::{MigrateType, NodeId, Order, PAGEBLOCK_ORDER, ZoneId, ZoneKind};

use crate::atomic::{AtomicU32, AtomicUsize, Relaxed};
use crate::free_bits::WORDS;
use crate::stack::{BlockIndex, Stack};

/// Types of requests.
pub(crate) const TYPES: usize = MigrateType::PCP_COUNT;
/// No pageblock.
const NONE: u32 = u32::MAX;

/// Where a CPU's requests go first.
#[derive(Clone, Copy, Debug)]
pub struct CpuHome {
    pub(crate) node: NodeId,
    /// By kind, the first zone that a request for this kind and lower ones uses.
    pub(crate) zones: [ZoneId; ZoneKind::COUNT],
}

impl CpuHome {
    /// No zone.
    pub(crate) const NO_ZONE: ZoneId = ZoneId(u16::MAX);

    pub(crate) fn new() -> Self {
        Self { node: NodeId(0), zones: [Self::NO_ZONE; ZoneKind::COUNT] }
    }
}

/// One CPU's share of one zone. Others write here only what they link to its stacks.
#[derive(Debug)]
#[repr(align(128))]
pub struct CpuLists {
    /// The zone's: frame number minus frame index, modulo 2^64.
    pub(crate) offset: u64,
    /// By type and order, where the next block comes from.
    cursors: [[Cursor; PAGEBLOCK_ORDER]; TYPES],
    /// The pageblock that was freed last as a whole: a hint too.
    pub(crate) spare: AtomicU32,
    /// Where this CPU looked for a whole pageblock last.
    pub(crate) near: AtomicU32,
    /// Whether this CPU asked for a pageblock since the last tick.
    activity: AtomicU32,
    /// By type and order, its pageblocks that have free frames and are not allocated from.
    pub(crate) stacks: [[Stack; PAGEBLOCK_ORDER]; TYPES],
    pub(crate) counters: Counters,
}

impl CpuLists {
    pub(crate) fn new() -> Self {
        Self {
            offset: 0,
            cursors: core::array::from_fn(|_| core::array::from_fn(|_| Cursor::new())),
            spare: AtomicU32::new(NONE),
            near: AtomicU32::new(0),
            activity: AtomicU32::new(0),
            stacks: core::array::from_fn(|_| core::array::from_fn(|_| Stack::new())),
            counters: Counters::new(),
        }
    }

    #[inline]
    pub(crate) fn cursor(&self, wanted: Wanted) -> &Cursor {
        &self.cursors[wanted.migratetype.index()][wanted.order.index()]
    }

    #[inline]
    pub(crate) fn stack(&self, wanted: Wanted) -> &Stack {
        &self.stacks[wanted.migratetype.index()][wanted.order.index()]
    }

    pub(crate) fn note_activity(&self) {
        if self.activity.load(Relaxed) == 0 {
            self.activity.store(1, Relaxed);
        }
    }

    /// Whether the CPU was active since this was asked last.
    pub(crate) fn take_activity(&self) -> bool {
        self.activity.swap(0, Relaxed) != 0
    }

    /// Whether the CPU was active since the last tick.
    pub(crate) fn is_active(&self) -> bool {
        self.activity.load(Relaxed) != 0
    }
}

/// Order and type of a block below pageblock size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) order: Order,
    pub(crate) migratetype: MigrateType,
}

impl Wanted {
    /// All of them.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        MigrateType::ALL.into_iter().take(TYPES).flat_map(|migratetype| {
            let orders = Order::ZERO.and_above().take(PAGEBLOCK_ORDER);
            orders.map(move |order| Self { order, migratetype })
        })
    }
}

/// Where the next block of an order and type comes from: words by number, which are hints and may be wrong.
#[derive(Debug)]
pub(crate) struct Cursor {
    /// In the pageblock that the CPU allocates from.
    at_hand: AtomicU32,
    /// To which this CPU freed last, in another pageblock of its own that is nearly full.
    freed: AtomicU32,
}

impl Cursor {
    fn new() -> Self {
        Self { at_hand: AtomicU32::new(NONE), freed: AtomicU32::new(NONE) }
    }

    /// Pageblock and word in it.
    #[inline]
    pub(crate) fn get(&self) -> Option<(BlockIndex, usize)> {
        place(self.at_hand.load(Relaxed))
    }

    /// Another word of the same pageblock.
    #[inline]
    pub(crate) fn advance(&self, block: BlockIndex, word: usize) {
        self.at_hand.store((block * WORDS + word) as u32, Relaxed);
    }

    /// From now on from this pageblock. Returns the one before.
    pub(crate) fn replace(&self, block: Option<BlockIndex>) -> Option<BlockIndex> {
        let new = block.map_or(NONE, |block| (block * WORDS) as u32);
        place(self.at_hand.swap(new, Relaxed)).map(|(block, _)| block)
    }

    /// The next block comes from this word, once.
    #[inline]
    pub(crate) fn note_freed(&self, block: BlockIndex, word: usize) {
        self.freed.store((block * WORDS + word) as u32, Relaxed);
    }

    /// The word that was freed to last, if nobody asked since.
    #[inline]
    pub(crate) fn take_freed(&self) -> Option<(BlockIndex, usize)> {
        let freed = place(self.freed.load(Relaxed))?;
        self.freed.store(NONE, Relaxed);
        Some(freed)
    }
}

#[inline]
fn place(word: u32) -> Option<(BlockIndex, usize)> {
    (word != NONE).then_some((word as usize / WORDS, word as usize % WORDS))
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// How often a CPU did what others may notice. All monotone; they begin anew after the largest word.
        #[derive(Debug)]
        pub(crate) struct Counters {
            $(pub(crate) $name: AtomicUsize,)*
        }

        impl Counters {
            fn new() -> Self {
                Self { $($name: AtomicUsize::new(0),)* }
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
        self.adopted
            .wrapping_add(self.claimed)
            .wrapping_add(self.claimed_whole)
            .wrapping_add(self.closed)
            .wrapping_add(self.rescued)
    }
}

counters! {
    /// Pageblocks of its own that a CPU went on to allocate from.
    reused,
    /// Pageblocks that a CPU took over from one that had no use for them.
    adopted,
    /// Whole pageblocks that a CPU took to split them.
    claimed,
    /// Whole pageblocks that a CPU handed out, or kept back from those freed to it.
    claimed_whole,
    /// Pageblocks that became free as a whole.
    closed,
    /// Blocks that came from pageblocks that other CPUs allocate from, or of other types or orders.
    rescued,
    /// Blocks that came from pageblocks of another type than was asked for.
    foreign,
    /// Pageblocks that were cut for blocks of several orders.
    mixed,
    /// Pageblocks that changed their type because requests of another one found no other memory.
    retyped,
    /// Requests that found no memory.
    failed,
}

pub(crate) fn count(counter: &AtomicUsize) {
    counter.fetch_add(1, Relaxed);
}
