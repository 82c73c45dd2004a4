//! A page set with its lock, and the steps that a CPU does under this lock.

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};

use super::remote_list::RemoteList;
use super::{DrainFrom, DueDrain, Limits, ListIndex, ListScheme, Pcp};
use crate::event::{Event, FoundAt, emit};
use crate::frame::{FrameIndex, FrameTables, State};
use crate::platform::{Lock, Platform};
use crate::policy::Policy;
use crate::request::{AllocFlags, Wanted};
use crate::stats::Counters;
use crate::zone::Zone;
use crate::{CpuId, Order, Storage, ZoneId};

/// One CPU's page set of one zone: an entry of an allocator's table of page sets.
///
/// The alignment keeps the page sets of two CPUs on different cache lines, and on different pairs of lines
/// that a processor fetches together.
#[repr(align(128))]
pub struct Pageset<P: Platform> {
    // The limits of the page set: `batch` and the two fields after it. A CPU that changes the zone's limits
    // writes the three fields without the page set's lock. The next refill or free of the page set's CPU
    // reads the new values (spec §2.4).
    batch: AtomicI32,
    high_min: AtomicI32,
    high_max: AtomicI32,
    /// Whether the page set's CPU has changed the zone's free pages since its last tick.
    touched: AtomicBool,
    state: Lock<P, PagesetState>,
    /// Blocks that other CPUs freed, and that the page set's CPU has not yet moved to the page set's lists.
    pub(super) remote: RemoteList<P>,
}

/// Whether a CPU has changed a zone's free pages since its last tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// The CPU has not changed the zone's free pages.
    None,
    /// The CPU has changed the zone's free pages, for example in a refill or drain.
    Touched,
}

/// The data that a page set's lock protects.
#[derive(Debug)]
pub(crate) struct PagesetState {
    pub(crate) pcp: Pcp,
    pub(crate) counters: Counters,
}

impl<P: Platform> Pageset<P> {
    /// Makes a table entry that the build of an allocator replaces by an empty page set. If the lock's `INIT`
    /// is all zeros, so is the entry, and a static table of page sets lies in `.bss`.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            batch: AtomicI32::new(0),
            high_min: AtomicI32::new(0),
            high_max: AtomicI32::new(0),
            touched: AtomicBool::new(false),
            state: Lock::<P, _>::new(PagesetState { pcp: Pcp::unused(), counters: Counters::ZERO }),
            remote: RemoteList::new(),
        }
    }

    pub(crate) fn set_scheme(&mut self, scheme: ListScheme) {
        self.state.get_mut().pcp = Pcp::with_scheme(scheme);
        self.remote.begin();
    }

    #[inline]
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            batch: self.batch.load(Relaxed),
            high_min: self.high_min.load(Relaxed),
            high_max: self.high_max.load(Relaxed),
        }
    }

    pub(crate) fn set_limits(&self, limits: Limits) {
        self.batch.store(limits.batch, Relaxed);
        self.high_min.store(limits.high_min, Relaxed);
        self.high_max.store(limits.high_max, Relaxed);
    }

    #[inline]
    pub(crate) fn touch(&self) {
        self.touched.store(true, Relaxed);
    }

    /// Returns whether the page set's CPU has changed the zone's free pages since the last call of
    /// `take_activity`.
    pub(crate) fn take_activity(&self) -> Activity {
        if self.touched.swap(false, Relaxed) { Activity::Touched } else { Activity::None }
    }

    /// Number of pages in the page set.
    pub(crate) fn count(&self) -> u64 {
        self.with(|state| state.pcp.count.max(0) as u64)
    }

    /// Number of pages in blocks that other CPUs freed and the page set's CPU has not yet moved to the page
    /// set's lists.
    pub(crate) fn remote_pages(&self, frames: &FrameTables<'_>) -> u64 {
        let mut pages = 0;
        self.remote_blocks(frames, |frame| {
            pages += frames.state(frame).order().map_or(0, |order| u64::from(order.frames()));
        });
        pages
    }

    /// Calls `visit` for the first frame of each block that another CPU freed and the page set's CPU has not
    /// yet moved to the page set's lists.
    pub(crate) fn remote_blocks(&self, frames: &FrameTables<'_>, visit: impl FnMut(FrameIndex)) {
        self.remote.for_each(frames, visit);
    }

    /// Runs `work` with the page set's lock held. If the lock is taken, returns `None` and does not run
    /// `work`.
    #[inline]
    pub(crate) fn try_with<T>(&self, work: impl FnOnce(&mut PagesetState) -> T) -> Option<T> {
        self.state.try_lock().map(|mut state| {
            let outcome = work(&mut state);
            state.pcp.assert_consistent();
            outcome
        })
    }

    /// Waits for the page set's lock, and runs `work` with the lock held.
    #[inline]
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut PagesetState) -> T) -> T {
        let mut state = self.state.lock();
        let outcome = work(&mut state);
        state.pcp.assert_consistent();
        outcome
    }
}

