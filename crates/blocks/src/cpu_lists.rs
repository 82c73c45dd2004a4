//! What one CPU has of one zone: the pageblocks it allocates from, and those of its own that have free frames.

use pageset_core::{MigrateType, NodeId, Order, PAGEBLOCK_FRAMES, PAGEBLOCK_ORDER, ZoneId, ZoneKind};

use crate::activity::Activity;
use crate::atomic::{AtomicU32, AtomicUsize, Relaxed, array, constant};
use crate::budget::Budget;
use crate::free_bits::WORDS;
use crate::kept::Kept;
use crate::outlook::Outlook;
use crate::spares::Spares;
use crate::stack::{BlockIndex, Stack};
use crate::state::State;
use crate::surplus::Surplus;

/// Types of requests.
pub(crate) const TYPES: usize = MigrateType::PCP_COUNT;

/// They themselves, in the order of their numbers.
pub(crate) fn types() -> impl Iterator<Item = MigrateType> {
    MigrateType::ALL.into_iter().take(TYPES)
}

/// No pageblock.
const NONE: u32 = u32::MAX;

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

/// One CPU's share of one zone. Others write here what they link to its stacks, and what they close of its pageblocks.
///
/// In this order, so that the words that a CPU needs to go to its next pageblock of movable single pages lie in the line that each
/// allocation of one reads.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct CpuLists {
    /// The zone's: frame number minus frame index, modulo 2^64.
    pub(crate) offset: u64,
    /// Where this CPU looked for a whole pageblock last.
    pub(crate) near: AtomicU32,
    /// Single pages come last, and movable ones last of those.
    supplies: [[Supply; TYPES]; PAGEBLOCK_ORDER],
    pub(crate) surplus: Surplus,
    pub(crate) outlook: Outlook,
    pub(crate) activity: Activity,
    pub(crate) budget: Budget,
    pub(crate) spares: Spares,
    pub(crate) counters: Counters,
    /// Blocks that it freed to pageblocks of others.
    pub(crate) kept: Kept,
}

/// Where blocks of an order and type come from.
#[derive(Debug)]
struct Supply {
    /// The CPU's pageblocks that have free frames and are not allocated from.
    stack: Stack,
    cursor: Cursor,
    /// The pageblock of this type with blocks of several orders: of the supply of single pages only. It has the room that would be left.
    mixed: AtHand,
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
                supplies: array!(array!(Supply { stack: Stack::new(), cursor: Cursor::new(), mixed: AtHand::new() })),
                surplus: Surplus::new(),
                outlook: Outlook::new(),
                activity: Activity::new(),
                budget: Budget::new(),
                spares: Spares::new(),
                counters: Counters::new(),
                kept: Kept::new(),
            }
        }
    }

    #[inline]
    fn supply(&self, wanted: Wanted) -> &Supply {
        // The type after movable comes first, so that movable comes last. Not by division, since each allocation asks.
        let after = wanted.migratetype.index() + 1;
        let place = if after == TYPES { 0 } else { after };
        &self.supplies[PAGEBLOCK_ORDER - 1 - wanted.order.index()][place]
    }

    #[inline]
    pub(crate) fn cursor(&self, wanted: Wanted) -> &Cursor {
        &self.supply(wanted).cursor
    }

    /// Its pageblock of a type with blocks of several orders.
    pub(crate) fn mixed(&self, migratetype: MigrateType) -> &AtHand {
        &self.supply(Wanted { order: Order::ZERO, migratetype }).mixed
    }

    /// By type and order, where the next block comes from.
    pub(crate) fn cursors(&self) -> impl Iterator<Item = &Cursor> {
        self.supplies.iter().flatten().map(|supply| &supply.cursor)
    }

    #[inline]
    pub(crate) fn stack(&self, wanted: Wanted) -> &Stack {
        &self.supply(wanted).stack
    }
}

/// What lies in the line of movable single pages: their supply, and all that a CPU needs to go to its next pageblock.
#[cfg(all(target_pointer_width = "64", not(any(loom, shuttle))))]
const _: () = {
    use core::mem::offset_of;
    const LINE: usize = 64;
    assert!(MigrateType::Movable.index() + 1 == TYPES - 1);
    assert!(offset_of!(CpuLists, surplus) % LINE == size_of::<Supply>());
    assert!(
        offset_of!(CpuLists, spares) + Spares::NUMBERS_BYTES
            <= offset_of!(CpuLists, surplus).next_multiple_of(LINE)
    );
};

/// Order and type of a block below pageblock size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) order: Order,
    pub(crate) migratetype: MigrateType,
}

impl Wanted {
    /// What the blocks of a split pageblock are. None if nothing is split so: the state is damaged.
    #[inline]
    pub(crate) const fn of_split(state: State) -> Option<Self> {
        let (order, migratetype) = (state.order(), state.migratetype());
        let is_possible = order.index() < PAGEBLOCK_ORDER && migratetype.index() < TYPES;
        if is_possible { Some(Self { order, migratetype }) } else { None }
    }

