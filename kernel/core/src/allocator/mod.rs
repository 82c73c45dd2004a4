//! The page allocator: zones, a page set per zone and CPU, and the operations on them.
//!
//! Allocation and free are in the files `alloc` (chooses the zone and takes the block), `slow` (further
//! attempts), `free` and `bulk`. `range` allocates at a given place, allocates exact counts of frames, and
//! frees parts of blocks. `contiguous` allocates more frames than the largest block has. `tick`, `drain`,
//! `cpu` (online and offline), `isolation` (takes pageblocks out of service), `add` (adds memory later),
//! `settings` (sysctls) and `info` (read access) have the other operations. `config`, `derived`, `tables` and
//! `build` make an allocator.

mod add;
mod alloc;
mod build;
mod bulk;
mod config;
mod contiguous;
mod cpu;
mod derived;
mod drain;
mod free;
mod info;
mod isolation;
mod range;
mod settings;
mod slow;
mod tables;
mod tick;

use core::fmt;

pub use config::{Config, ZoneConfig};
pub use cpu::{CacheSlice, Cpu};
pub use free::FreeTraits;
pub use info::{BlockInfo, BlockUse, PagesetInfo, ZoneInfo, ZoneMemory};
pub use settings::{BelowHighMark, Reclaim};
pub use tables::{CpuMemory, TableCounts, Tables};
pub use tick::{TickOutcome, spread_tick_offset};

use crate::error::ConfigError;
use crate::pcp::Pagesets;
use crate::platform::{Lock, Platform};
use crate::policy::Policy;
use crate::zone::Zone;
use crate::{CpuId, NodeId, ZoneId};

/// A page-frame allocator for all zones of a machine, or for one arena.
///
/// Most operations take the number of the CPU that they run on as an argument. If two threads pass the same
/// CPU at once, the threads contend for the page set's lock. Any thread may call any operation. An interrupt
/// handler may call any operation if the platform's lock turns interrupts off.
///
/// An allocation or free that the page set serves is O(1) and takes only the page set's lock. A refill, a
/// drain, or a slice of a drain also takes one zone lock, and costs O(pages moved).
pub struct PageAllocator<'a, P: Platform> {
    platform: P,
    policy: Policy,
    zones: crate::Storage<'a, Zone<'a, P>>,
    pagesets: Pagesets<'a, P>,
    cpus: crate::Storage<'a, Cpu>,
    /// The zonelists of all nodes, in the order of the nodes.
    zonelists: crate::Storage<'a, ZoneId>,
    nodes: usize,
    page_bytes: u32,
    settings: settings::Settings,
    /// A CPU holds the lock `limits_update` while the CPU computes and stores the limits of page sets.
    /// Without the lock, two CPUs that change settings at once could leave page sets with limits of both
    /// settings.
    limits_update: Lock<P, ()>,
}

impl<'a, P: Platform> PageAllocator<'a, P> {
    /// The platform that the allocator was built with.
    pub fn platform(&self) -> &P {
        &self.platform
    }

    /// The policy of the allocator.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    #[inline]
    fn node_of(&self, cpu: CpuId) -> NodeId {
        self.cpus[cpu.index()].node()
    }

    /// Whether the CPU exists.
    #[inline]
    fn is_known(&self, cpu: CpuId) -> bool {
        cpu.index() < self.cpus.len()
    }

    fn check_cpu(&self, cpu: CpuId) -> Result<(), ConfigError> {
        if self.is_known(cpu) { Ok(()) } else { Err(ConfigError::BadCpu(cpu.0)) }
    }

    fn zone(&self, zone: ZoneId) -> Result<&Zone<'a, P>, ConfigError> {
        self.zones.get(zone.index()).ok_or(ConfigError::BadZone(zone))
    }
}

impl<P: Platform> fmt::Debug for PageAllocator<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageAllocator")
            .field("policy", &self.policy.name)
            .field("zones", &&*self.zones)
            .field("cpus", &self.cpus.len())
            .finish_non_exhaustive()
    }
}