impl<P: Platform> Default for Pageset<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> fmt::Debug for Pageset<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pageset").field("limits", &self.limits()).finish_non_exhaustive()
    }
}

/// All page sets of an allocator. For each zone there is a row with one page set per CPU.
pub(crate) struct Pagesets<'a, P: Platform> {
    table: Storage<'a, Pageset<P>>,
    cpus: usize,
}

impl<'a, P: Platform> Pagesets<'a, P> {
    pub(crate) fn new(table: Storage<'a, Pageset<P>>, cpus: usize) -> Self {
        Self { table, cpus }
    }

    /// The page sets of one zone, in the order of CPUs.
    pub(crate) fn of_zone(&self, zone: ZoneId) -> &[Pageset<P>] {
        &self.table[zone.index() * self.cpus..][..self.cpus]
    }

    /// Makes the pair of a zone and the page set of `cpu`.
    #[inline]
    pub(crate) fn at<'z>(
        &'z self,
        zone: &'z Zone<'a, P>,
        cpu: CpuId,
        policy: &'z Policy,
        platform: &'z P,
    ) -> CpuZone<'z, 'a, P> {
        let pageset = &self.table[zone.body.id.index() * self.cpus + cpu.index()];
        CpuZone { zone, pageset, owner: cpu, cpu, policy, platform }
    }
}

/// A zone, and one CPU's page set of this zone. An operation looks up this pair once, and the steps of the
/// operation are methods of the pair.
///
/// Callers pass a `CpuZone` by value, so that the code of fast paths keeps the zone and the page set in
/// registers.
pub(crate) struct CpuZone<'z, 'a, P: Platform> {
    pub(crate) zone: &'z Zone<'a, P>,
    pub(crate) pageset: &'z Pageset<P>,
    /// The CPU of the page set.
    pub(crate) owner: CpuId,
    /// The CPU that runs the operation. `cpu` differs from `owner` if the operation drains another CPU's page
    /// set, or frees into another CPU's page set.
    pub(crate) cpu: CpuId,
    pub(crate) policy: &'z Policy,
    pub(crate) platform: &'z P,
}

impl<P: Platform> Clone for CpuZone<'_, '_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Platform> Copy for CpuZone<'_, '_, P> {}

/// A block that a free has taken from its user.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claimed {
    pub(crate) frame: FrameIndex,
    pub(crate) order: Order,
}

impl<P: Platform> CpuZone<'_, '_, P> {
    /// Takes one block of the page set. If the block's list is empty, refills the list first (spec §2.7.1).
    #[inline]
    pub(crate) fn pop_or_refill(
        self,
        state: &mut PagesetState,
        list: ListIndex,
        wanted: Wanted,
        flags: AllocFlags,
    ) -> Option<FrameIndex> {
        match self.pop(state, list, wanted) {
            Some(frame) => Some(frame),
            None => self.refill_and_pop(state, list, wanted, flags),
        }
    }

    /// Takes the first block of a list. Returns `None` if the list is empty, or if the block is bad. A bad
    /// block goes out of service.
    #[inline(always)]
    fn pop(self, state: &mut PagesetState, list: ListIndex, wanted: Wanted) -> Option<FrameIndex> {
        let frames = &self.zone.body.frames;
        let frame = state.pcp.pop(frames, list, wanted.order)?;
        if !frames.is_cached(frame, wanted.order) {
            return self.pop_uncached(state, frame, wanted);
        }
        frames.mark_allocated(frame, wanted.order, wanted.migratetype);
        Some(frame)
    }

    /// Refills an empty list, and takes the list's first block that is not bad.
    #[cold]
    fn refill_and_pop(
        self,
        state: &mut PagesetState,
        list: ListIndex,
        wanted: Wanted,
        flags: AllocFlags,
    ) -> Option<FrameIndex> {
        loop {
            if state.pcp.is_list_empty(list) {
                match self.policy.ownership() {
                    None => self.refill(state, list, wanted, flags),
                    Some(rule) => self.split_or_refill(state, list, wanted, flags, rule),
                }
                if state.pcp.is_list_empty(list) {
                    return None;
                }
            }
            if let Some(frame) = self.pop(state, list, wanted) {
                return Some(frame);
            }
        }
    }

