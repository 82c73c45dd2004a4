//! The state of a pageblock: phase, type and reservation, in one word that changes by exchange.

use pageset_core::{CpuId, MigrateType, Order, PAGEBLOCK_ORDER};

use crate::access::{Access, update};
use crate::atomic::{AtomicU32, Relaxed, SeqCst, constant};
use crate::row::Row;

/// The phase of a pageblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Phase {
    /// All frames are free. The pageblock is in the set of whole pageblocks or in a CPU's stock, or a CPU has
    /// claimed it. The number of this phase is zero, so that the constructor of an allocator need not write
    /// the states of whole pageblocks.
    Whole = 0,
    /// No frame of the pageblock is memory.
    Absent = 1,
    /// The pageblock is one block in use, or the first half of such a block.
    Block = 2,
    /// The second half of a block in use.
    SecondHalf = 3,
    /// The pageblock's rows say how each frame is used.
    Open = 4,
    /// One CPU is changing the pageblock from one phase to another.
    Changing = 5,
    /// All frames are free, and the pageblock is out of service.
    Parked = 6,
}

/// The use of a pageblock: its phase, its type, its flags, and the CPU that reserves it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct State(u32);

const PHASE: u32 = 0b111;
const PAIR: u32 = 1 << 3;
const TYPE_AT: u32 = 4;
const TYPE: u32 = 0b111 << TYPE_AT;
const SETTLED: u32 = 1 << 11;
const HOLED: u32 = 1 << 12;
const ISOLATED: u32 = 1 << 13;
const BAD: u32 = 1 << 14;
const RESERVED: u32 = 1 << 15;
/// From this bit on, the state has the number of the CPU that reserves the pageblock. If no CPU reserves the
/// pageblock, each of these bits says whether the pageblock has a free block of an order below a pageblock's.
const OWNER_AT: u32 = 16;
const ORDERS: u32 = (1 << PAGEBLOCK_ORDER) - 1;

/// The number of CPUs that can reserve pageblocks.
pub(crate) const MAX_CPUS: usize = 1 << (32 - OWNER_AT);

impl State {
    pub(crate) const ABSENT: Self = Self(Phase::Absent as u32);

