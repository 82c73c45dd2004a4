//! Builds the allocator that a simulation runs: Linux's, or this project's lock-free allocator.

use std::sync::LazyLock;

use pageset_blocks::{BlockAllocator, observe_lines};
use pageset_core::{Config, ConfigError, CpuId, FrameAllocator, FrameUsage, PageAllocator, Policy};

use crate::charge::VirtualPlatform;
use crate::engine::current;
use crate::lines::{self, Lines};
use crate::lock::LockTable;
use crate::machine::Machine;
use crate::memory;
use crate::outcome::SharedCounts;
use crate::time::Time;
use crate::with_arrays::WithArrays;

/// The allocator that a simulated machine uses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Choice {
    /// Linux's allocator, under a policy.
    Linux(Policy),
    /// This project's lock-free allocator (`pageset-blocks`), and above it an array of free blocks for each
    /// CPU.
    OwnedBlocks,
    /// This project's lock-free allocator, called directly, without arrays.
    OwnedBlocksStraight,
}

/// The allocator of a simulation.
#[derive(Debug)]
pub(crate) enum Allocator {
    /// Linux's allocator. CPUs pay virtual time for the allocator's events, and wait for its locks.
    Linux(Box<PageAllocator<'static, VirtualPlatform>>),
    /// This project's allocator with an array for each CPU. CPUs pay virtual time for each access to the
    /// allocator's cache lines.
    OwnedBlocks(WithArrays),
    /// This project's allocator without arrays. CPUs pay virtual time for each access to the allocator's
    /// cache lines.
    OwnedBlocksStraight(Box<BlockAllocator<'static>>),
}

/// Whether `pageset-blocks` calls `lines::observe` for each atomic operation. The value is false only if this
/// process had already registered another observer.
static IS_OBSERVED: LazyLock<bool> = LazyLock::new(|| observe_lines(lines::observe));

impl Choice {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Linux(policy) => policy.name,
            Self::OwnedBlocks => "owned-blocks",
            Self::OwnedBlocksStraight => "owned-blocks-straight",
        }
    }

    /// Builds the allocator, the table of its locks, and the model of its cache lines.
    pub(crate) fn build(
        self,
        config: &Config<'_>,
        machine: &Machine,
    ) -> Result<(Allocator, LockTable, Lines), ConfigError> {
        match self {
            Self::Linux(policy) => linux(&config.with_policy(policy), machine),
            Self::OwnedBlocks => {
                let (allocator, lines) = owned_blocks(config)?;
                Ok((Allocator::OwnedBlocks(WithArrays::new(allocator)?), LockTable::new(0..0, 0..0), lines))
            }
            Self::OwnedBlocksStraight => {
                let (allocator, lines) = owned_blocks(config)?;
                let allocator = Allocator::OwnedBlocksStraight(Box::new(allocator));
                Ok((allocator, LockTable::new(0..0, 0..0), lines))
            }
        }
    }
}

impl Allocator {
    /// Returns the allocator through the interface that all allocators implement.
    #[inline]
    pub(crate) fn frames(&self) -> &dyn FrameAllocator {
        match self {
            Self::Linux(allocator) => &**allocator,
            Self::OwnedBlocks(allocator) => allocator.frames(),
            Self::OwnedBlocksStraight(allocator) => &**allocator,
        }
    }

    /// Empties the page sets or arrays of all CPUs, so that every CPU can take the pages. `cpu` does the work
    /// if the allocator is Linux's.
    pub(crate) fn drain_all(&self, cpu: CpuId) {
        match self {
            Self::Linux(allocator) => {
                allocator.drain_all(cpu).expect("the CPU belongs to this machine");
            }
            Self::OwnedBlocks(allocator) => allocator.drain_all(),
            Self::OwnedBlocksStraight(allocator) => allocator.drain_all(),
        }
    }

    /// Counts the free and used pages while CPUs run. The caller counts the pages in page sets from events
    /// and passes the number as `cached`, because suspended CPUs may hold the page sets' locks.
    pub(crate) fn usage_now(&self, cached: u64) -> FrameUsage {
        match self {
            Self::Linux(allocator) => {
                let mut usage = FrameUsage { held: cached, ..FrameUsage::default() };
                for zone in allocator.zones() {
                    usage.free += zone.free;
                    usage.whole_pageblocks += zone.whole_pageblocks();
                }
                usage
            }
            Self::OwnedBlocks(allocator) => allocator.frames().usage(),
            Self::OwnedBlocksStraight(allocator) => allocator.usage(),
        }
    }

    /// Whether the allocator reports events.
    pub(crate) fn has_events(&self) -> bool {
        matches!(self, Self::Linux(_))
    }

    /// Returns the allocator's own counts since it was built. For Linux's allocator, all counts are 0,
    /// because the simulation counts Linux's events.
    pub(crate) fn counted(&self) -> SharedCounts {
        let counters = match self {
            Self::Linux(_) => return SharedCounts::default(),
            Self::OwnedBlocks(allocator) => allocator.counters(),
            Self::OwnedBlocksStraight(allocator) => allocator.counters(),
        };
        counters.into()
    }
}

fn linux(config: &Config<'_>, machine: &Machine) -> Result<(Allocator, LockTable, Lines), ConfigError> {
    let tables = memory::zeroed_tables(config)?;
    let locks = LockTable::new(addresses(&tables.zones), addresses(&tables.pagesets));
    let allocator = PageAllocator::new(VirtualPlatform::default(), config, tables)?;
    let slice = machine.topology.cache_slice();
    (0..config.cpus.len() as u32).try_for_each(|cpu| allocator.set_cache_slice(CpuId(cpu), slice))?;
    Ok((Allocator::Linux(Box::new(allocator)), locks, Lines::default()))
}

fn owned_blocks(config: &Config<'_>) -> Result<(BlockAllocator<'static>, Lines), ConfigError> {
    assert!(*IS_OBSERVED, "another part of this process already observes the allocators' cache lines");
    let tables = pageset_blocks::Tables::on_heap(config)?;
    // The addresses of the tables are in the order of `LineTraffic::TABLES`.
    let lines = Lines::new(tables.addresses(), config.cpus.len() as u32);
    Ok((BlockAllocator::new(config, tables)?.with_clock(now_ns), lines))
}

/// The time on the running CPU's clock.
fn now_ns() -> u64 {
    current::with(|engine| engine.map_or(0, |engine| Time(engine.cpu().clock.get()).as_ns()))
}

/// Returns the address range of a table. The table is on the heap, so its address stays the same when the
/// value that owns the table moves.
fn addresses<T>(table: &[T]) -> std::ops::Range<usize> {
    let range = table.as_ptr_range();
    range.start.addr()..range.end.addr()
}