    /// Fetches blocks from the zone (spec §2.7.2).
    fn refill(self, state: &mut PagesetState, list: ListIndex, wanted: Wanted, flags: AllocFlags) {
        let (limits, pressure) = (self.pageset.limits(), self.zone.body.pressure());
        let blocks = state.pcp.refill_size(self.policy, limits, pressure, wanted.order);
        self.pageset.touch();
        self.zone.with_lock(self.platform, self.cpu, |locked| {
            state.pcp.refill(locked, list, wanted, blocks, flags, &mut state.counters);
        });
    }

    /// Takes a block whose state is not `Cached`. If the state is `Owned`, the block is sound. Otherwise the
    /// block is bad and goes out of service.
    #[cold]
    fn pop_uncached(self, state: &mut PagesetState, frame: FrameIndex, wanted: Wanted) -> Option<FrameIndex> {
        let frames = &self.zone.body.frames;
        if !matches!(frames.state(frame), State::Owned { .. }) {
            self.leak(state, frame, wanted.order);
            return None;
        }
        frames.mark_allocated(frame, wanted.order, wanted.migratetype);
        Some(frame)
    }

    /// Takes a block of the page set out of service. The page set's count was already lowered when the block
    /// left its list (spec §7).
    #[cold]
    pub(super) fn leak(self, state: &mut PagesetState, frame: FrameIndex, order: Order) {
        self.zone.body.frames.set_state(frame, State::Leaked { order });
        state.counters.bad_pages += 1;
        let pfn = self.zone.body.span.pfn(frame);
        emit(self.platform.events(), self.cpu, || Event::BadPage { pfn, order, found: FoundAt::Alloc });
    }

    /// Adds a freed block to the page set. If a drain is due, does the whole drain or the first slice of the
    /// drain. Returns the part of the drain that is left, if any. To continue the drain, the caller takes the
    /// page set's lock again.
    // The function is inlined in its two callers, which are both on the path of a free. A call would cost
    // more than a second copy of the code.
    #[inline(always)]
    pub(crate) fn push_and_drain(
        self,
        state: &mut PagesetState,
        list: ListIndex,
        block: Claimed,
    ) -> Option<DueDrain> {
        state.pcp.push(&self.zone.body.frames, list, block.frame, block.order);
        state.counters.pgfree += u64::from(block.order.frames());
        state.counters.pcp_free += 1;
        let (limits, pressure) = (self.pageset.limits(), self.zone.body.pressure());
        let due = state.pcp.note_free(self.policy, limits, pressure, block.order)?;
        self.drain_if_due(state, list, due)
    }

    /// Does the whole drain that is due, or the first slice of the drain. Returns the part of the drain that
    /// is left, if any. Some policies compare the limit with another count, for example with the number of
    /// blocks. If the policy's count is below the limit, this function drains nothing.
    // This function makes the comparison with the policy's count, not its caller. So a free with few pages
    // does not pay for the comparison.
    #[cold]
    #[inline(never)]
    fn drain_if_due(self, state: &mut PagesetState, list: ListIndex, due: DueDrain) -> Option<DueDrain> {
        if !state.pcp.is_due(&self.zone.body.frames, self.policy.counting, list, &due) {
            return None;
        }
        let rest = self.drain_due(state, list, due);
        if rest.pages > 0 {
            return Some(rest);
        }
        self.zone.body.clear_below_high();
        None
    }

    /// Drains all pages that are due, or one slice of these pages. Returns the part of the drain that is
    /// left.
    #[cold]
    fn drain_due(self, state: &mut PagesetState, list: ListIndex, due: DueDrain) -> DueDrain {
        let pages = self.policy.free_drain.slice(due.pages, self.pageset.limits().batch);
        self.drain(state, DrainFrom { pages, list }, due.reason);
        DueDrain { pages: due.pages - pages, ..due }
    }

    /// Continues a drain in slices, until all pages are drained, the policy ends the drain, or another CPU
    /// holds the page set's lock.
    #[cold]
    pub(crate) fn drain_slices(self, list: ListIndex, mut rest: DueDrain) {
        while rest.pages > 0 {
            let drained = self.pageset.try_with(|state| {
                let goes_on = self.policy.free_drain.goes_on(state.pcp.count, rest.limit);
                goes_on.then(|| self.drain_due(state, list, rest))
            });
            let Some(Some(left)) = drained else { break };
            rest = left;
        }
        self.zone.body.clear_below_high();
    }
}
