//! What the allocator's events cost, and the platform that hears them.

use pageset_core::{CpuId, Event, EventSink, Pfn, Platform};

use crate::engine::{Engine, SLOWDOWN_BITS, current};
use crate::footprint::Touched;
use crate::lock::VirtualLock;
use crate::machine::{Machine, Near};
use crate::outcome::drain_index;

/// The world of a simulation: locks are waited for in virtual time, events cost virtual time.
#[derive(Clone, Copy, Debug, Default)]
pub struct VirtualPlatform(Charges);

impl Platform for VirtualPlatform {
    type RawLock = VirtualLock;
    type Events = Charges;

    fn events(&self) -> &Charges {
        &self.0
    }
}

/// The event sink that charges the cost of each event to the running virtual CPU. Outside a simulation it does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Charges(());

impl EventSink for Charges {
    #[inline]
    fn emit(&self, _: CpuId, event: Event) {
        current::with(|engine| {
            if let Some(engine) = engine {
                engine.charge_event(event);
            }
        });
    }
}

/// A machine's costs in picoseconds, ready to be added.
#[derive(Debug)]
pub(crate) struct Prices {
    pub(crate) alloc: u64,
    pub(crate) free: u64,
    pub(crate) take_block: u64,
    pub(crate) give_block: u64,
    pub(crate) zone_visit: u64,
    pub(crate) zone_lines: u64,
    /// Of one metadata line, by level: near, shared, memory.
    pub(crate) metadata: [u64; 3],
    /// Of one metadata line among many, if that is known apart.
    pub(crate) metadata_in_bulk: Option<[u64; 3]>,
    pub(crate) block_lines: u64,
    /// Of clearing one line.
    pub(crate) clear: DataPrices,
    /// Of reading or writing one line.
    pub(crate) read: DataPrices,
    /// Of copying one line, besides reading it.
    pub(crate) copy: u64,
    pub(crate) atomic: u64,
    pub(crate) sibling: u64,
    pub(crate) cache: u64,
    pub(crate) node: u64,
    /// (from its cache, from its memory), row by row for each pair of nodes.
    pub(crate) remote: Box<[(u64, u64)]>,
    pub(crate) nodes: usize,
    pub(crate) lock_pass: u64,
    pub(crate) wakeup: u64,
    /// See [`Processor::slowdown`](crate::engine::Processor::slowdown).
    pub(crate) slowdown: u64,
}

/// What one line of data costs, in picoseconds.
#[derive(Debug)]
pub(crate) struct DataPrices {
    /// By level: near, shared, memory.
    pub(crate) levels: [u64; 3],
    /// From the own caches of another core under the same last level; as from memory if nothing is known.
    pub(crate) core: Option<u64>,
}

/// Lines of 64 bytes in the 4 KiB that machine files give costs for.
const LINES_OF_4K: f64 = 64.0;

impl Prices {
    pub(crate) fn of(machine: &Machine) -> Self {
        let costs = &machine.costs;
        let levels = |levels: &crate::machine::ByLevel| {
            [levels.near_ns, levels.shared_ns, levels.memory_ns].map(|ns| (ns * 1000.0).round() as u64)
        };
        let data = |of_4k: &crate::machine::ByLevel| {
            let of_line = |ns: f64| (ns * 1000.0 / LINES_OF_4K).round() as u64;
            DataPrices {
                levels: [of_4k.near_ns, of_4k.shared_ns, of_4k.memory_ns].map(of_line),
                core: of_4k.core_ns.map(of_line),
            }
        };
        let nodes = machine.topology.nodes as usize;
        let distances = &machine.topology.distances;
        let remote = distances.iter().map(|distance| {
            let (cache, memory) = costs.at_distance(*distance);
            (cache.0, memory.0)
        });
        Self {
            alloc: costs.alloc.span().0,
            free: costs.free.span().0,
            take_block: costs.take_block.span().0,
            give_block: costs.give_block.span().0,
            zone_visit: costs.zone_visit.span().0,
            zone_lines: costs.zone_lines.into(),
            metadata: levels(&costs.metadata),
            metadata_in_bulk: costs.metadata_in_bulk.as_ref().map(levels),
            block_lines: costs.block_lines.into(),
            clear: data(&costs.clear_4k),
            read: data(&costs.read_4k),
            copy: {
                let copy_ns = costs.copy_4k.as_ref().map_or(costs.read_4k.near_ns, |copy| copy.ns);
                (copy_ns * 1000.0 / LINES_OF_4K).round() as u64
            },
            atomic: costs.atomic.span().0,
            sibling: costs.line_from_sibling.span().0,
            cache: costs.line_from_cache.span().0,
            node: costs.line_from_node.span().0,
            remote: remote.collect(),
            nodes,
            lock_pass: costs.lock_pass.span().0,
            wakeup: costs.wakeup.span().0,
            slowdown: ((costs.sibling_slowdown.factor - 1.0) * f64::from(1 << SLOWDOWN_BITS)).round() as u64,
        }
    }
}

