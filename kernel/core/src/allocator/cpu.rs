//! CPUs: their nodes, whether they are online, and their share of the caches.

use core::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering::Relaxed};

use super::PageAllocator;
use crate::error::ConfigError;
use crate::platform::Platform;
use crate::policy::{SliceCaches, SliceRule};
use crate::{CpuId, NodeId};

/// The data of one CPU: an entry of an allocator's table of CPUs. [`PageAllocator::new`] sets the CPU's node.
#[derive(Debug)]
pub struct Cpu {
    node: AtomicU16,
    is_offline: AtomicBool,
    slice_all_kib: AtomicU32,
    slice_last_level_kib: AtomicU32,
}

/// One CPU's share of the data caches (spec §2.14): the size of each cache, divided by the number of CPUs
/// that share the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheSlice {
    /// The CPU's share of all data and unified caches together, in KiB.
    pub all_kib: u32,
    /// The CPU's share of the last-level cache, in KiB.
    pub last_level_kib: u32,
}

/// Whether a CPU is online.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Online,
    Offline,
}

impl Cpu {
    /// An online CPU of node 0 with unknown caches. All bytes of the new entry are zero, so a static table of
    /// CPUs lies in `.bss`.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            node: AtomicU16::new(0),
            is_offline: AtomicBool::new(false),
            slice_all_kib: AtomicU32::new(0),
            slice_last_level_kib: AtomicU32::new(0),
        }
    }

    #[inline]
    pub(super) fn node(&self) -> NodeId {
        NodeId(self.node.load(Relaxed))
    }

    pub(super) fn set_node(&mut self, node: NodeId) {
        *self.node.get_mut() = node.0;
    }

    pub(super) fn is_online(&self) -> bool {
        !self.is_offline.load(Relaxed)
    }
}

impl Default for Cpu {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> PageAllocator<'_, P> {
    /// Number of CPUs, including those that are offline.
    pub fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Brings a CPU online. From this call on, the zones of the CPU's node divide the limits of page sets
    /// among one more CPU. The zones of nodes without online CPUs also divide their limits among one more
    /// CPU.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    pub fn cpu_online(&self, cpu: CpuId) -> Result<(), ConfigError> {
        self.set_presence(cpu, Presence::Online)
    }

    /// Takes a CPU offline: divides its share of the limits among the other CPUs, ends its ownership of
    /// pageblocks, and drains its page sets. Operations that name an offline CPU still work, because a thread
    /// may run on the CPU for a moment longer. A free that names an offline CPU may put a page into the CPU's
    /// page set. The page stays in the offline CPU's page set until a drain or an allocation takes the page.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    pub fn cpu_offline(&self, cpu: CpuId) -> Result<(), ConfigError> {
        self.set_presence(cpu, Presence::Offline)?;
        self.drain_cpu(cpu, cpu).map(drop)
    }

    fn set_presence(&self, cpu: CpuId, presence: Presence) -> Result<(), ConfigError> {
        let slot = self.cpus.get(cpu.index()).ok_or(ConfigError::BadCpu(cpu.0))?;
        let is_offline = presence == Presence::Offline;
        if slot.is_offline.swap(is_offline, Relaxed) != is_offline {
            // Update the limits of all zones, because all online CPUs share the zones of nodes without online
            // CPUs.
            self.zones.iter().for_each(|zone| self.update_limits(zone));
        }
        if self.policy.ownership().is_some() {
            self.zones.iter().for_each(|zone| {
                zone.with_lock(&self.platform, cpu, |locked| match presence {
                    Presence::Online => locked.body.owners.admit(cpu),
                    Presence::Offline => locked.body.owners.dismiss(cpu),
                });
            });
        }
        Ok(())
    }

    /// Sets a CPU's share of the data caches. Policies from patch 3 of the 2023 series on use a CPU's share
    /// of the caches. If a CPU's share is large, consecutive high-order frees drain a page set only if the
    /// page set holds at least a batch of pages.
    ///
    /// The call compares the share with the batch of each page set. If [`add_memory`](Self::add_memory)
    /// changes the batch later, the result of the comparison stays, as in Linux (spec §2.14). To compare
    /// again, call `set_cache_slice` again.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    pub fn set_cache_slice(&self, cpu: CpuId, slice: CacheSlice) -> Result<(), ConfigError> {
        let slot = self.cpus.get(cpu.index()).ok_or(ConfigError::BadCpu(cpu.0))?;
        slot.slice_all_kib.store(slice.all_kib, Relaxed);
        slot.slice_last_level_kib.store(slice.last_level_kib, Relaxed);
        let Some(rule) = self.policy.free_high.and_then(|rule| rule.keep_batch) else { return Ok(()) };
        for zone in self.zones.iter() {
            let pageset = &self.pagesets.of_zone(zone.body.id)[cpu.index()];
            let batch = pageset.limits().batch;
            let is_large = slice.is_large(rule, batch, self.page_bytes);
            pageset.with(|state| state.pcp.has_large_slice = is_large);
        }
        Ok(())
    }
}

