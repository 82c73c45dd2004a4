//! One virtual CPU's state.

use std::cell::Cell;

use super::stack::WayBack;
use crate::lock::Held;

/// The scheduler's data about one virtual CPU. Times are in picoseconds.
#[derive(Debug, Default)]
pub(crate) struct Processor {
    pub(crate) clock: Cell<u64>,
    pub(crate) idle_ps: Cell<u64>,
    /// Sequence number of this CPU's valid entry in the agenda; 0 if the CPU has none.
    pub(super) entry: Cell<u64>,
    pub(crate) way_back: WayBack,
    /// Whether this CPU is suspended until another CPU passes a lock to it.
    pub(crate) is_spinning: Cell<bool>,
    pub(super) is_idle: Cell<bool>,
    pub(super) is_woken: Cell<bool>,
    /// Whether `Engine::live` counts this CPU: the CPU will run again, even if no other CPU wakes it.
    pub(super) is_counted: Cell<bool>,
    pub(crate) next_tick: Cell<u64>,
    pub(crate) node: u16,
    pub(crate) core: u32,
    pub(crate) cache: u32,
    /// Additional time of computing because another hardware thread of the core has a body too, in 1/256 of
    /// the time that the work takes on a core with one body.
    pub(crate) slowdown: Cell<u64>,
    pub(crate) scratch: Scratch,
    pub(crate) held: Held,
}

impl Processor {
    pub(crate) fn new(node: u16, core: u32, cache: u32, first_tick: u64) -> Self {
        Self { node, core, cache, next_tick: Cell::new(first_tick), ..Self::default() }
    }

    /// Whether this CPU works or spins. A CPU that neither works nor spins is idle.
    pub(crate) fn is_busy(&self) -> bool {
        !self.is_idle.get()
    }
}

/// Counts of the allocator's operation that the CPU does now.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Number of times that the operation took a zone lock.
    pub(crate) zone_visits: Cell<u32>,
    /// Number of blocks that the operation's refills took from zones.
    pub(crate) refilled: Cell<u32>,
    /// Number of drains that the operation did.
    pub(crate) drains: Cell<u32>,
    /// Number of blocks that the CPU has moved so far under the zone lock that it holds.
    pub(crate) blocks_in_hold: Cell<u32>,
    /// Time that the CPU waited for the lock that it took last, in picoseconds.
    pub(crate) lock_wait: Cell<u64>,
    /// Time that the cache line of the lock that the CPU took last needed to move to this CPU, in
    /// picoseconds.
    pub(crate) lock_line: Cell<u64>,
    /// Time that the operation spent waiting for locks, in picoseconds.
    pub(crate) waited: Cell<u64>,
    /// The part of `waited` during which another CPU held the lock to drain a page set.
    pub(crate) waited_for_drains: Cell<u64>,
    /// Whether the CPU holds a zone lock in order to drain a page set.
    pub(crate) is_drain: Cell<bool>,
    /// Number of atomic exchanges whose cost is already part of the price of the operation.
    pub(crate) exchanges_included: Cell<u64>,
}

impl Scratch {
    /// Sets the counts of an operation to zero, because a new operation begins.
    #[inline]
    pub(crate) fn clear(&self) {
        self.zone_visits.set(0);
        self.refilled.set(0);
        self.drains.set(0);
        self.waited.set(0);
        self.waited_for_drains.set(0);
    }
}
