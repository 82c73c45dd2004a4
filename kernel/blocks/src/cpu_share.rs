//! The data of one CPU for one zone: the pageblocks that the CPU reserves or keeps, hints for its searches,
//! and counters.

use pageset_core::{MigrateType, NodeId, Order, Pfn, ZoneId, ZoneKind};

use crate::access::{Access, add, update};
use crate::activity::Activity;
use crate::atomic::{AtomicU32, AtomicUsize, Relaxed, SeqCst, array, constant};
use crate::ids::{BlockId, FrameId};
use crate::index::Several;
use crate::row::{ALL, ROW_FRAMES, ROW_ORDER, ROWS};

/// The number of types that requests can have.
pub(crate) const TYPES: usize = MigrateType::PCP_COUNT;

/// The types of requests, in the order of their numbers.
pub(crate) fn types() -> impl Iterator<Item = MigrateType> {
    MigrateType::ALL.into_iter().take(TYPES)
}

/// The node and the zones that a CPU's requests try first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuHome {
    pub(crate) node: NodeId,
    /// For each kind, the first zone of the CPU's zonelist that has this kind or a lower kind.
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
        /// Makes an empty entry of a table. The constructor of the allocator fills the entry. The entry is
        /// all zeros, so that a static table lies in `.bss`.
        #[must_use]
        pub(crate) fn new() -> Self {
            Self { node: NodeId(0), zones: [ZoneId(0); ZoneKind::COUNT] }
        }
    }
}

/// The data of one CPU for one zone.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct CpuShare {
    /// The zone's offset: the number of a frame minus its [`FrameId`], modulo 2^64.
    pub(crate) offset: u64,
    /// The pageblock that this CPU found last. The CPU's next search begins at this pageblock.
    near: AtomicU32,
    /// Whole pageblocks that the CPU keeps for its next requests.
    pub(crate) stock: Nearby,
    /// The pageblock that a free of this CPU made unsettled last. The pageblock in `unsettled` is not in the
    /// set of unsettled pageblocks yet. The field is a hint: another CPU may have settled or reserved the
    /// pageblock meanwhile.
    pub(crate) unsettled: OneBlock,
    /// Pageblocks that frees of this CPU made unsettled before the one in `unsettled`. The pageblocks in
    /// `kept` are hints as well.
    pub(crate) kept: Nearby,
    pub(crate) activity: Activity,
    /// For each type, two reserved pageblocks: one for single frames, and one for larger blocks.
    reservations: [[Reservation; KINDS]; TYPES],
    /// For each order up to a row's, the place of the block that the CPU freed last, plus 1. The place is a
    /// hint: the block may have been taken since. 0 means that there is no hint.
    freed: [AtomicU32; ROW_ORDER + 1],
    pub(crate) counters: Counters,
}

/// How many pageblocks a CPU may reserve in a zone.
pub(crate) const RESERVATIONS: usize = TYPES * KINDS;
const KINDS: usize = 2;

impl Default for CpuShare {
    fn default() -> Self {
        Self::new()
    }
}

impl CpuShare {
    constant! {
        /// Makes an empty entry of a table. The constructor of the allocator fills the entry.
        #[must_use]
        pub(crate) fn new() -> Self {
            Self {
                offset: 0,
                near: AtomicU32::new(0),
                stock: Nearby::new(),
                unsettled: OneBlock::new(),
                kept: Nearby::new(),
                activity: Activity::new(),
                reservations: array!(array!(Reservation::new())),
                freed: array!(AtomicU32::new(0)),
                counters: Counters::new(),
            }
        }
    }

    /// Converts the place of a frame of the zone to its number.
    #[inline]
    pub(crate) fn pfn(&self, id: FrameId) -> Pfn {
        Pfn((id.0 as u64).wrapping_add(self.offset))
    }

    /// The pageblock that this CPU found last.
    #[inline]
    pub(crate) fn near(&self) -> BlockId {
        BlockId(self.near.load(Relaxed) as usize)
    }

