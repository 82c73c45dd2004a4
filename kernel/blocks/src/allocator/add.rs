//! Memory that arrives after the allocator was built: memory that the boot code used, or a device's.

use core::ops::Range;

use pageset_core::{ConfigError, CpuId, MigrateType, Pfn};

use super::{BlockAllocator, FRAMES};
use crate::access::Access;
use crate::atomic::Relaxed;
use crate::ids::{BlockId, FrameId};
use crate::row::rows_of;
use crate::rows::Use;
use crate::state::{Phase, State};

impl<A: Access> BlockAllocator<'_, A> {
    /// Makes frames free that were no memory until now. The frames must lie in the spans of the zones.
    /// O(frames).
    ///
    /// All watermarks are computed anew. `min_free_kbytes` and the reserves of low zones do not change: they
    /// depend on the memory that the allocator was built with.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU, [`ConfigError::BadRange`] for an empty range,
    /// [`ConfigError::Foreign`] for a frame in no zone, [`ConfigError::AlreadyManaged`] for a frame that is
    /// not a hole. After an error nothing was added, with one exception. Race: two CPUs add frames of the
    /// same pageblock at once. The losing CPU gets `AlreadyManaged`, but the frames that it has added stay
    /// added.
    pub fn add_memory(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), ConfigError> {
        self.check_cpu(cpu)?;
        if pfns.is_empty() {
            return Err(ConfigError::BadRange(Pfn(pfns.start), Pfn(pfns.end)));
        }
        for pfn in pfns.clone().map(Pfn) {
            let (_, id) = self.locate(pfn).ok_or(ConfigError::Foreign(pfn))?;
            if !self.is_hole(id) {
                return Err(ConfigError::AlreadyManaged(pfn));
            }
        }
        let added = self.add_holes(pfns);
        self.update_watermarks();
        added
    }

    fn add_holes(&self, pfns: Range<u64>) -> Result<(), ConfigError> {
        let mut start = pfns.start;
        while start < pfns.end {
            let pfn = Pfn(start);
            let (zone, id) = self.locate(pfn).ok_or(ConfigError::Foreign(pfn))?;
            let (block, frame) = (id.block(), id.in_block());
            let len = (FRAMES - frame).min((pfns.end.min(zone.span.end) - start) as usize);
            let added = self.add_to_pageblock(block, frame..frame + len);
            zone.managed.fetch_add(added, Relaxed);
            if added < len {
                return Err(ConfigError::AlreadyManaged(pfn));
            }
            start += len as u64;
        }
        Ok(())
    }

    /// Whether a frame of a zone's span is no memory.
    pub(super) fn is_hole(&self, id: FrameId) -> bool {
        let (block, frame) = (id.block(), id.in_block());
        let state = self.state(block).get();
        state.phase() == Phase::Absent
            || state.is_holed()
                && self.rows(block).look(frame) == Use::Withheld
                && !self.is_bad(block, frame, state)
    }

    /// Adds frames to a pageblock. Returns the number added. Race: another CPU adds the same frames. The CPU
    /// that offers a row second loses: it adds no further rows. So each frame is added once, and the returned
    /// number is lower.
    fn add_to_pageblock(&self, block: BlockId, frames: Range<usize>) -> usize {
        if self.state(block).change::<A>(Phase::Absent, Phase::Changing) {
            self.rows(block).withhold_everything();
            if frames.len() == FRAMES {
                self.give_whole(block);
                return FRAMES;
            }
            let all_holes = State::open(MigrateType::Movable).holed();
            // While the phase is `Changing`, other CPUs change only the isolation flag.
            self.state(block).update::<A>(|state| Some(all_holes.isolated(state.is_isolated()))).ok();
        }
        let mut added = 0;
        for (row, bits) in rows_of(frames) {
            if !self.state(block).get().is_holed() {
                break;
            }
            if self.rows(block).offer(row, bits).is_err() {
                break;
            }
            added += bits.count_ones() as usize;
        }
        self.settle(block);
        added
    }
}
