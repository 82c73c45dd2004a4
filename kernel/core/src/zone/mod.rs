//! A zone: its frame numbers, flags and lock. The other files of this folder have the zone's other data, such
//! as free lists, watermarks and reserves.

mod assertions;
mod body;
mod gauges;
mod locked;
mod marks;
mod watermark;

use core::fmt;
use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;

pub(crate) use body::{Identity, ZoneBody};
pub(crate) use gauges::Gauges;
pub(crate) use locked::{End, FreeLists, ListId, LockedZone};
pub use marks::{Watermark, Watermarks, default_min_free_kbytes};
pub use marks::{WatermarkInputs, WatermarkSettings};

use crate::event::Event;
use crate::frame::{FrameCounts, FrameIndex, FrameTables, Owners, PageblockOwner};
use crate::platform::{Lock, Platform};
use crate::{CpuId, NR_ORDERS, PAGEBLOCK_FRAMES, Pfn, Storage};

/// A zone of an allocator: its frame metadata, watermarks, free lists and lock.
///
/// The constructor is `const`, so that a kernel can keep its zones in a static.
pub struct Zone<'a, P: Platform> {
    pub(crate) body: ZoneBody<'a>,
    buddy: Lock<P, FreeLists>,
}

impl<'a, P: Platform> Zone<'a, P> {
    /// Makes a zone without frames. [`PageAllocator::new`](crate::PageAllocator::new) fills the zone. Each
    /// table of `frames` must have at least as many entries as [`FrameCounts`](crate::FrameCounts) says.
    #[must_use]
    pub const fn new(frames: FrameTables<'a>) -> Self {
        Self { body: ZoneBody::new(frames), buddy: Lock::<P, _>::new(FreeLists::EMPTY) }
    }

    /// Returns the zone with a table of owners, which a policy with owners needs. The table must have at
    /// least as many entries as [`FrameCounts::owners`] says.
    #[must_use]
    pub fn with_owners(mut self, owners: Storage<'a, PageblockOwner>) -> Self {
        self.body.owners = Owners::new(owners);
        self
    }

    /// Runs `work` with the zone's lock held by `cpu`.
    #[inline]
    pub(crate) fn with_lock<T>(
        &self,
        platform: &P,
        cpu: CpuId,
        work: impl FnOnce(&mut LockedZone<'_, P::Events>) -> T,
    ) -> T {
        let events = platform.events();
        let mut buddy = self.buddy.lock();
        buddy.stats.zone_lock_acquisitions += 1;
        crate::event::emit(events, cpu, || Event::ZoneLock { zone: self.body.id });
        let mut locked = LockedZone::new(&mut buddy, &self.body, events, cpu);
        let outcome = work(&mut locked);
        locked.assert_consistent();
        outcome
    }

    /// Reads the free lists for statistics and `validate`. A hold of the zone lock by `inspect` does not
    /// count in `zone_lock_acquisitions`.
    pub(crate) fn inspect<T>(&self, look: impl FnOnce(&FreeLists) -> T) -> T {
        look(&self.buddy.lock())
    }

    pub(crate) fn body_and_buddy_mut(&mut self) -> (&mut ZoneBody<'a>, &mut FreeLists) {
        (&mut self.body, self.buddy.get_mut())
    }
}

impl<P: Platform> fmt::Debug for Zone<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zone")
            .field("kind", &self.body.kind)
            .field("span", &self.body.span)
            .finish_non_exhaustive()
    }
}

/// A zone's frames. Indices count from `base`, which is a multiple of the largest block's size, so aligned
/// frames have aligned indices. The tables end at a multiple of the largest block's size, so that a block's
/// buddy always has an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    base: u64,
    start: FrameIndex,
    end: FrameIndex,
}

const LARGEST_BLOCK: u64 = 1 << (NR_ORDERS - 1);

impl Span {
    pub(crate) const EMPTY: Self = Self { base: 0, start: 0, end: 0 };

    pub(crate) const fn covering(pfns: Range<u64>) -> Option<Self> {
        let base = pfns.start & !(LARGEST_BLOCK - 1);
        match pfns.end.checked_next_multiple_of(LARGEST_BLOCK) {
            // No frame has the largest index, because the largest index marks the end of a list.
            Some(table_end) if pfns.start < pfns.end && table_end - base <= FrameIndex::MAX as u64 => {
                let (start, end) = ((pfns.start - base) as FrameIndex, (pfns.end - base) as FrameIndex);
                Some(Self { base, start, end })
            }
            _ => None,
        }
    }