    #[inline]
    pub(crate) fn set_near(&self, block: BlockId) {
        self.near.store(block.0 as u32, Relaxed);
    }

    /// The pageblock that this CPU reserves for requests of this type and order.
    #[inline]
    pub(crate) fn reservation(&self, wanted: Wanted) -> &Reservation {
        &self.reservations[wanted.migratetype.index()][usize::from(wanted.order > Order::ZERO)]
    }

    /// The unsettled pageblocks that the CPU keeps: those in `kept`, then the one in `unsettled`.
    pub(crate) fn kept_unsettled(&self) -> impl Iterator<Item = BlockId> {
        self.kept.blocks().chain(self.unsettled.get())
    }

    /// Takes an unsettled pageblock that the CPU keeps. The one that was freed to last comes first.
    pub(crate) fn take_unsettled<A: Access>(&self) -> Option<BlockId> {
        self.unsettled.take::<A>().or_else(|| self.kept.take::<A>())
    }

    /// Notes that the CPU freed a block. Blocks larger than a row are not noted.
    #[inline]
    pub(crate) fn note_freed(&self, id: FrameId, order: Order) {
        if let Some(freed) = self.freed.get(order.index()) {
            // Blocks at places beyond 16 TiB get no hint.
            freed.store(u32::try_from(id.0 + 1).unwrap_or(0), Relaxed);
        }
    }

    /// Takes the hint to the block of this order that the CPU freed last.
    #[inline]
    pub(crate) fn take_freed_hint(&self, order: Order) -> Option<FrameId> {
        let freed = self.freed.get(order.index())?;
        let id = (freed.load(Relaxed) as usize).checked_sub(1)?;
        freed.store(0, Relaxed);
        Some(FrameId(id))
    }

    /// The places for the pageblocks that the CPU reserves.
    pub(crate) fn reservations(&self) -> &[Reservation] {
        self.reservations.as_flattened()
    }
}

/// A pageblock, or none.
#[derive(Debug)]
pub(crate) struct OneBlock(AtomicU32);

impl OneBlock {
    constant! {
        fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<BlockId> {
        (self.0.load(SeqCst) as usize).checked_sub(1).map(BlockId)
    }

    /// Replaces the pageblock. Returns the one before.
    pub(crate) fn replace<A: Access>(&self, block: Option<BlockId>) -> Option<BlockId> {
        let new = block.map_or(0, |block| block.0 as u32 + 1);
        (update::<A, _>(&self.0, SeqCst, |_| Some(new)).unwrap_or(0) as usize).checked_sub(1).map(BlockId)
    }

    #[inline]
    pub(crate) fn take<A: Access>(&self) -> Option<BlockId> {
        self.get().and_then(|_| self.replace::<A>(None))
    }
}

/// The most pageblocks in a stock. A thread that stops after it took all pageblocks of a stock keeps 8 MiB
/// from other CPUs. With stocks of 1 pageblock, CPUs change the shared sets 1.35 times as often on the
/// project's 44 recordings.
pub(crate) const STOCK_MAX: usize = 4;

/// The most unsettled pageblocks that a CPU keeps in `kept`, besides the one in `unsettled`. A thread that
/// stops after it took all of `kept` hides 8 MiB from other CPUs. With a limit of 0, CPUs change the shared
/// sets 1.28 times as often on the project's 44 recordings.
pub(crate) const KEPT_MAX: usize = 4;

/// A few pageblocks of one group. A group is `ROW_FRAMES` pageblocks (64 MiB on 64-bit machines), whose bits
/// lie in one half of a word of a set. The upper half of a `Nearby` has the number of the group. The lower
/// half has a bit for each pageblock of the group.
#[derive(Debug)]
pub(crate) struct Nearby(AtomicUsize);

impl Nearby {
    constant! {
        fn new() -> Self {
            Self(AtomicUsize::new(0))
        }
    }

    /// Overwrites the word with any value.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn damage(&self, word: usize) {
        self.0.store(word, Relaxed);
    }

