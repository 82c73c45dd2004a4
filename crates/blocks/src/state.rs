//! What a pageblock is for: phase, order, type, owner, in one word that changes by exchange.

use pageset_core::{CpuId, MigrateType, Order, PAGEBLOCK_ORDER};

use crate::atomic::{AtomicU32, SeqCst, constant};

/// What a pageblock is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Phase {
    /// No frame of it may be used.
    Absent = 0,
    /// Free as a whole; a bit of the map of whole pageblocks says so.
    Whole = 1,
    /// Free as a whole, and kept back by a CPU for its next request.
    Spare = 2,
    /// Allocated as a whole, or the first of several that are.
    Handed = 3,
    /// Split, and owned by a CPU that does not allocate from it.
    Idle = 4,
    /// Split, and owned by a CPU that allocates from it.
    Current = 5,
    /// Split, while a CPU changes what it is. Frames may come back to it, and nobody keeps what it takes of it.
    Changing = 6,
    /// Allocated as a whole together with the one before it.
    Inner = 7,
}

/// Everything about a pageblock but its free frames.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct State(u32);

const PHASE: u32 = 0b111;
const ORDER_AT: u32 = 3;
const ORDER: u32 = 0b1111 << ORDER_AT;
const TYPE_AT: u32 = 7;
const TYPE: u32 = 0b111 << TYPE_AT;
const LINKED: u32 = 1 << 10;
const MIXED: u32 = 1 << 11;
const HOLED: u32 = 1 << 12;
const ISOLATED: u32 = 1 << 13;
const BAD: u32 = 1 << 14;
const CUTTING: u32 = 1 << 15;
/// What does not change with what a pageblock is for.
const LASTING: u32 = LINKED | ISOLATED;
const OWNER_AT: u32 = 16;

/// CPUs that can own pageblocks.
pub(crate) const MAX_CPUS: usize = 1 << (32 - OWNER_AT);

impl State {
    pub(crate) const ABSENT: Self = Self(Phase::Absent as u32 | ORDER);

    /// A pageblock that is split into blocks of `order`, for requests of one type.
    #[inline]
    pub(crate) const fn split(order: Order, migratetype: MigrateType) -> Self {
        Self(
            Phase::Current as u32
                | (order.get() as u32) << ORDER_AT
                | (migratetype.index() as u32) << TYPE_AT,
        )
    }

    #[inline]
    pub(crate) const fn phase(self) -> Phase {
        const PHASES: [Phase; 8] = [
            Phase::Absent,
            Phase::Whole,
            Phase::Spare,
            Phase::Handed,
            Phase::Idle,
            Phase::Current,
            Phase::Changing,
            Phase::Inner,
        ];
        PHASES[(self.0 & PHASE) as usize]
    }

    #[inline]
    #[must_use]
    pub(crate) const fn in_phase(self, phase: Phase) -> Self {
        Self(self.0 & !PHASE | phase as u32)
    }

    /// Whether it is split, and nobody is changing it.
    #[inline]
    pub(crate) const fn is_open(self) -> bool {
        self.0 & 0b110 == Phase::Idle as u32
    }

    /// Whether frames of it may be taken.
    #[inline]
    pub(crate) const fn gives(self) -> bool {
        self.0 & (0b110 | ISOLATED) == Phase::Idle as u32
    }

    /// Whether frames may be taken, and are blocks of this order and type: nothing else has to be looked at then.
    #[inline]
    pub(crate) const fn serves(self, order: Order, migratetype: MigrateType) -> bool {
        let wanted = Self::split(order, migratetype).in_phase(Phase::Idle);
        // Idle and current differ in the lowest bit.
        (self.0 ^ wanted.0) & (0b110 | ORDER | TYPE | MIXED | ISOLATED) == 0
    }

    /// Whether frees of `order`, below that of pageblocks, need no other look than at the block's bits.
    #[inline]
    pub(crate) const fn takes_back(self, order: Order) -> bool {
        let wanted = (order.get() as u32) << ORDER_AT | Phase::Idle as u32;
        // Idle, current and changing pageblocks are split. So says the phase of the second half of a block of several, whose
        // order is none of these.
        (self.0 ^ wanted) & (0b100 | ORDER | MIXED | HOLED | ISOLATED | BAD) == 0
    }

    /// Whether frees of `order` need no look afterwards: a CPU allocates such blocks from it, and no others.
    #[inline]
    pub(crate) const fn is_current_of(self, order: Order) -> bool {
        let wanted = (order.get() as u32) << ORDER_AT | Phase::Current as u32;
        (self.0 ^ wanted) & (PHASE | ORDER | MIXED | HOLED | ISOLATED | BAD) == 0
    }

