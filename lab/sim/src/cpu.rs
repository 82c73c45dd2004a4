//! The operations that the code on a virtual CPU can call.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pageset_core::{
    AllocError, CpuId, FreeError, NodeId, Order, Pfn, Reclaim, Request, RequestTraits, ZoneId, ZoneMemory,
};

use crate::allocator::Allocator;
use crate::engine::Engine;
use crate::footprint::{LINE_BYTES, Touched};
use crate::random::{self, Stream};
use crate::time::{Span, Time};

/// A simulation's allocator, its scheduler, and the settings that its CPUs read.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) allocator: Allocator,
    pub(crate) seed: u64,
    pub(crate) page_bytes: u64,
    /// The highest zone of each node. Nearly all memory of a node is in the node's highest zone.
    pub(crate) main_zones: Vec<ZoneId>,
    /// The virtual time at which the CPUs' code (*bodies*) should end.
    pub(crate) deadline: Time,
    pub(crate) tick: Span,
    /// Set by the user of the simulation to cancel the run.
    pub(crate) cancel: Arc<AtomicBool>,
}

/// How the code on a virtual CPU (its *body*) uses the memory that it touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// The CPU clears the memory.
    Clear,
    /// The CPU reads or writes the memory.
    Access,
    /// The memory is the source or the target of a copy. The model assumes that the memory at the other end
    /// of the copy is in a cache.
    Copy,
}

/// The CPU that a body runs on. Each operation begins at the time on the CPU's clock and moves the clock
/// forward.
///
/// A copy of a `VirtualCpu` stands for the same CPU as the original. Only the body of this CPU may use the
/// copied `VirtualCpu`. A copied `VirtualCpu` serves code that cannot take a reference as an argument, such
/// as a global allocator.
#[derive(Clone, Debug)]
pub struct VirtualCpu {
    pub(crate) world: Rc<World>,
    pub(crate) id: CpuId,
}

impl VirtualCpu {
    /// The number of this CPU.
    #[must_use]
    pub fn id(&self) -> CpuId {
        self.id
    }

    /// The node that this CPU belongs to.
    #[must_use]
    pub fn node(&self) -> NodeId {
        NodeId(self.engine().cpus[self.id.index()].node)
    }

    /// The time on this CPU's clock.
    #[must_use]
    pub fn now(&self) -> Time {
        Time(self.engine().cpus[self.id.index()].clock.get())
    }

    /// Returns whether this CPU's body (the function that it runs) should continue. If the result is false,
    /// the simulated time is over or the run was cancelled. The body should then free all of its memory and
    /// end.
    #[must_use]
    pub fn running(&self) -> bool {
        self.now() < self.world.deadline && !self.world.cancel.load(Relaxed)
    }

    /// Returns this CPU's stream of random numbers for `purpose`. Each CPU has a separate stream for each
    /// purpose.
    #[must_use]
    pub fn rng(&self, purpose: &str) -> Stream {
        random::stream(self.world.seed, purpose, self.id)
    }

    /// Adds finished units of work to the run's score.
    pub fn score(&self, units: u64) {
        self.engine().tally.borrow_mut().counts.score += units;
    }

    /// Lets the CPU compute for `span`. If another hardware thread of the core has a body too, the machine's
    /// slowdown factor lengthens `span`.
    pub fn advance(&self, span: Span) {
        self.engine().work(span.0);
        self.interrupt();
    }

    /// Lets the CPU compute like [`advance`](Self::advance), but counts the time as time of the user program
    /// and not of the kernel.
    pub fn advance_in_user_mode(&self, span: Span) {
        let engine = self.engine();
        let begin = engine.cpu().clock.get();
        engine.work(span.0);
        engine.tally.borrow_mut().user_ps += engine.cpu().clock.get() - begin;
        self.interrupt();
    }

    /// Leaves the CPU idle until `time`.
    pub fn sleep_until(&self, time: Time) {
        let engine = self.engine();
        while engine.cpu().clock.get() < time.0 {
            let until = time.min(Time(engine.cpu().next_tick.get()));
            engine.idle(until, true);
            self.interrupt();
        }
    }

    /// Leaves the CPU idle for `span`.
    pub fn sleep(&self, span: Span) {
        self.sleep_until(self.now() + span);
    }