    /// The word that holds only the pageblock `block`. Returns `None` if the number of the pageblock's group
    /// does not fit into the upper half of the word.
    const fn word_of(block: BlockId) -> Option<usize> {
        let (half, bit) = (block.0 / ROW_FRAMES, block.0 % ROW_FRAMES);
        if half >> ROW_FRAMES == 0 { Some(half << ROW_FRAMES | 1 << bit) } else { None }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Relaxed) & ALL == 0
    }

    pub(crate) fn blocks(&self) -> Several {
        several(self.0.load(SeqCst))
    }

    pub(crate) fn first(&self) -> Option<BlockId> {
        self.blocks().first()
    }

    pub(crate) fn has(&self, block: BlockId) -> bool {
        { self.blocks() }.any(|other| other == block)
    }

    #[inline]
    pub(crate) fn take<A: Access>(&self) -> Option<BlockId> {
        let without_first = |now: usize| (now & ALL != 0).then(|| now & now.wrapping_sub(1));
        several(update::<A, _>(&self.0, SeqCst, without_first).ok()?).first()
    }

    pub(crate) fn take_all<A: Access>(&self) -> Several {
        several(update::<A, _>(&self.0, SeqCst, |_| Some(0)).unwrap_or(0))
    }

    /// Adds a pageblock. Returns `false` if there are `most` pageblocks already, or if those pageblocks
    /// belong to another group.
    pub(crate) fn add<A: Access>(&self, block: BlockId, most: usize) -> bool {
        let Some(one) = Self::word_of(block) else { return false };
        let with = |now: usize| match now & ALL {
            0 => Some(one),
            bits => {
                let has_room = now >> ROW_FRAMES == one >> ROW_FRAMES && bits.count_ones() < most as u32;
                has_room.then_some(now | one)
            }
        };
        update::<A, _>(&self.0, SeqCst, with).is_ok()
    }

    /// Takes this pageblock out. Returns `false` if the `Nearby` does not have the pageblock.
    pub(crate) fn remove<A: Access>(&self, block: BlockId) -> bool {
        let Some(one) = Self::word_of(block) else { return false };
        let is_there = |now: usize| now >> ROW_FRAMES == one >> ROW_FRAMES && now & one & ALL != 0;
        update::<A, _>(&self.0, SeqCst, |now| is_there(now).then_some(now & !(one & ALL))).is_ok()
    }

    /// Replaces all pageblocks by `block`, and returns the old pageblocks. If the number of the new pageblock
    /// is too large, changes nothing and returns the new pageblock.
    pub(crate) fn replace<A: Access>(&self, block: BlockId) -> Several {
        match Self::word_of(block) {
            Some(one) => several(update::<A, _>(&self.0, SeqCst, |_| Some(one)).unwrap_or(0)),
            None => Several::of(block),
        }
    }
}

const fn several(stock: usize) -> Several {
    Several::of_half(stock >> ROW_FRAMES, stock & ALL)
}

/// Order and type of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) order: Order,
    pub(crate) migratetype: MigrateType,
}

/// The pageblock that a CPU reserves for some of its requests, and the row that it takes from. The pageblock
/// and the row are hints and may be out of date.
#[derive(Debug)]
pub(crate) struct Reservation(AtomicU32);

impl Reservation {
    constant! {
        fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }

