//! The kinds of allocators, and the code that builds an allocator for a recorded machine.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pageset_blocks::{BlockAllocator, EveryCpu};
use pageset_core::{
    Config, CpuId, Event, EventSink, NodeId, PageAllocator, Pfn, Platform, Policy, ZoneConfig,
};
use pageset_sim::{SharedCounts, zeroed_tables};
use pageset_trace::Layout;
use parking_lot::{Mutex, RawMutex};

use super::page_set_lines::PageSetLines;
use super::stage::{Counting, play};
use super::{ContestError, ContestRow, Recording};

/// A kind of allocator that a recording can be repeated on.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AllocatorKind {
    /// Linux's allocator, under a policy.
    Linux(Box<Policy>),
    /// This project's allocator (`pageset-blocks`), and above it an array of free blocks for each CPU, as in
    /// a kernel.
    OwnedBlocks,
    /// This project's allocator, called directly, without arrays.
    OwnedBlocksStraight,
}

impl AllocatorKind {
    /// The two kinds of this project's own allocator.
    pub const OURS: [Self; 2] = [Self::OwnedBlocks, Self::OwnedBlocksStraight];

    /// Returns the kind of allocator called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let ours = || Self::OURS.into_iter().find(|ours| ours.name() == name);
        Policy::named(name).map(|policy| Self::Linux(Box::new(*policy))).or_else(ours)
    }

    /// Returns the name of the kind of allocator. For Linux's allocator, returns the name of the policy.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Linux(policy) => policy.name,
            Self::OwnedBlocks => "owned-blocks",
            Self::OwnedBlocksStraight => "owned-blocks-straight",
        }
    }

    /// Returns a description of the kind of allocator, for one line of a help text.
    #[must_use]
    pub fn summary(&self) -> &'static str {
        match self {
            Self::Linux(policy) => policy.summary,
            Self::OwnedBlocks => "an allocator of our own: CPUs reserve pageblocks, no lock",
            Self::OwnedBlocksStraight => "as owned-blocks, without an array of free blocks for each CPU",
        }
    }

    pub(super) fn play(&self, machine: &Layout, recording: &Recording) -> Result<ContestRow, ContestError> {
        let grounds = Grounds::new(machine);
        let zones = grounds.zones();
        let config = grounds.config(&zones, machine);
        let row = match self {
            Self::Linux(policy) => {
                let config = config.with_policy(**policy);
                let host = Host::default();
                let allocator = PageAllocator::new(host, &config, zeroed_tables(&config)?)?;
                play(recording, &allocator, machine.cpus)?
            }
            Self::OwnedBlocks => {
                let allocator = ours(&config)?;
                play(recording, &EveryCpu::new(&allocator)?, machine.cpus)?
            }
            Self::OwnedBlocksStraight => play(recording, &ours(&config)?, machine.cpus)?,
        };
        Ok(ContestRow { allocator: self.name().to_owned(), ..row })
    }
}

fn ours(config: &Config<'_>) -> Result<BlockAllocator<'static>, ContestError> {
    let tables = pageset_blocks::Tables::on_heap(config)?;
    Ok(BlockAllocator::new(config, tables)?.with_clock(|| NOW_NS.get()))
}

impl Counting for PageAllocator<'_, Host> {
    fn set_time_ns(&self, now_ns: u64) {
        self.platform().now_ns.store(now_ns, Relaxed);
    }

    fn note(&self, cpu: CpuId, pfn: Pfn) {
        let Some(zone) = self.zone_of(pfn) else { return };
        let page_set = (zone, self.pageblock_owner(pfn).unwrap_or(cpu));
        let host = self.platform();
        host.lines.lock().note(page_set, cpu, host.now_ns.load(Relaxed));
    }

    fn counted(&self) -> SharedCounts {
        let host = self.platform();
        let lines = host.lines.lock();
        SharedCounts {
            shared_visits: 0,
            line_transfers: lines.passed,
            contended_lines: lines.contended,
            fallbacks: host.fallbacks(),
        }
    }
}

thread_local! {
    /// The recorded time of the operation that this thread repeats now. The recorded time is in a
    /// thread-local variable, because the allocator reads this time by a function without arguments.
    static NOW_NS: Cell<u64> = const { Cell::new(0) };
}

impl Counting for BlockAllocator<'_> {
    fn set_time_ns(&self, now_ns: u64) {
        NOW_NS.set(now_ns);
    }

    fn note(&self, _: CpuId, _: Pfn) {}

    fn counted(&self) -> SharedCounts {
        self.counters().into()
    }
}

impl Counting for EveryCpu<'_> {
    fn set_time_ns(&self, now_ns: u64) {
        self.below().set_time_ns(now_ns);
    }

    fn note(&self, _: CpuId, _: Pfn) {}

    fn counted(&self) -> SharedCounts {
        self.below().counted()
    }
}

/// A machine's memory, described as the constructors of the allocators expect it.
struct Grounds<'m> {
    machine: &'m Layout,
    /// The range of frames of each zone. A zone has as many frames as the zone of the recorded machine
    /// manages.
    regions: Vec<[Range<u64>; 1]>,
    nodes: Vec<NodeId>,
}

impl<'m> Grounds<'m> {
    fn new(machine: &'m Layout) -> Self {
        let region = |zone: &pageset_trace::ZoneDescription| {
            [zone.start_pfn..zone.start_pfn.saturating_add(zone.managed.min(zone.spanned))]
        };
        let node = |cpu| NodeId(machine.node_of_cpu(cpu).unwrap_or(0));
        Self {
            machine,
            regions: machine.zones.iter().map(region).collect(),
            nodes: (0..machine.cpus).map(node).collect(),
        }
    }

    fn zones(&self) -> Vec<ZoneConfig<'_>> {
        let populated = self.machine.zones.iter().zip(&self.regions).filter(|(zone, _)| zone.managed > 0);
        let mut zones: Vec<_> = populated
            .map(|(zone, regions)| ZoneConfig {
                kind: zone.kind,
                node: NodeId(zone.node),
                span: regions[0].clone(),
                regions,
            })
            .collect();
        zones.sort_by_key(|zone| (zone.node, zone.kind));
        zones
    }

    fn config<'c>(&'c self, zones: &'c [ZoneConfig<'c>], machine: &Layout) -> Config<'c> {
        let mut config = Config::new(zones, &self.nodes);
        config.page_bytes = machine.page_size;
        config.min_free_kbytes = machine.sysctls.min_free_kbytes;
        config
    }
}

/// The platform of Linux's allocator in a contest. The platform counts requests that get memory of another
/// migratetype, and changes of a page set that another CPU changed last.
#[derive(Debug, Default)]
pub(crate) struct Host {
    fallbacks: AtomicU64,
    now_ns: AtomicU64,
    lines: Mutex<PageSetLines>,
}

impl Host {
    pub(crate) fn fallbacks(&self) -> u64 {
        self.fallbacks.load(Relaxed)
    }
}

impl Platform for Host {
    type RawLock = RawMutex;
    type Events = Self;

    fn events(&self) -> &Self {
        self
    }
}

impl EventSink for Host {
    fn emit(&self, _: CpuId, event: Event) {
        if matches!(event, Event::MmPageAllocExtfrag { .. }) {
            self.fallbacks.fetch_add(1, Relaxed);
        }
    }
}