    /// All of them.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        types().flat_map(|migratetype| {
            let orders = Order::ZERO.and_above().take(PAGEBLOCK_ORDER);
            orders.map(move |order| Self { order, migratetype })
        })
    }
}

/// Frames of an order and type that a CPU takes of mixed pageblocks between two ticks, before it has a pageblock of its own for
/// them: as many as that has.
const FEW: u32 = PAGEBLOCK_FRAMES * KEPT_AS_ONE;

/// Kept blocks that count as one frame of a mixed pageblock. Decision 0029 in the sources compares numbers.
const KEPT_AS_ONE: u32 = 128;

/// The pageblock that a CPU allocates from, and a word in it, by number: a hint that may be wrong.
#[derive(Debug)]
pub(crate) struct AtHand(AtomicU32);

impl AtHand {
    constant! {
        fn new() -> Self {
            Self(AtomicU32::new(NONE))
        }
    }

    /// Pageblock and word in it.
    #[inline]
    pub(crate) fn get(&self) -> Option<(BlockIndex, usize)> {
        place(self.0.load(Relaxed))
    }

    /// From now on this pageblock. Returns the one before.
    pub(crate) fn replace(&self, block: Option<BlockIndex>) -> Option<BlockIndex> {
        let new = block.map_or(NONE, |block| (block * WORDS) as u32);
        place(self.0.swap(new, Relaxed)).map(|(block, _)| block)
    }

    /// From now on this pageblock, if it was `before` until now.
    pub(crate) fn replace_if(&self, before: Option<BlockIndex>, block: BlockIndex) -> bool {
        let number = |block: BlockIndex| (block * WORDS) as u32;
        let before = before.map_or(NONE, number);
        self.0.compare_exchange(before, number(block), Relaxed, Relaxed).is_ok()
    }
}

/// Where the next block of an order and type comes from.
#[derive(Debug)]
pub(crate) struct Cursor {
    pub(crate) at_hand: AtHand,
    /// To which this CPU freed last, in another pageblock of its own that is nearly full. A word by number, which may be wrong.
    freed: AtomicU32,
    /// What the CPU asked for since the last tick and took of mixed pageblocks, in frames, or of what it keeps: [`KEPT_AS_ONE`] for
    /// each frame, one for each kept block.
    needed: AtomicU32,
}

impl Cursor {
    constant! {
        fn new() -> Self {
            Self { at_hand: AtHand::new(), freed: AtomicU32::new(NONE), needed: AtomicU32::new(0) }
        }
    }

    /// Pageblock and word in it.
    #[inline]
    pub(crate) fn get(&self) -> Option<(BlockIndex, usize)> {
        self.at_hand.get()
    }

    /// From `from` on to another word of the same pageblock; unless somebody who runs as the same CPU went on to another
    /// pageblock, which would be forgotten.
    #[inline]
    pub(crate) fn advance(&self, block: BlockIndex, from: usize, to: usize) {
        let number = |word| (block * WORDS + word) as u32;
        self.at_hand.0.compare_exchange(number(from), number(to), Relaxed, Relaxed).ok();
    }

    /// Whether the CPU has no pageblock for these blocks alone, and needs none.
    pub(crate) fn needs_few(&self) -> bool {
        self.needed.load(Relaxed) < FEW && self.get().is_none()
    }

    /// Whether the CPU has no pageblock for these blocks alone, and needs one.
    pub(crate) fn needs_many(&self) -> bool {
        self.needed.load(Relaxed) >= FEW && self.get().is_none()
    }

    /// Frames that the CPU took of mixed pageblocks since the last tick.
    pub(crate) fn taken_of_mixed(&self) -> u32 {
        self.needed.load(Relaxed) / KEPT_AS_ONE
    }

    /// The CPU took blocks of a mixed pageblock.
    pub(crate) fn note_few(&self, order: Order, blocks: u32) {
        self.note_needed(blocks.saturating_mul(order.frames()).saturating_mul(KEPT_AS_ONE));
    }

    /// The CPU took a block that it kept.
    pub(crate) fn note_kept(&self) {
        self.note_needed(1);
    }

    fn note_needed(&self, more: u32) {
        self.needed.store(self.needed.load(Relaxed).saturating_add(more), Relaxed);
    }

    /// A tick has passed.
    pub(crate) fn forget_few(&self) {
        self.needed.store(0, Relaxed);
    }

    /// The CPU asks for many blocks.
    pub(crate) fn note_many(&self) {
        self.needed.store(FEW, Relaxed);
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
    /// Pageblocks of its own that a CPU went on to allocate from.
    reused,
    /// Pageblocks that a CPU took over from one that had no use for them.
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
    /// Pageblocks that were split for blocks of several orders, or cut for them later.
    mixed,
    /// Pageblocks that changed their type because requests of another one found no other memory.
    retyped,
    /// Times a CPU gave back blocks of other CPUs' pageblocks.
    given_back,
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