    /// Overwrites the reservation with `place`, which may be nonsense.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn damage(&self, place: u32) {
        self.0.store(place, Relaxed);
    }

    /// The pageblock that the CPU reserves, and the row that it takes from.
    #[inline]
    pub(crate) fn get(&self) -> Option<(BlockId, usize)> {
        place(self.0.load(Relaxed))
    }

    /// Replaces the pageblock. Returns the one before.
    pub(crate) fn replace<A: Access>(&self, block: Option<BlockId>) -> Option<BlockId> {
        let new = block.map_or(0, |block| (block.0 * ROWS) as u32 + 1);
        let before = update::<A, _>(&self.0, SeqCst, |_| Some(new)).unwrap_or(0);
        place(before).map(|(block, _)| block)
    }

    /// Forgets the pageblock if it is `block`. Returns whether it was.
    pub(crate) fn forget<A: Access>(&self, block: BlockId) -> bool {
        let is_this = |now: u32| place(now).is_some_and(|(reserved, _)| reserved == block);
        update::<A, _>(&self.0, SeqCst, |now| is_this(now).then_some(0)).is_ok()
    }

    /// Moves the reservation from row `from` to row `to` of the same pageblock. Race: another thread of the
    /// same CPU reserves another pageblock meanwhile. This call loses and changes nothing. So the CPU does
    /// not forget its new pageblock.
    #[inline]
    pub(crate) fn advance<A: Access>(&self, block: BlockId, from: usize, to: usize) {
        let number = |row| (block.0 * ROWS + row) as u32 + 1;
        let advance = |now: u32| (now == number(from)).then_some(number(to));
        update::<A, _>(&self.0, Relaxed, advance).ok();
    }
}

/// The most pageblocks that an allocator can have: a `Reservation` numbers all their rows in one word.
pub(crate) const MAX_BLOCKS: usize = (u32::MAX as usize - 1) / ROWS;

#[inline]
const fn place(number: u32) -> Option<(BlockId, usize)> {
    match number.checked_sub(1) {
        Some(place) => Some((BlockId(place as usize / ROWS), place as usize % ROWS)),
        None => None,
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counts of a CPU's events. A counter only rises, until it wraps around to 0.
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

        /// Events of a CPU, a zone or an allocator since the allocator was built.
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
    /// About how often a CPU changed the sets of pageblocks, which all CPUs of a zone share: the sum of five
    /// counters. A free to a pageblock that another CPU reserves does not count: such a free changes only a
    /// line of the pageblock.
    #[must_use]
    pub const fn shared(&self) -> usize {
        let parts = self.adopted.wrapping_add(self.claimed).wrapping_add(self.published);
        parts.wrapping_add(self.rescued).wrapping_add(self.settled)
    }
}

counters! {
    /// Pageblocks in part use that a CPU reserved.
    adopted,
    /// How often a CPU took one or more whole pageblocks from the zone: for a request, or to take them out of
    /// service. A take of contiguous frames counts each whole pageblock.
    claimed,
    /// How often a CPU returned one or more whole pageblocks to the zone. A pageblock in a stock is not
    /// counted until the stock returns it.
    published,
    /// How often an open pageblock became whole, because its last frame in use was freed.
    closed,
    /// How often a CPU added a pageblock to the set of unsettled ones, or moved it to another set because the
    /// order of its largest free block changed. Counted only with the feature `line-counts`.
    settled,
    /// Blocks that were found only after no suitable pageblock was free. A rescued block lies in a pageblock
    /// that another CPU reserved or had in its stock, or in a pageblock of another type.
    rescued,
    /// Blocks that requests took from pageblocks of another type.
    fallbacks,
    /// Pageblocks that changed their type for a request of the new type: the request found no other memory,
    /// or only clean units had whole pageblocks.
    retyped,
    /// Blocks that were free already when a CPU returned them from its arrays: double frees.
    double_frees,
    /// Table entries that contradicted another table and were left alone. Above 0, the allocator's own data
    /// is damaged, or two CPUs freed one block of order 10 at once.
    damaged,
    /// How often a CPU changed the free frames of a pageblock that another CPU had changed last. Counted only
    /// with the feature `line-counts`.
    line_transfers,
    /// The part of `line_transfers` that happened within 10 us of the other CPU's change.
    contended_lines,
    /// How often a request would have brought a zone below its low watermark. If this counter rises, your
    /// kernel should reclaim memory.
    below_low,
    /// Requests that found no memory.
    failed,
}

pub(crate) fn count<A: Access>(counter: &AtomicUsize) {
    add::<A>(counter, 1);
}
