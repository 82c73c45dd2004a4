//! Checks owned pageblocks: which CPU may own a pageblock, and which page set receives a freed block.

use pageset_core::{BlockUse, CpuId, FreeTraits, MigrateType, Order, PAGEBLOCK_FRAMES, Pfn, ZoneId};

use crate::family::model::Model;
use crate::host::Allocator;

/// Checks for policies under which CPUs own pageblocks.
pub(crate) struct Owners;

/// The page set that must receive a freed block. The page set's count of frees must then rise by one.
pub(crate) struct Receiver(Option<(ZoneId, CpuId, u64)>);

impl Owners {
    /// Checks every pageblock of every zone.
    pub(crate) fn check(allocator: &Allocator, model: &Model) {
        let has_owners = allocator.policy().ownership.is_some();
        for zone in allocator.zones() {
            let pageblocks = zone.span.start / 512..zone.span.end.div_ceil(512);
            for pageblock in pageblocks {
                let first = (pageblock * 512).max(zone.span.start);
                let Some(owner) = allocator.pageblock_owner(Pfn(first)) else { continue };
                assert!(has_owners, "{}: {owner:?} owns a pageblock", allocator.policy().name);
                assert!((owner.0 as usize) < allocator.cpus(), "{owner:?} owns {first:#x} but is not there");
                assert!(!model.offline.contains(&owner), "{owner:?} is offline and owns {first:#x}");
                assert!(!model.isolated.contains(&(zone.id, pageblock)), "{first:#x} is isolated");
                let block = allocator.block_of(Pfn(first));
                let is_free = block.is_some_and(|block| {
                    block.held_by == BlockUse::FreeList && block.order.frames() >= PAGEBLOCK_FRAMES
                });
                assert!(!is_free, "nobody uses {first:#x}, which {owner:?} owns");
            }
        }
    }

    /// The page set that should receive a freed block: the page set of the pageblock's owner, or else of the
    /// freeing CPU.
    pub(crate) fn receiver(
        allocator: &Allocator,
        cpu: CpuId,
        pfn: Pfn,
        order: Order,
        traits: FreeTraits,
    ) -> Receiver {
        let pageblock_type = allocator.pageblock_type(pfn);
        let passes = traits.contains(FreeTraits::BYPASS_PCP)
            || !allocator.policy().lists.holds(order)
            || pageblock_type == Some(MigrateType::Isolate);
        let owner = allocator.pageblock_owner(pfn).unwrap_or(cpu);
        let zone = allocator.zone_of(pfn).filter(|_| !passes);
        let frees = |zone| Some((zone, owner, allocator.pageset_counters(zone, owner)?.pcp_free));
        Receiver(zone.and_then(frees))
    }
}

impl Receiver {
    pub(crate) fn check(&self, allocator: &Allocator) {
        if let Some((zone, cpu, before)) = self.0 {
            let now = allocator.pageset_counters(zone, cpu).map(|counters| counters.pcp_free);
            assert_eq!(now, Some(before + 1), "the block went elsewhere than to {cpu:?}");
        }
    }
}
