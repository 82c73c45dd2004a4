//! The values of a zone that CPUs read without the zone's lock: counts of free pages, nonempty lists, flags.
//!
//! A CPU changes a gauge only while the CPU holds the zone's lock, but may change a flag without the lock.
//! Any CPU may read all gauges and flags. A reader may see an old value for a moment, as in Linux.

use core::sync::atomic::{AtomicIsize, AtomicU8, AtomicU16, Ordering::Relaxed};

use crate::count::Count;
use crate::{MigrateType, Order};

/// A zone's gauges. The gauges have their own cache lines, because each allocation reads the fields beside
/// the gauges, and CPUs hardly ever write these fields.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Gauges {
    /// Number of free frames on all lists except the isolated lists: `NR_FREE_PAGES`.
    free: AtomicIsize,
    free_cma: AtomicIsize,
    free_highatomic: AtomicIsize,
    free_isolated: AtomicIsize,
    /// Number of frames in pageblocks that are reserved for atomic requests.
    reserved_highatomic: Count,
    isolated_pageblocks: Count,
    /// The flags are on the cache line of the gauges, because the zone walk reads the gauges anyway.
    pub(super) flags: AtomicU8,
    nonempty: Nonempty,
}

/// For each type and order, a bit that says whether the list has a block. The bits have their own cache line,
/// because splits and merges often write the bits. Only requests of orders above 0 read the bits without the
/// lock.
#[derive(Debug)]
#[repr(align(128))]
struct Nonempty([AtomicU16; MigrateType::COUNT]);

impl Gauges {
    pub(super) const fn new() -> Self {
        Self {
            free: AtomicIsize::new(0),
            free_cma: AtomicIsize::new(0),
            free_highatomic: AtomicIsize::new(0),
            free_isolated: AtomicIsize::new(0),
            reserved_highatomic: Count::new(),
            isolated_pageblocks: Count::new(),
            flags: AtomicU8::new(0),
            nonempty: Nonempty([const { AtomicU16::new(0) }; MigrateType::COUNT]),
        }
    }

    /// Adds `frames` frames that entered free lists other than the isolated lists. If `frames` is negative,
    /// frames left the free lists. The caller holds the zone lock.
    #[inline]
    pub(crate) fn add_free(&self, frames: i64) {
        add(&self.free, frames);
    }

    /// Adds `frames` frames that entered a free list of `migratetype`, if this type has a separate count. If
    /// `frames` is negative, frames left the list. The caller holds the zone lock.
    #[inline]
    pub(crate) fn account_type(&self, migratetype: MigrateType, frames: i64) {
        match migratetype {
            MigrateType::Isolate => add(&self.free_isolated, frames),
            MigrateType::Cma => add(&self.free_cma, frames),
            MigrateType::HighAtomic => add(&self.free_highatomic, frames),
            MigrateType::Unmovable | MigrateType::Movable | MigrateType::Reclaimable => {}
        }
    }

    #[inline]
    pub(crate) fn free_pages(&self) -> i64 {
        self.free.load(Relaxed) as i64
    }

    #[inline]
    pub(crate) fn free_cma(&self) -> i64 {
        self.free_cma.load(Relaxed) as i64
    }

    pub(crate) fn free_highatomic(&self) -> i64 {
        self.free_highatomic.load(Relaxed) as i64
    }

    pub(crate) fn free_isolated(&self) -> i64 {
        self.free_isolated.load(Relaxed) as i64
    }

    pub(crate) fn reserved_highatomic(&self) -> u64 {
        self.reserved_highatomic.get()
    }

    /// Sets the number of frames in the high-order reserve. The caller holds the zone lock.
    pub(crate) fn set_reserved_highatomic(&self, frames: u64) {
        self.reserved_highatomic.set(frames);
    }

    pub(crate) fn isolated_pageblocks(&self) -> u64 {
        self.isolated_pageblocks.get()
    }

    /// Sets the number of isolated pageblocks. The caller holds the zone lock.
    pub(crate) fn set_isolated_pageblocks(&self, pageblocks: u64) {
        self.isolated_pageblocks.set(pageblocks);
    }

    #[inline]
    pub(crate) fn mark_nonempty(&self, order: Order, migratetype: MigrateType) {
        let bits = &self.nonempty.0[migratetype.index()];
        bits.store(bits.load(Relaxed) | 1 << order.get(), Relaxed);
    }

    #[inline]
    pub(crate) fn mark_empty(&self, order: Order, migratetype: MigrateType) {
        let bits = &self.nonempty.0[migratetype.index()];
        bits.store(bits.load(Relaxed) & !(1 << order.get()), Relaxed);
    }

    /// The smallest order, at least `order`, that has a free block of `migratetype`.
    #[inline]
    pub(crate) fn smallest(&self, order: Order, migratetype: MigrateType) -> Option<Order> {
        let bits = self.nonempty.0[migratetype.index()].load(Relaxed) >> order.get();
        (bits != 0).then(|| Order::from_index(order.index() + bits.trailing_zeros() as usize))
    }
}

/// Only the holder of the zone lock writes a gauge, so no atomic addition is needed.
#[inline]
fn add(gauge: &AtomicIsize, frames: i64) {
    gauge.store(gauge.load(Relaxed) + frames as isize, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_are_counted_apart_are() {
        let gauges = Gauges::new();
        gauges.account_type(MigrateType::Isolate, 8);
        gauges.account_type(MigrateType::Cma, 4);
        gauges.account_type(MigrateType::HighAtomic, 2);
        gauges.account_type(MigrateType::Movable, 1);
        assert_eq!((gauges.free_isolated(), gauges.free_cma(), gauges.free_highatomic()), (8, 4, 2));
        assert_eq!(gauges.free_pages(), 0);
    }

    #[test]
    fn the_smallest_sufficient_order_is_found() {
        let gauges = Gauges::new();
        let order = |o| Order::new(o).unwrap();
        gauges.mark_nonempty(order(2), MigrateType::Movable);
        gauges.mark_nonempty(order(10), MigrateType::Movable);
        assert_eq!(gauges.smallest(order(0), MigrateType::Movable), Some(order(2)));
        assert_eq!(gauges.smallest(order(3), MigrateType::Movable), Some(order(10)));
        gauges.mark_empty(order(10), MigrateType::Movable);
        assert_eq!(gauges.smallest(order(3), MigrateType::Movable), None);
        assert_eq!(gauges.smallest(order(0), MigrateType::Unmovable), None);
    }
}
