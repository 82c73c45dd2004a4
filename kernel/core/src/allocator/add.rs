//! Adds memory to an allocator that is in use, for example the memory of the boot code, or hot-plugged
//! memory.

use core::ops::Range;

use super::PageAllocator;
use super::range::blocks_of;
use crate::buddy::Placement;
use crate::error::ConfigError;
use crate::frame::State;
use crate::platform::Platform;
use crate::zone::Zone;
use crate::{CpuId, PAGEBLOCK_FRAMES, Pfn};

impl<'a, P: Platform> PageAllocator<'a, P> {
    /// Makes frames free that were holes until now. The added frames must lie in the spans of the zones,
    /// because the allocator's tables have entries only for the spans.
    ///
    /// Recomputes the watermarks and limits of all zones, and ends boosts. The call changes neither the
    /// setting `min_free_kbytes` nor the reserves of low zones. The call takes O(frames) time, and holds a
    /// zone's lock for one pageblock at a time.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU, [`ConfigError::BadRange`] for a range without frames,
    /// [`ConfigError::Foreign`] for a frame in no zone, [`ConfigError::AlreadyManaged`] for a frame that is
    /// not a hole. A call that fails adds no frame, except in a race of two CPUs that add the same frames. If
    /// two CPUs race to add the same frames, only one of the CPUs adds each frame. The CPU that loses the
    /// race gets `AlreadyManaged`, but the pageblocks that the losing CPU added before stay added.
    pub fn add_memory(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), ConfigError> {
        self.check_cpu(cpu)?;
        if pfns.is_empty() {
            return Err(ConfigError::BadRange(Pfn(pfns.start), Pfn(pfns.end)));
        }
        for pfn in pfns.clone().map(Pfn) {
            let (zone, frame) = self.locate(pfn).ok_or(ConfigError::Foreign(pfn))?;
            if zone.body.frames.state(frame) != State::Hole {
                return Err(ConfigError::AlreadyManaged(pfn));
            }
        }
        let mut start = pfns.start;
        while start < pfns.end {
            let (zone, _) = self.locate(Pfn(start)).ok_or(ConfigError::Foreign(Pfn(start)))?;
            let pageblock_end = (start | (u64::from(PAGEBLOCK_FRAMES) - 1)).saturating_add(1);
            let end = pageblock_end.min(pfns.end).min(zone.body.span.pfns().end);
            self.add_to_pageblock(cpu, zone, start..end)?;
            start = end;
        }
        self.update_watermarks();
        Ok(())
    }

    fn add_to_pageblock(&self, cpu: CpuId, zone: &Zone<'a, P>, pfns: Range<u64>) -> Result<(), ConfigError> {
        let index = |pfn| zone.body.span.index(pfn).ok_or(ConfigError::Foreign(pfn));
        zone.with_lock(&self.platform, cpu, |locked| {
            let frames = &locked.body.frames;
            for pfn in pfns.clone().map(Pfn) {
                if !frames.exchange_state(index(pfn)?, State::Hole, State::Interior) {
                    for ours in (pfns.start..pfn.0).map(Pfn) {
                        frames.exchange_state(index(ours)?, State::Interior, State::Hole);
                    }
                    return Err(ConfigError::AlreadyManaged(pfn));
                }
            }
            locked.body.managed.set(locked.body.managed.get() + pfns.end - pfns.start);
            for (pfn, order) in blocks_of(pfns) {
                let frame = index(pfn)?;
                let migratetype = locked.body.frames.pageblock_type(frame);
                locked.free_block(frame, order, migratetype, Placement::Tail);
            }
            Ok(())
        })
    }
}
