//! The data of a zone that CPUs may read without the zone's lock: identity, metadata, watermarks.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use super::marks::{Marks, mul_frac};
use super::{Gauges, Span, Watermark, ZoneFlag};
use crate::count::Count;
use crate::frame::{FrameTables, Owners};
use crate::policy::BuddyRules;
use crate::request::AllocFlags;
use crate::{NodeId, PAGEBLOCK_FRAMES, ZoneId, ZoneKind};

/// The number, kind, node and rules of a zone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) id: ZoneId,
    pub(crate) kind: ZoneKind,
    pub(crate) node: NodeId,
    pub(crate) rules: BuddyRules,
}

/// All data of a zone except its free lists.
#[derive(Debug)]
pub(crate) struct ZoneBody<'a> {
    pub(crate) id: ZoneId,
    pub(crate) kind: ZoneKind,
    pub(crate) node: NodeId,
    pub(crate) span: Span,
    /// Number of frames that were given to the allocator.
    pub(crate) managed: Count,
    pub(crate) frames: FrameTables<'a>,
    /// The CPUs that own the zone's pageblocks, if the policy has owners.
    pub(crate) owners: Owners<'a>,
    pub(crate) gauges: Gauges,
    pub(crate) marks: Marks,
    /// Number of frames that the zone keeps from requests that could use a higher zone, indexed by the
    /// highest zone of the request.
    pub(crate) lowmem_reserve: [Count; ZoneKind::COUNT],
    pub(crate) rules: BuddyRules,
    /// Whether a request that prefers this zone tries a lower zone before it mixes types in a pageblock.
    pub(crate) spills_lower: bool,
    /// `watermark_boost_factor`, in 10 000ths of the high watermark.
    pub(crate) boost_factor: AtomicU32,
    /// Whether each pageblock keeps one migratetype (grouping by mobility). False on machines with too few
    /// pageblocks.
    pub(crate) mobility_grouping: AtomicBool,
    /// Number of allocations that preferred this zone's node, but were served by another node.
    pub(crate) numa_foreign: Count,
    /// Number of allocations and frees that found the page set's lock taken, or had to bypass the page set.
    pub(crate) trylock_failures: Count,
    /// Number of frees of blocks that were out of service.
    pub(crate) bad_frees: Count,
    /// Number of requests that could wait and found no memory.
    pub(crate) stalls: Count,
}

impl<'a> ZoneBody<'a> {
    pub(crate) const fn new(frames: FrameTables<'a>) -> Self {
        Self {
            id: ZoneId(0),
            kind: ZoneKind::Normal,
            node: NodeId(0),
            span: Span::EMPTY,
            managed: Count::new(),
            frames,
            owners: Owners::none(),
            gauges: Gauges::new(),
            marks: Marks::new(),
            lowmem_reserve: [const { Count::new() }; ZoneKind::COUNT],
            rules: BuddyRules::LINUX_6_12,
            spills_lower: false,
            boost_factor: AtomicU32::new(0),
            mobility_grouping: AtomicBool::new(true),
            numa_foreign: Count::new(),
            trylock_failures: Count::new(),
            bad_frees: Count::new(),
            stalls: Count::new(),
        }
    }

    /// Raises the watermarks for a while, because a fallback may mix types in a pageblock (spec §1.6). The
    /// caller holds the zone lock.
    pub(crate) fn boost_watermark(&self, flags: AllocFlags) {
        let factor = u64::from(self.boost_factor.load(Relaxed));
        let pageblock = u64::from(PAGEBLOCK_FRAMES);
        if factor == 0 || self.managed.get() < 4 * pageblock {
            return;
        }
        let most = mul_frac(self.marks.unboosted(Watermark::High), factor, 10_000);
        if most == 0 {
            return;
        }
        let boost = self.marks.boost().saturating_add(pageblock).min(most.max(pageblock));
        self.marks.set_boost(boost);
        if flags.contains(AllocFlags::KSWAPD) {
            self.set(ZoneFlag::BoostedWatermark);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buddy::tests::populated;
    use crate::zone::Watermarks;

    #[test]
    fn zones_below_four_pageblocks_are_not_boosted() {
        for (frames, boost) in [(2047, 0), (2048, 512)] {
            let (body, _) = populated(frames, BuddyRules::LINUX_6_12);
            body.boost_factor.store(15_000, Relaxed);
            body.marks.set(Watermarks { min: 1, low: 2, high: 3 });
            body.boost_watermark(AllocFlags::empty());
            assert_eq!(body.marks.boost(), boost, "{frames} frames");
        }
    }
}