    /// A state with any word, for tests of damage.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) const fn damaged(word: u32) -> Self {
        Self(word)
    }

    /// The state of an open pageblock that serves requests of one type and that no CPU reserves.
    #[inline]
    pub(crate) const fn open(migratetype: MigrateType) -> Self {
        Self(Phase::Open as u32).of_type(migratetype)
    }

    #[inline]
    pub(crate) const fn phase(self) -> Phase {
        match self.0 & PHASE {
            0 => Phase::Whole,
            1 => Phase::Absent,
            2 => Phase::Block,
            3 => Phase::SecondHalf,
            4 => Phase::Open,
            5 => Phase::Changing,
            _ => Phase::Parked,
        }
    }

    #[inline]
    #[must_use]
    pub(crate) const fn in_phase(self, phase: Phase) -> Self {
        Self(self.0 & !PHASE | phase as u32)
    }

    /// Returns the state of a pageblock that is not open any more. Of the flags, only the isolation flag
    /// stays.
    #[must_use]
    pub(crate) const fn closed_as(self, phase: Phase) -> Self {
        Self(self.0 & ISOLATED | phase as u32)
    }

    /// Whether two states have the same type, and the same isolation.
    #[inline]
    pub(crate) const fn is_like(self, other: Self) -> bool {
        (self.0 ^ other.0) & (TYPE | ISOLATED) == 0
    }

    /// Whether a request of this type may take frames of the pageblock.
    #[inline]
    pub(crate) const fn serves(self, migratetype: MigrateType) -> bool {
        (self.0 ^ Self::open(migratetype).0) & (PHASE | TYPE | ISOLATED) == 0
    }

    /// Whether the pageblock is open and in service, and no CPU reserves it.
    #[inline]
    pub(crate) const fn is_idle(self) -> bool {
        self.0 & (PHASE | ISOLATED | RESERVED) == Phase::Open as u32
    }

    /// Whether the pageblock is open and in service, so that requests may take blocks of its rows.
    #[inline]
    pub(crate) const fn gives(self) -> bool {
        self.0 & (PHASE | ISOLATED) == Phase::Open as u32
    }

    /// The order of the set that the pageblock belongs to: the largest order in [`orders`](Self::orders). A
    /// CPU may still be about to add the pageblock to the set. Returns `None` if the pageblock belongs to no
    /// set.
    #[inline]
    pub(crate) const fn set_order(self) -> Option<usize> {
        if self.is_idle() { self.mark().checked_sub(1) } else { None }
    }

    /// Whether a free that left this row makes the pageblock unsettled or perhaps whole. Returns `false` if a
    /// CPU reserves the pageblock, because that CPU settles it when the reservation ends.
    #[inline]
    pub(crate) const fn needs_look(self, row: Row) -> bool {
        self.is_idle() && (self.0 & SETTLED != 0 || row.0 == Row::FREE.0)
    }

    /// The order of the block in use that this state describes: of one pageblock, or of two.
    #[inline]
    pub(crate) const fn block_order(self) -> Order {
        if self.0 & PAIR == 0 { Order::PAGEBLOCK } else { Order::MAX }
    }

    #[inline]
    #[must_use]
    pub(crate) const fn of_block(self, order: Order) -> Self {
        if order.index() > PAGEBLOCK_ORDER { Self(self.0 | PAIR) } else { Self(self.0 & !PAIR) }
    }

    #[inline]
    pub(crate) const fn is_block_of(self, order: Order) -> bool {
        let wanted = Self(Phase::Block as u32).of_block(order);
        (self.0 ^ wanted.0) & (PHASE | PAIR | BAD) == 0
    }

    /// The orders of the free blocks, a bit for each order, when a CPU settled the pageblock last. The bits
    /// are zero while a CPU reserves the pageblock. The bits may be out of date: a block that was freed since
    /// may be missing, and any block may have been taken.
    #[inline]
    pub(crate) const fn orders(self) -> usize {
        if self.0 & RESERVED == 0 { (self.0 >> OWNER_AT & ORDERS) as usize } else { 0 }
    }

    /// Returns this state with `orders` as the orders of free blocks. No CPU may reserve the pageblock.
    #[inline]
    #[must_use]
    pub(crate) const fn with_orders(self, orders: usize) -> Self {
        Self(self.0 & !(u32::MAX << OWNER_AT) | (orders as u32 & ORDERS) << OWNER_AT)
    }

    /// The smallest order in [`orders`](Self::orders) that is at least `order`. Returns `None` if `orders`
    /// has only smaller orders, if a CPU reserves the pageblock, or if requests of this type may not use the
    /// pageblock.
    #[inline]
    pub(crate) const fn fitting(self, migratetype: MigrateType, order: usize) -> Option<usize> {
        if !self.serves(migratetype) || self.orders() >> order == 0 {
            return None;
        }
        Some(order + (self.orders() >> order).trailing_zeros() as usize)
    }

    /// One more than the largest order in [`orders`](Self::orders), or 0 if there is none.
    #[inline]
    pub(crate) const fn mark(self) -> usize {
        (usize::BITS - self.orders().leading_zeros()) as usize
    }

    #[inline]
    pub(crate) const fn type_index(self) -> usize {
        ((self.0 & TYPE) >> TYPE_AT) as usize
    }

    #[inline]
    pub(crate) const fn migratetype(self) -> MigrateType {
        match MigrateType::from_index(self.type_index()) {
            Some(migratetype) => migratetype,
            None => MigrateType::Isolate,
        }
    }

    #[inline]
    #[must_use]
    pub(crate) const fn of_type(self, migratetype: MigrateType) -> Self {
        Self(self.0 & !TYPE | (migratetype.index() as u32) << TYPE_AT)
    }

    /// The CPU that reserves the pageblock.
    #[inline]
    pub(crate) const fn owner(self) -> Option<CpuId> {
        if self.0 & RESERVED == 0 { None } else { Some(CpuId(self.0 >> OWNER_AT)) }
    }

    /// Whether no other CPU reserves the pageblock.
    #[inline]
    pub(crate) const fn may_be_used_by(self, cpu: CpuId) -> bool {
        self.0 & RESERVED == 0 || self.0 >> OWNER_AT == cpu.0
    }

    #[inline]
    pub(crate) const fn is_reserved_by(self, cpu: CpuId) -> bool {
        (self.0 ^ (RESERVED | cpu.0 << OWNER_AT)) & (RESERVED | u32::MAX << OWNER_AT) == 0
    }

    /// Returns this state with a reservation for a CPU. A reserved pageblock is in no set.
    #[inline]
    #[must_use]
    pub(crate) const fn reserved_by(self, cpu: CpuId) -> Self {
        Self(self.unreserved().0 | RESERVED | cpu.0 << OWNER_AT)
    }

    /// Returns this state without a reservation, without orders, and not settled: the pageblock is in no set
    /// yet.
    #[inline]
    #[must_use]
    pub(crate) const fn unreserved(self) -> Self {
        Self(self.0 & !(RESERVED | u32::MAX << OWNER_AT | SETTLED))
    }

    /// Whether a CPU has settled the pageblock, and no frame was freed since. The zone counts all free frames
    /// of a settled pageblock, and [`orders`](Self::orders) has the order of each free block.
    pub(crate) const fn is_settled(self) -> bool {
        self.0 & SETTLED != 0
    }

    #[must_use]
    pub(crate) const fn settled(self, is_settled: bool) -> Self {
        if is_settled { Self(self.0 | SETTLED) } else { Self(self.0 & !SETTLED) }
    }

    /// Whether some frames of the pageblock are no memory.
    #[inline]
    pub(crate) const fn is_holed(self) -> bool {
        self.0 & HOLED != 0
    }

    #[must_use]
    pub(crate) const fn holed(self) -> Self {
        Self(self.0 | HOLED)
    }

    /// Whether some frames of the pageblock are out of service for good. In phase `Block`, whether the whole
    /// block was marked bad.
    #[inline]
    pub(crate) const fn has_bad(self) -> bool {
        self.0 & BAD != 0
    }

    #[must_use]
    pub(crate) const fn bad(self) -> Self {
        Self(self.0 | BAD)
    }

    /// Whether the pageblock is out of service: no request takes its free frames.
    #[inline]
    pub(crate) const fn is_isolated(self) -> bool {
        self.0 & ISOLATED != 0
    }

    #[must_use]
    pub(crate) const fn isolated(self, is_isolated: bool) -> Self {
        if is_isolated { Self(self.0 | ISOLATED) } else { Self(self.0 & !ISOLATED) }
    }
}

