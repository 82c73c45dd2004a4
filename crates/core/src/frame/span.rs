//! Where a zone lies, and how its frames are numbered inside.

use core::ops::Range;

use super::FrameIndex;
use crate::{NR_ORDERS, PAGEBLOCK_FRAMES, Pfn};

/// A zone's frames. Indices count from `base`, a multiple of the largest block, so that aligned frames have aligned
/// indices; the tables reach to the next such multiple, so that a block's buddy always has an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    base: u64,
    start: FrameIndex,
    end: FrameIndex,
}

/// How many entries a zone's metadata tables need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameCounts {
    /// Entries of the link table (8 bytes each) and of the state table (1 byte each).
    pub frames: usize,
    /// Entries of the pageblock table (1 byte each).
    pub pageblocks: usize,
}

impl FrameCounts {
    /// The tables for a zone that spans these frame numbers. `None` if the zone is empty or spans more than 2^32 − 2^10
    /// frames (16 TiB with 4 KiB frames).
    #[must_use]
    pub fn for_span(pfns: Range<u64>) -> Option<Self> {
        Some(Span::covering(pfns)?.counts())
    }
}

const LARGEST_BLOCK: u64 = 1 << (NR_ORDERS - 1);

impl Span {
    pub(crate) const EMPTY: Self = Self { base: 0, start: 0, end: 0 };

    pub(crate) fn covering(pfns: Range<u64>) -> Option<Self> {
        if pfns.is_empty() {
            return None;
        }
        let base = pfns.start & !(LARGEST_BLOCK - 1);
        let table_end = pfns.end.checked_next_multiple_of(LARGEST_BLOCK)?;
        // The last index is kept free: it marks the end of lists.
        FrameIndex::try_from(table_end - base).ok()?;
        let index = |pfn| FrameIndex::try_from(pfn - base).ok();
        Some(Self { base, start: index(pfns.start)?, end: index(pfns.end)? })
    }

    pub(crate) fn counts(&self) -> FrameCounts {
        let frames = u64::from(self.end).next_multiple_of(LARGEST_BLOCK) as usize;
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

    /// The index of `pfn`, if it lies in the zone.
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