impl CacheSlice {
    /// Whether this share of the caches counts as large under the given rule and batch (spec §2.14).
    #[must_use]
    pub fn is_large(self, rule: SliceRule, batch: i32, page_bytes: u32) -> bool {
        let kib = match rule.caches {
            SliceCaches::All => self.all_kib,
            SliceCaches::LastLevel => self.last_level_kib,
        };
        let pages = u64::from(kib) * 1024 / u64::from(page_bytes.max(1));
        pages > u64::from(rule.batches) * u64::from(batch.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::LINUX_6_12;
    use crate::{Config, Tables, ZoneConfig, ZoneId, ZoneKind};

    struct Host;

    impl Platform for Host {
        type RawLock = parking_lot::RawMutex;
        type Events = ();

        fn events(&self) -> &() {
            &()
        }
    }

    /// Tests the specification's rule that a change of the batch leaves the result as it is (spec §2.14).
    #[test]
    fn a_new_batch_is_not_compared_until_the_slice_is_set_again() {
        let regions = [0..4096];
        let zones =
            [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..32_768, regions: &regions }];
        let config = Config::new(&zones, &[NodeId(0)]).with_policy(LINUX_6_12);
        let allocator = PageAllocator::new(Host, &config, Tables::on_heap(&config).unwrap()).unwrap();
        let has = |batch| {
            assert_eq!(allocator.pageset_info(ZoneId(0), CpuId(0)).map(|info| info.batch), Some(batch));
            allocator.pagesets.of_zone(ZoneId(0))[0].with(|state| state.pcp.has_large_slice)
        };
        // Four pages are more than three batches of one page, and fewer than three batches of seven pages.
        let slice = CacheSlice { all_kib: 16, last_level_kib: 16 };
        allocator.set_cache_slice(CpuId(0), slice).unwrap();
        assert!(has(1));
        allocator.add_memory(CpuId(0), 4096..32_768).unwrap();
        assert!(has(7), "the batch changed, and the result did not");
        allocator.set_cache_slice(CpuId(0), slice).unwrap();
        assert!(!has(7));
    }

    /// Tests the specification's worked example E12.
    #[test]
    fn example_e12_a_slice_of_760_kib_is_large() {
        let merged = SliceRule { caches: SliceCaches::LastLevel, batches: 3 };
        let large = |kib| CacheSlice { all_kib: 0, last_level_kib: kib }.is_large(merged, 63, 4096);
        assert!(large(2048) && large(1280) && large(760));
        assert!(!large(756));
        let posted = SliceRule { caches: SliceCaches::All, batches: 4 };
        assert!(CacheSlice { all_kib: 1012, last_level_kib: 0 }.is_large(posted, 63, 4096));
        assert!(!CacheSlice { all_kib: 1008, last_level_kib: 0 }.is_large(posted, 63, 4096));
    }
}