impl core::fmt::Debug for State {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?} {} orders {:#b}", self.phase(), self.migratetype(), self.orders())?;
        if let Some(cpu) = self.owner() {
            write!(f, " reserved by CPU {}", cpu.0)?;
        }
        let flags = [("isolated", self.is_isolated()), ("holed", self.is_holed()), ("bad", self.has_bad())];
        flags.iter().filter(|(_, set)| *set).try_for_each(|(name, _)| write!(f, " {name}"))
    }
}

/// A pageblock's state, and the number of its free frames that the zone counts. A `BlockState` of zeros means
/// that all frames are free.
#[derive(Debug)]
#[cfg_attr(all(feature = "alloc", not(any(loom, shuttle))), derive(zerocopy::FromZeros))]
pub(crate) struct BlockState {
    state: AtomicU32,
    pub(crate) counted_frames: AtomicU32,
}

impl Default for BlockState {
    fn default() -> Self {
        Self::new()
    }
}

impl BlockState {
    constant! {
        /// Makes an entry of a table, for a whole pageblock. The constructor of the allocator changes the
        /// entries of other pageblocks.
        #[must_use]
        pub(crate) fn new() -> Self {
            Self { state: AtomicU32::new(Phase::Whole as u32), counted_frames: AtomicU32::new(0) }
        }
    }

    #[inline]
    pub(crate) fn get(&self) -> State {
        State(self.state.load(SeqCst))
    }

    /// Stores a state. Only the constructor calls `set`, before other threads have the allocator.
    pub(crate) fn set(&self, state: State) {
        self.state.store(state.0, Relaxed);
    }

    /// Changes the state by `change`, and returns the state before the change. If `change` returns `None`,
    /// the state stays as it is, and is returned as the error.
    #[inline]
    pub(crate) fn update<A: Access>(&self, change: impl Fn(State) -> Option<State>) -> Result<State, State> {
        let changed = update::<A, _>(&self.state, SeqCst, |state| change(State(state)).map(|next| next.0));
        changed.map(State).map_err(State)
    }

    /// Changes the phase from `from` to `to`. Returns `false` if the phase was not `from`.
    #[inline]
    pub(crate) fn change<A: Access>(&self, from: Phase, to: Phase) -> bool {
        self.update::<A>(|state| (state.phase() == from).then(|| state.in_phase(to))).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_touch_each_other() {
        for migratetype in MigrateType::ALL {
            let open = State::open(migratetype);
            assert_eq!((open.phase(), open.migratetype(), open.owner()), (Phase::Open, migratetype, None));
            assert!(open.serves(migratetype) && !open.isolated(true).serves(migratetype));
            let reserved = open.with_orders(0b1_0000_0000).reserved_by(CpuId(65_535));
            assert_eq!((reserved.owner(), reserved.mark()), (Some(CpuId(65_535)), 0));
            assert!(reserved.is_reserved_by(CpuId(65_535)) && !reserved.is_reserved_by(CpuId(1)));
            assert_eq!(reserved.unreserved(), open);
            for mark in 0..=9 {
                let marked = open.with_orders((1 << mark) >> 1);
                assert_eq!((marked.mark(), marked.migratetype()), (mark, migratetype));
                assert_eq!(marked.set_order(), mark.checked_sub(1));
                assert_eq!(
                    (marked.reserved_by(CpuId(0)).set_order(), marked.isolated(true).set_order()),
                    (None, None)
                );
            }
            let some = open.with_orders(0b1001);
            assert_eq!(
                [0, 1, 3, 4].map(|order| some.fitting(migratetype, order)),
                [Some(0), Some(3), Some(3), None]
            );
            assert_eq!(some.reserved_by(CpuId(9)).fitting(migratetype, 0), None);
        }
        for order in [Order::PAGEBLOCK, Order::MAX] {
            let block = State::ABSENT.in_phase(Phase::Block).of_block(order);
            assert!(block.is_block_of(order) && !block.bad().is_block_of(order));
            assert_eq!(block.block_order(), order);
        }
    }

    #[test]
    fn a_free_is_noted_where_another_cpu_must_look() {
        let one = Row::SINGLES.with_part_freed(0b1).expect("in use");
        let open = State::open(MigrateType::Movable);
        assert!(!open.needs_look(one) && open.settled(true).needs_look(one));
        assert!(open.needs_look(Row::FREE), "it may be whole now");
        for row in [one, Row::FREE] {
            assert!(!open.settled(true).reserved_by(CpuId(0)).needs_look(row));
            assert!(!open.settled(true).isolated(true).needs_look(row));
        }
    }
}