impl Engine {
    /// How near two CPUs are.
    #[inline]
    pub(crate) fn near(&self, one: u32, other: u32) -> Near {
        let (left, right) = (&self.cpus[one as usize], &self.cpus[other as usize]);
        if one == other {
            Near::Same
        } else if left.core == right.core {
            Near::Sibling
        } else if left.cache == right.cache {
            Near::Cache
        } else if left.node == right.node {
            Near::Node
        } else {
            Near::Remote
        }
    }

    /// What it costs `to` to get a line that `from` wrote last.
    #[inline]
    pub(crate) fn line(&self, from: u32, to: u32) -> u64 {
        match self.near(from, to) {
            Near::Same => 0,
            Near::Sibling => self.prices.sibling,
            Near::Cache => self.prices.cache,
            Near::Node => self.prices.node,
            Near::Remote => {
                let (from, to) = (self.cpus[from as usize].node, self.cpus[to as usize].node);
                self.prices.remote[usize::from(from) * self.prices.nodes + usize::from(to)].0
            }
        }
    }

    /// The running CPU touches a frame's metadata.
    #[inline]
    fn touch_metadata(&self, pfn: Pfn) {
        let cost = self.footprint.borrow_mut().touch(self, pfn, Touched::Metadata);
        self.charge(cost);
    }

    /// The running CPU takes a block from the free lists or gives one back; its neighbours' metadata is taken to be as
    /// near as its own.
    fn move_block(&self, pfn: Pfn, work: u64) {
        let blocks = &self.cpu().scratch.blocks_in_hold;
        blocks.set(blocks.get() + 1);
        self.work(work);
        let line = self.footprint.borrow_mut().touch(self, pfn, Touched::MetadataInBulk);
        self.charge(line * self.prices.block_lines);
    }

    fn charge_event(&self, event: Event) {
        let scratch = &self.cpu().scratch;
        let count = |cell: &std::cell::Cell<u32>, by: u32| cell.set(cell.get() + by);
        match event {
            Event::MmPageAlloc { pfn: Some(pfn), order, .. } => {
                self.note(pfn.0 << 8 | u64::from(order.get()));
                self.touch_metadata(pfn);
            }
            Event::MmPageAlloc { pfn: None, .. } => self.tally.borrow_mut().counts.failures += 1,
            Event::MmPageFree { pfn, .. } => {
                self.work(self.prices.free);
                self.touch_metadata(pfn);
            }
            Event::MmPageFreeBatched { order, .. } => {
                self.tally.borrow_mut().cache_pages(i64::from(order.frames()));
            }
            Event::MmPageAllocZoneLocked { pfn, .. } => {
                self.move_block(pfn, self.prices.take_block);
            }
            Event::MmPagePcpuDrain { pfn, .. } => {
                self.move_block(pfn, self.prices.give_block);
            }
            Event::ZoneLock { .. } => {
                count(&scratch.zone_visits, 1);
                scratch.blocks_in_hold.set(0);
                scratch.is_drain.set(false);
                self.work(self.prices.zone_visit);
                self.charge(self.prices.zone_lines * scratch.lock_line.get());
            }
            Event::PcpRefill { order, got, .. } => {
                count(&scratch.refilled, got);
                let pages = u64::from(got) << order.get();
                let mut tally = self.tally.borrow_mut();
                tally.counts.refills += 1;
                tally.counts.refilled_pages += pages;
                tally.cache_pages(pages as i64);
            }
            Event::PcpDrain { reason, pages, .. } => {
                count(&scratch.drains, 1);
                scratch.is_drain.set(true);
                let mut tally = self.tally.borrow_mut();
                tally.counts.drains[drain_index(reason)] += 1;
                tally.counts.drained_pages += u64::from(pages);
                tally.cache_pages(-i64::from(pages));
            }
            Event::MmPageAllocExtfrag { .. } => self.tally.borrow_mut().counts.fallbacks += 1,
            Event::WakeKswapd { .. } => self.tally.borrow_mut().counts.kswapd_wakes += 1,
            Event::DirectReclaim { .. } => self.tally.borrow_mut().counts.direct_reclaims += 1,
            Event::BadPage { .. } => self.tally.borrow_mut().counts.bad_pages += 1,
            Event::PcpDecay { .. } => {}
        }
    }
}