    pub(crate) const fn counts(&self) -> FrameCounts {
        let frames = (self.end as u64).next_multiple_of(LARGEST_BLOCK) as usize;
        FrameCounts { frames, pageblocks: frames / PAGEBLOCK_FRAMES as usize }
    }

    #[inline]
    pub(crate) fn contains(&self, frame: FrameIndex) -> bool {
        (self.start..self.end).contains(&frame)
    }

    #[inline]
    pub(crate) fn pfn(&self, frame: FrameIndex) -> Pfn {
        Pfn(self.base + u64::from(frame))
    }

    /// The index of `pfn`, if `pfn` lies in the zone.
    #[inline]
    pub(crate) fn index(&self, pfn: Pfn) -> Option<FrameIndex> {
        let index = FrameIndex::try_from(pfn.0.checked_sub(self.base)?).ok()?;
        self.contains(index).then_some(index)
    }

    /// The zone's frame numbers.
    pub(crate) fn pfns(&self) -> Range<u64> {
        self.base + u64::from(self.start)..self.base + u64::from(self.end)
    }
}

impl FrameCounts {
    /// The table sizes for a zone with these frame numbers. `None` if the zone is empty, or if its rounded
    /// span has more than 2^32 − 2^10 frames (16 TiB with 4 KiB frames). The span is rounded outwards to
    /// blocks of 1024 frames. The function is `const`, so that a program can use the numbers as lengths of
    /// static tables.
    #[must_use]
    pub const fn for_span(pfns: Range<u64>) -> Option<Self> {
        match Span::covering(pfns) {
            Some(span) => Some(span.counts()),
            None => None,
        }
    }
}

/// A condition of a zone that affects page sets or the zone walk (spec §2.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZoneFlag {
    /// The reclaimer runs in this zone.
    ReclaimActive = 1,
    /// A CPU saw the zone's free memory below the high watermark.
    BelowHigh = 2,
    /// A fallback has raised the watermarks, and the next suitable request wakes the reclaimer.
    BoostedWatermark = 4,
}

/// The zone's flags that affect page sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// The reclaimer runs in the zone.
    pub reclaim_active: bool,
    /// A CPU saw the zone's free memory below the high watermark.
    pub below_high: bool,
}

impl ZoneBody<'_> {
    #[inline]
    pub(crate) fn has(&self, flag: ZoneFlag) -> bool {
        self.gauges.flags.load(Relaxed) & flag as u8 != 0
    }

    /// Reads the flags that affect page sets.
    #[inline]
    pub(crate) fn pressure(&self) -> Pressure {
        Pressure {
            reclaim_active: self.has(ZoneFlag::ReclaimActive),
            below_high: self.has(ZoneFlag::BelowHigh),
        }
    }

    pub(crate) fn set(&self, flag: ZoneFlag) {
        self.gauges.flags.fetch_or(flag as u8, Relaxed);
    }

    /// Clears a flag. Returns whether the flag was set.
    pub(crate) fn clear(&self, flag: ZoneFlag) -> bool {
        self.gauges.flags.fetch_and(!(flag as u8), Relaxed) & flag as u8 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_keep_alignment() {
        let span = Span::covering(1000..5000).unwrap();
        assert_eq!(span.index(Pfn(1024)), Some(1024));
        assert_eq!(span.index(Pfn(999)), None);
        assert_eq!(span.index(Pfn(5000)), None);
        assert_eq!(span.counts(), FrameCounts { frames: 5120, pageblocks: 10 });
        let high = Span::covering(0x10_0400..0x10_0800).unwrap();
        assert_eq!(high.pfn(0), Pfn(0x10_0400));
    }

    #[test]
    fn impossible_spans_are_refused() {
        assert_eq!(Span::covering(5..5), None);
        assert_eq!(Span::covering(0..1 << 32), None);
        assert_eq!(Span::covering(u64::MAX - 2000..u64::MAX), None);
        assert!(Span::covering(0..(1 << 32) - 1024).is_some());
    }
}
