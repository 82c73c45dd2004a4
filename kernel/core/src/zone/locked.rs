//! Defines the data that a zone's lock protects, and the view of a zone whose lock is held. Only the
//! functions of this file put blocks on the free lists or take blocks off these lists.
//!
//! `buddy` decides which blocks are split and merged, and how.

use core::sync::atomic::Ordering::Relaxed;

use super::ZoneBody;
use crate::event::{Event, EventSink, FoundAt, emit};
use crate::frame::{FrameIndex, List, State};
use crate::stats::Counters;
use crate::{CpuId, MigrateType, NR_ORDERS, Order, Pfn};

/// The data that a zone's lock protects.
///
/// The alignment puts the lock word and the data on different cache lines. A waiting CPU polls the lock word.
/// If the lock word and the data shared a cache line, each poll would take the cache line from the lock's
/// holder.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct FreeLists {
    lists: [[List; MigrateType::COUNT]; NR_ORDERS],
    /// Number of free blocks of each order, of all types together.
    nr_free: [u32; NR_ORDERS],
    pub(crate) stats: Counters,
}

impl FreeLists {
    pub(crate) const EMPTY: Self = Self {
        lists: [[List::EMPTY; MigrateType::COUNT]; NR_ORDERS],
        nr_free: [0; NR_ORDERS],
        stats: Counters::ZERO,
    };

    pub(crate) fn nr_free(&self, order: Order) -> u32 {
        self.nr_free[order.index()]
    }

    pub(crate) fn list(&self, order: Order, migratetype: MigrateType) -> &List {
        &self.lists[order.index()][migratetype.index()]
    }
}

/// The name of a free list: its order and its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListId {
    pub(crate) order: Order,
    pub(crate) migratetype: MigrateType,
}

/// The end of a free list that a block enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The end that allocations take blocks from.
    Head,
    /// The end whose blocks are allocated last.
    Tail,
}

/// A zone whose lock is held, with the zone's data that list operations need.
pub(crate) struct LockedZone<'z, E> {
    pub(crate) buddy: &'z mut FreeLists,
    pub(crate) body: &'z ZoneBody<'z>,
    pub(crate) events: &'z E,
    pub(crate) cpu: CpuId,
    /// Number of free pages that are not yet added to the zone's gauge. Every allocation of every CPU reads
    /// the gauge. So a CPU that holds the lock usually writes the gauge only once, at the end of the hold.
    uncounted_pages: i64,
}

impl<E> Drop for LockedZone<'_, E> {
    fn drop(&mut self) {
        self.update_gauge();
    }
}

impl<'z, E> LockedZone<'z, E> {
    /// Makes the view of a zone for `cpu`, which holds the zone's lock.
    #[inline]
    pub(crate) fn new(buddy: &'z mut FreeLists, body: &'z ZoneBody<'z>, events: &'z E, cpu: CpuId) -> Self {
        Self { buddy, body, events, cpu, uncounted_pages: 0 }
    }

    /// Updates the zone's gauge of free pages, for code that reads the gauge with the lock held.
    #[inline]
    pub(crate) fn update_gauge(&mut self) {
        let pages = core::mem::take(&mut self.uncounted_pages);
        if pages != 0 {
            self.body.gauges.add_free(pages);
        }
    }

    /// The current number of free pages.
    pub(crate) fn free_pages(&self) -> i64 {
        self.body.gauges.free_pages() + self.uncounted_pages
    }

    /// Counts `frames` frames that entered a free list of `migratetype`. If `frames` is negative, frames left
    /// the list.
    #[inline]
    fn account(&mut self, migratetype: MigrateType, frames: i64) {
        self.body.gauges.account_type(migratetype, frames);
        if migratetype != MigrateType::Isolate {
            self.uncounted_pages += frames;
        }
    }
}