    /// Whether this is a pageblock of the same order, type and owner, if `other` [takes back](Self::takes_back) such blocks without another
    /// look than at their bits; then this one does too.
    #[inline]
    pub(crate) const fn is_like(self, other: Self) -> bool {
        const OWNER: u32 = u32::MAX << OWNER_AT;
        (self.0 ^ other.0) & (0b100 | ORDER | TYPE | MIXED | HOLED | ISOLATED | BAD | OWNER) == 0
    }

    /// Whether it is one block in use, which comes back as a whole without another look.
    #[inline]
    pub(crate) const fn is_pageblock_in_use(self) -> bool {
        let wanted = (Order::PAGEBLOCK.get() as u32) << ORDER_AT | Phase::Handed as u32;
        (self.0 ^ wanted) & (PHASE | ORDER | ISOLATED | BAD) == 0
    }

    /// The order of its blocks; of those that are cut, the order they were cut from.
    #[inline]
    pub(crate) const fn order(self) -> Order {
        match Order::new(((self.0 & ORDER) >> ORDER_AT) as u8) {
            Some(order) => order,
            None => Order::MAX,
        }
    }

    /// The order of its blocks, if it is split: below that of pageblocks. Other bits are damage.
    #[inline]
    pub(crate) const fn split_order(self) -> Order {
        if self.order().index() < PAGEBLOCK_ORDER { self.order() } else { Order::ZERO }
    }

    #[inline]
    #[must_use]
    pub(crate) const fn of_order(self, order: Order) -> Self {
        Self(self.0 & !ORDER | (order.get() as u32) << ORDER_AT)
    }

    /// The type's number, or another one if it is damaged.
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

    #[inline]
    pub(crate) const fn owner(self) -> CpuId {
        CpuId(self.0 >> OWNER_AT)
    }

    #[inline]
    #[must_use]
    pub(crate) const fn of_owner(self, cpu: CpuId) -> Self {
        Self(self.0 & !(u32::MAX << OWNER_AT) | cpu.0 << OWNER_AT)
    }

    /// Whether it is in somebody's list of pageblocks that have free frames.
    #[inline]
    pub(crate) const fn is_linked(self) -> bool {
        self.0 & LINKED != 0
    }

    #[inline]
    #[must_use]
    pub(crate) const fn linked(self, is_linked: bool) -> Self {
        if is_linked { Self(self.0 | LINKED) } else { Self(self.0 & !LINKED) }
    }

    /// Whether blocks of several orders are in use in it.
    #[inline]
    pub(crate) const fn is_mixed(self) -> bool {
        self.0 & MIXED != 0
    }

    #[inline]
    #[must_use]
    pub(crate) const fn mixed(self) -> Self {
        Self(self.0 | MIXED)
    }

    /// Whether some of its frames may not be used. Then its blocks are single frames, always.
    #[inline]
    pub(crate) const fn is_holed(self) -> bool {
        self.0 & HOLED != 0
    }

    #[inline]
    #[must_use]
    pub(crate) const fn holed(self) -> Self {
        Self(self.0 | HOLED)
    }

    /// Whether frames of it may be out of service for good; if it is a block in use, whether it is.
    #[inline]
    pub(crate) const fn has_bad(self) -> bool {
        self.0 & BAD != 0
    }

    #[inline]
    #[must_use]
    pub(crate) const fn bad(self) -> Self {
        Self(self.0 | BAD)
    }

    /// Whether it is out of service: its free frames are nobody's.
    #[inline]
    pub(crate) const fn is_isolated(self) -> bool {
        self.0 & ISOLATED != 0
    }

    #[inline]
    #[must_use]
    pub(crate) const fn isolated(self, is_isolated: bool) -> Self {
        if is_isolated { Self(self.0 | ISOLATED) } else { Self(self.0 & !ISOLATED) }
    }

    /// Whether a CPU is cutting blocks in use. Only a CPU that would cut others minds.
    #[inline]
    pub(crate) const fn is_being_cut(self) -> bool {
        self.0 & CUTTING != 0
    }

    #[inline]
    #[must_use]
    pub(crate) const fn being_cut(self, is_being_cut: bool) -> Self {
        if is_being_cut { Self(self.0 | CUTTING) } else { Self(self.0 & !CUTTING) }
    }

    /// Whether a block of `order`, below that of pageblocks, may come back to it: it is split, into no larger blocks.
    pub(crate) const fn may_get_back(self, order: Order) -> bool {
        let has_its_size = self.is_mixed() || self.is_holed() || self.order().index() <= order.index();
        self.is_split() && has_its_size
    }

    /// Whether its free bits mean anything.
    #[inline]
    pub(crate) const fn is_split(self) -> bool {
        matches!(self.phase(), Phase::Idle | Phase::Current | Phase::Changing)
    }