    /// Allocates a block.
    ///
    /// # Errors
    /// Returns the allocator's error.
    pub fn alloc(&self, request: &Request) -> Result<Pfn, AllocError> {
        self.begin(1);
        let engine = self.engine();
        let scratch = &engine.cpu().scratch;
        let began = engine.cpu().clock.get();
        engine.work(engine.prices.alloc);
        let result = self.world.allocator.frames().alloc(self.id, request);
        if !self.world.allocator.has_events() {
            engine.note_alloc(result.as_ref().ok().copied(), request.order);
        }
        let mut tally = engine.tally.borrow_mut();
        tally.counts.allocs += 1;
        if result.is_ok() {
            let pages = u64::from(request.order.frames());
            tally.counts.allocated_pages += pages;
            if scratch.refilled.get() > 0 || scratch.zone_visits.get() == 0 {
                tally.cache_pages(-(pages as i64));
            } else {
                tally.counts.direct_pages += pages;
            }
        }
        tally.alloc.record(engine.cpu().clock.get() - began);
        tally.behind_drains.record(scratch.waited_for_drains.get());
        result
    }

    /// Allocates a block, but fails if a kernel would make the requesting task reclaim memory. A failed
    /// request counts as a direct reclaim and not as a failure, because the caller should reclaim memory and
    /// try again.
    ///
    /// # Errors
    /// Returns the allocator's error.
    pub fn alloc_above_min(&self, request: &Request) -> Result<Pfn, AllocError> {
        let result = self.alloc(&request.with(request.traits - RequestTraits::MAY_WAIT));
        if result.is_err() {
            let counts = &mut self.engine().tally.borrow_mut().counts;
            counts.failures -= 1;
            counts.direct_reclaims += 1;
        }
        result
    }

    /// Frees a block.
    ///
    /// # Errors
    /// Returns the allocator's error.
    pub fn free(&self, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        self.begin(1);
        let engine = self.engine();
        let scratch = &engine.cpu().scratch;
        let began = engine.cpu().clock.get();
        if !self.world.allocator.has_events() {
            engine.note_free(pfn);
        }
        let result = self.world.allocator.frames().free(self.id, pfn, order);
        let mut tally = engine.tally.borrow_mut();
        tally.counts.frees += 1;
        if result.is_ok() && (scratch.drains.get() > 0 || scratch.zone_visits.get() == 0) {
            tally.cache_pages(i64::from(order.frames()));
        }
        tally.free.record(engine.cpu().clock.get() - began);
        result
    }

    /// Frees a list of blocks, as a kernel does at the end of an address space.
    ///
    /// # Errors
    /// Returns the allocator's error.
    pub fn free_list(&self, blocks: &[(Pfn, Order)]) -> Result<(), (usize, FreeError)> {
        self.begin(blocks.len());
        let engine = self.engine();
        engine.tally.borrow_mut().counts.frees += blocks.len() as u64;
        if !self.world.allocator.has_events() {
            blocks.iter().for_each(|(pfn, _)| engine.note_free(*pfn));
        }
        self.world.allocator.frames().free_batch(self.id, blocks)
    }

    /// Fills the empty slots of `pages` with single pages. Returns the number of full slots, including slots
    /// that were full before the call.
    ///
    /// # Errors
    /// Returns the allocator's error.
    pub fn alloc_bulk(&self, request: &Request, pages: &mut [Option<Pfn>]) -> Result<usize, AllocError> {
        self.begin(pages.len());
        let engine = self.engine();
        let had: Vec<bool> = pages.iter().map(Option::is_some).collect();
        let before = pages.iter().flatten().count();
        engine.work(engine.prices.alloc);
        let result = self.world.allocator.frames().alloc_bulk(self.id, request, pages);
        if !self.world.allocator.has_events() {
            let new = pages.iter().zip(&had).filter(|(_, had)| !**had).filter_map(|(page, _)| *page);
            new.for_each(|pfn| engine.note_alloc(Some(pfn), Order::ZERO));
        }
        let got = result.as_ref().map_or(0, |filled| filled - before);
        let mut tally = engine.tally.borrow_mut();
        tally.counts.allocs += got as u64;
        tally.counts.allocated_pages += got as u64;
        tally.cache_pages(-(got as i64));
        result
    }