impl<E: EventSink> LockedZone<'_, E> {
    #[inline]
    pub(crate) fn emit(&self, event: impl FnOnce() -> Event) {
        emit(self.events, self.cpu, event);
    }

    #[inline]
    pub(crate) fn pfn(&self, frame: FrameIndex) -> Pfn {
        self.body.span.pfn(frame)
    }

    /// Puts a block on a list and marks it free. All frames of the block except the first must already be
    /// marked as interior.
    #[inline]
    pub(crate) fn insert(&mut self, frame: FrameIndex, order: Order, migratetype: MigrateType, end: End) {
        debug_assert!(self.fits(frame, order), "no block of order {order} can be at frame {frame}");
        debug_assert!(self.belongs(frame, order, migratetype), "frame {frame} in no {migratetype} pageblock");
        let list = &mut self.buddy.lists[order.index()][migratetype.index()];
        if list.is_empty() {
            self.body.gauges.mark_nonempty(order, migratetype);
        }
        match end {
            End::Head => list.push_head(&self.body.frames, frame),
            End::Tail => list.push_tail(&self.body.frames, frame),
        }
        self.buddy.nr_free[order.index()] += 1;
        self.body.frames.set_state(frame, State::Free { order, migratetype });
        self.account(migratetype, i64::from(order.frames()));
    }

    /// Takes a block off its list. The caller must change the block's state.
    #[inline]
    pub(crate) fn remove(&mut self, frame: FrameIndex, order: Order, migratetype: MigrateType) {
        let list = &mut self.buddy.lists[order.index()][migratetype.index()];
        list.remove(&self.body.frames, frame);
        if list.is_empty() {
            self.body.gauges.mark_empty(order, migratetype);
        }
        self.buddy.nr_free[order.index()] -= 1;
        self.account(migratetype, -i64::from(order.frames()));
    }

    /// Moves a free block to another type's list of the same order.
    pub(crate) fn retype(&mut self, frame: FrameIndex, order: Order, from: MigrateType, to: MigrateType) {
        let state = self.body.frames.state(frame);
        self.remove(frame, order, from);
        self.insert(frame, order, to, End::Tail);
        if !matches!(state, State::Free { .. }) {
            // A bad block keeps its state, so that the next CPU that takes the block notices that the block
            // is bad.
            self.body.frames.set_state(frame, state);
        }
    }

    /// Whether a block that was just taken has the state of a free block. A block without the state of a free
    /// block goes out of service (spec §7).
    #[inline]
    pub(crate) fn is_sound(&mut self, frame: FrameIndex, order: Order, found: FoundAt) -> bool {
        matches!(self.body.frames.state(frame), State::Free { .. }) || self.leak(frame, order, found)
    }

    /// Takes a block out of service. The block must be on no list. Always returns `false`, so that
    /// [`is_sound`](Self::is_sound) can return this result.
    #[cold]
    pub(crate) fn leak(&mut self, frame: FrameIndex, order: Order, found: FoundAt) -> bool {
        self.body.frames.set_state(frame, State::Leaked { order });
        self.buddy.stats.bad_pages += 1;
        self.emit(|| Event::BadPage { pfn: self.pfn(frame), order, found });
        false
    }

    /// Returns the type that a pageblock gets instead of `migratetype`: if grouping by mobility is off, every
    /// mergeable type becomes unmovable (spec §1.6).
    pub(crate) fn grouped(&self, migratetype: MigrateType) -> MigrateType {
        if migratetype.is_mergeable() && !self.is_grouped() { MigrateType::Unmovable } else { migratetype }
    }

    pub(crate) fn is_grouped(&self) -> bool {
        self.body.mobility_grouping.load(Relaxed)
    }

    /// Sets the type of the pageblocks that a block covers. The caller calls [`grouped`](Self::grouped) once,
    /// and uses the result for the lists too. A second call of `grouped` might return another type, because
    /// grouping by mobility may be switched on or off meanwhile.
    pub(crate) fn set_block_type(&self, frame: FrameIndex, order: Order, migratetype: MigrateType) {
        self.body.frames.set_block_type(frame, order, migratetype);
    }
}

#[cfg(test)]
mod tests {
    use crate::MigrateType;
    use crate::buddy::tests::Bench;
    use crate::policy::BuddyRules;

    #[test]
    fn isolated_frames_do_not_count_as_free() {
        let mut bench = Bench::new(1024, BuddyRules::LINUX_6_12);
        let mut zone = bench.zone();
        zone.account(MigrateType::Isolate, 8);
        zone.account(MigrateType::Cma, 4);
        zone.account(MigrateType::HighAtomic, 2);
        zone.account(MigrateType::Movable, 1);
        assert_eq!((zone.free_pages(), zone.body.gauges.free_pages()), (1031, 1024));
        drop(zone);
        assert_eq!(bench.body.gauges.free_pages(), 1031, "the end of a hold writes the gauge");
    }
}