    /// With what lasts of the state before: whether it is in a list, for those who will find it there, and whether it is out of
    /// service.
    #[inline]
    #[must_use]
    pub(crate) const fn keeping(self, before: Self) -> Self {
        Self(self.0 & !LASTING | before.0 & LASTING)
    }

    /// As it is when nobody uses it. What lasts stays.
    #[inline]
    #[must_use]
    pub(crate) const fn unused(self, phase: Phase) -> Self {
        Self(self.0 & LASTING | ORDER | phase as u32)
    }
}

impl core::fmt::Debug for State {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let flags =
            [("linked", self.is_linked()), ("mixed", self.is_mixed()), ("isolated", self.is_isolated())];
        write!(
            f,
            "{:?} order {} {} of CPU {}",
            self.phase(),
            self.order(),
            self.migratetype(),
            self.owner().0
        )?;
        flags.iter().filter(|(_, set)| *set).try_for_each(|(name, _)| write!(f, " {name}"))
    }
}

/// A pageblock's state, the next one in the list it is in, and how many of its frames the zone counts as free.
#[derive(Debug)]
pub struct BlockState {
    state: AtomicU32,
    /// See [`Stack`](crate::stack::Stack).
    pub(crate) next: AtomicU32,
    /// Free frames that the zone's count of idle frames includes.
    pub(crate) counted: AtomicU32,
}

impl Default for BlockState {
    fn default() -> Self {
        Self::new()
    }
}

impl BlockState {
    constant! {
        /// An entry of a table, to be filled when the allocator is built.
        #[must_use]
        pub fn new() -> Self {
            Self {
                state: AtomicU32::new(State::ABSENT.0),
                next: AtomicU32::new(0),
                counted: AtomicU32::new(0),
            }
        }
    }

    #[inline]
    pub(crate) fn get(&self) -> State {
        State(self.state.load(SeqCst))
    }

    /// Damages one bit.
    #[cfg(all(test, not(any(loom, miri))))]
    pub(crate) fn flip(&self, bit: u32) {
        self.set(State(self.get().0 ^ 1 << bit));
    }

    /// For whoever has the pageblock for himself.
    #[inline]
    pub(crate) fn set(&self, state: State) {
        self.state.store(state.0, SeqCst);
    }

    /// Changes the state by `change`, unless that returns none. Returns the state before, or the one that was not changed.
    #[inline]
    pub(crate) fn update(&self, change: impl Fn(State) -> Option<State>) -> Result<State, State> {
        let mut state = self.state.load(SeqCst);
        loop {
            let Some(next) = change(State(state)) else { return Err(State(state)) };
            match self.state.compare_exchange_weak(state, next.0, SeqCst, SeqCst) {
                Ok(_) => return Ok(State(state)),
                Err(now) => state = now,
            }
        }
    }

    /// Changes the phase from `from`, in which the rest of the state does not matter, to `to`.
    #[inline]
    pub(crate) fn change(&self, from: Phase, to: Phase) -> bool {
        self.update(|state| (state.phase() == from).then(|| state.in_phase(to))).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_touch_each_other() {
        for order in Order::ZERO.and_above() {
            for migratetype in MigrateType::ALL {
                let state = State::split(order, migratetype).of_owner(CpuId(65_535)).linked(true).mixed();
                assert_eq!((state.order(), state.migratetype()), (order, migratetype));
                assert_eq!((state.owner(), state.is_linked(), state.is_mixed()), (CpuId(65_535), true, true));
                for phase in [Phase::Absent, Phase::Idle, Phase::Changing, Phase::Inner] {
                    assert_eq!(state.in_phase(phase).phase(), phase);
                    assert_eq!(state.in_phase(phase).order(), order);
                }
                assert!(!state.serves(order, migratetype), "mixed pageblocks need another look");
                assert_eq!(state.unused(Phase::Whole), State::ABSENT.in_phase(Phase::Whole).linked(true));
            }
        }
    }

    #[test]
    fn only_split_pageblocks_serve() {
        let state = State::split(Order::ZERO, MigrateType::Movable).of_owner(CpuId(3)).linked(true);
        assert!(state.serves(Order::ZERO, MigrateType::Movable));
        assert!(state.in_phase(Phase::Idle).serves(Order::ZERO, MigrateType::Movable));
        assert!(!state.serves(Order::ZERO, MigrateType::Unmovable));
        assert!(!state.serves(Order::PAGEBLOCK, MigrateType::Movable));
        for phase in [Phase::Absent, Phase::Whole, Phase::Spare, Phase::Handed, Phase::Changing, Phase::Inner]
        {
            assert!(
                !state.in_phase(phase).is_open()
                    && !state.in_phase(phase).serves(Order::ZERO, MigrateType::Movable)
            );
        }
    }
}