    /// Empties the page sets of all CPUs, or the arrays if the allocator is `pageset-blocks`. The CPU that
    /// calls this function does the work.
    pub fn drain_all(&self) {
        self.begin(0);
        self.world.allocator.drain_all(self.id);
    }

    /// Returns the free memory and the watermarks of a node's highest zone. Returns `None` if the machine has
    /// no node `node`, or if the allocator has no watermarks.
    #[must_use]
    pub fn memory(&self, node: NodeId) -> Option<ZoneMemory> {
        let zone = *self.world.main_zones.get(node.index())?;
        match &self.world.allocator {
            Allocator::Linux(allocator) => allocator.zone_memory(zone),
            Allocator::OwnedBlocks(_) | Allocator::OwnedBlocksStraight(_) => None,
        }
    }

    /// Tells the allocator that a reclaimer started or stopped in a node's highest zone. Only Linux's
    /// allocator uses the information about reclaimers.
    pub fn set_reclaim(&self, node: NodeId, reclaim: Reclaim) {
        if let (Some(zone), Allocator::Linux(allocator)) =
            (self.world.main_zones.get(node.index()), &self.world.allocator)
        {
            allocator.set_reclaim_active(*zone, reclaim).expect("the zone belongs to this machine");
        }
    }

    /// The node whose memory a frame is in.
    #[must_use]
    pub fn node_of(&self, pfn: Pfn) -> NodeId {
        let engine = self.engine();
        NodeId(engine.footprint.borrow().node(pfn, engine.prices.nodes) as u16)
    }

    /// Begins an operation of the allocator on `blocks` blocks: does periodic work that is due, and sets the
    /// operation's counts to zero.
    #[inline]
    fn begin(&self, blocks: usize) {
        self.interrupt();
        let scratch = &self.engine().cpu().scratch;
        scratch.clear();
        // An operation's price includes one atomic exchange per block, because Linux's allocator does one
        // exchange per block, on the page set's lock.
        scratch.exchanges_included.set(blocks as u64);
    }

    /// Touches the first `bytes` of a block. The time depends on where the data is: in a cache or in memory.
    /// After the call, this CPU's caches have the data.
    pub fn touch(&self, pfn: Pfn, bytes: u64, touch: Touch) {
        let engine = self.engine();
        let levels = match touch {
            Touch::Clear => &engine.prices.clear,
            Touch::Access | Touch::Copy => &engine.prices.read,
        };
        let lines = bytes.div_ceil(LINE_BYTES);
        let mut cost = engine.touch(pfn, Touched::Data(lines, levels));
        if touch == Touch::Copy {
            cost += lines * engine.prices.copy;
        }
        engine.charge(cost);
    }

    /// Clears a whole block.
    pub fn clear(&self, pfn: Pfn, order: Order) {
        self.touch(pfn, self.world.page_bytes << order.get(), Touch::Clear);
    }

    #[inline]
    pub(crate) fn engine(&self) -> &Engine {
        &self.world.engine
    }

    /// Leaves the CPU idle until another CPU wakes it.
    pub(crate) fn wait_to_be_woken(&self) {
        let engine = self.engine();
        loop {
            let woken = engine.idle(Time(engine.cpu().next_tick.get()), false);
            self.interrupt();
            if woken {
                return;
            }
        }
    }

    /// Lets other CPUs catch up, and does the CPU's periodic work if the work is due. A CPU calls this
    /// function between two operations.
    #[inline]
    pub(crate) fn interrupt(&self) {
        self.engine().keep_close();
        let cpu = self.engine().cpu();
        if cpu.clock.get() >= cpu.next_tick.get() {
            self.tick();
        }
    }

    #[cold]
    fn tick(&self) {
        let cpu = self.engine().cpu();
        // A CPU that was busy for several periods then does the periodic work only once, and not once for
        // each missed period.
        let period = self.world.tick.0.max(1);
        let late = cpu.clock.get() - cpu.next_tick.get();
        cpu.next_tick.set(cpu.next_tick.get() + (late / period + 1) * period);
        self.world.allocator.frames().tick(self.id).expect("a CPU of this machine");
    }
}
