//! A zone: which pageblocks it has, how many frames are free, and how many have to stay free.

use core::ops::Range;

use pageset_core::{MigrateType, NodeId, PAGEBLOCK_FRAMES, Pfn, Watermark, Watermarks, ZoneId, ZoneKind};

use crate::atomic::{AtomicUsize, Relaxed, array, constant};
use crate::cpu_lists::{TYPES, Wanted};
use crate::stack::{BlockIndex, Stack};

/// One zone.
#[derive(Debug)]
#[repr(align(64))]
pub struct Zone {
    pub(crate) id: ZoneId,
    pub(crate) kind: ZoneKind,
    pub(crate) node: NodeId,
    pub(crate) span: Range<u64>,
    /// Frames that the allocator may hand out.
    pub(crate) managed: AtomicUsize,
    /// Its pageblocks, the first of which begins at a multiple of the largest block.
    pub(crate) blocks: Range<BlockIndex>,
    /// Frame number minus frame index, modulo 2^64.
    pub(crate) offset: u64,
    /// Frames to keep back from requests that could use a higher zone.
    pub(crate) lowmem_reserve: [u64; ZoneKind::COUNT],
    marks: [AtomicUsize; 3],
    gauges: Gauges,
    /// Whole pageblocks that are kept for atomic requests of high order. There may be fewer at the moment.
    pub(crate) reserved: AtomicUsize,
    /// What no CPU has of the budget for pageblocks in CPUs' stacks.
    pub(crate) unassigned: AtomicUsize,
    /// Pageblocks with free frames whose owners are idle, by type and order.
    shared: [[Stack; pageset_core::PAGEBLOCK_ORDER]; TYPES],
    /// Pageblocks with blocks of several orders and free frames, which no CPU has at hand, by type.
    mixed: [Stack; TYPES],
}

/// What is free and in nobody's use. A line of its own, which changes when pageblocks do, not when frames do.
#[derive(Debug)]
#[repr(align(64))]
struct Gauges {
    whole: AtomicUsize,
    idle: AtomicUsize,
}

impl Default for Zone {
    fn default() -> Self {
        Self::empty()
    }
}

impl Zone {
    constant! {
        /// A zone without memory.
        #[must_use]
        pub fn empty() -> Self {
            Self {
                id: ZoneId(0),
                kind: ZoneKind::Normal,
                node: NodeId(0),
                span: 0..0,
                managed: AtomicUsize::new(0),
                blocks: 0..0,
                offset: 0,
                lowmem_reserve: [0; ZoneKind::COUNT],
                marks: array!(AtomicUsize::new(0)),
                reserved: AtomicUsize::new(0),
                unassigned: AtomicUsize::new(0),
                gauges: Gauges { whole: AtomicUsize::new(0), idle: AtomicUsize::new(0) },
                shared: array!(array!(Stack::new())),
                mixed: array!(Stack::new()),
            }
        }
    }

    /// The frame number of a frame index.
    #[inline]
    pub(crate) fn pfn(&self, frame: usize) -> Pfn {
        Pfn((frame as u64).wrapping_add(self.offset))
    }

    /// The frame index of a frame number of this zone's.
    #[inline]
    pub(crate) fn frame(&self, pfn: Pfn) -> Option<usize> {
        self.span.contains(&pfn.0).then(|| pfn.0.wrapping_sub(self.offset) as usize)
    }

    pub(crate) fn managed(&self) -> u64 {
        self.managed.load(Relaxed) as u64
    }

    pub(crate) fn shared(&self, wanted: Wanted) -> &Stack {
        &self.shared[wanted.migratetype.index()][wanted.order.index()]
    }

    pub(crate) fn mixed(&self, migratetype: MigrateType) -> &Stack {
        &self.mixed[migratetype.index()]
    }

    pub(crate) fn add_whole(&self, blocks: usize) {
        self.gauges.whole.fetch_add(blocks, Relaxed);
    }

    pub(crate) fn remove_whole(&self, blocks: usize) {
        self.gauges.whole.fetch_sub(blocks, Relaxed);
    }

    /// Idle pageblocks had `before` frames that were counted as free, and have `now`.
    pub(crate) fn recount_idle(&self, before: u32, now: u32) {
        if before != now {
            self.gauges.idle.fetch_add((now as usize).wrapping_sub(before as usize), Relaxed);
        }
    }

    /// Pageblocks that are free as a whole, and that anybody can claim.
    pub(crate) fn whole_blocks(&self) -> usize {
        self.gauges.whole.load(Relaxed)
    }

    /// Frames that are free at least: frames that were freed to pageblocks since those became idle are not counted, nor are
    /// those of pageblocks that CPUs allocate from.
    pub(crate) fn free_at_least(&self) -> u64 {
        let whole = (self.whole_blocks() as u64).saturating_mul(u64::from(PAGEBLOCK_FRAMES));
        // Two CPUs that count at the same time may leave a difference below zero for a moment.
        whole.saturating_add((self.gauges.idle.load(Relaxed) as isize).max(0) as u64)
    }

    pub(crate) fn mark(&self, mark: Watermark) -> u64 {
        self.marks[mark_index(mark)].load(Relaxed) as u64
    }

    pub(crate) fn set_marks(&self, marks: Watermarks) {
        for (mark, frames) in
            [(Watermark::Min, marks.min), (Watermark::Low, marks.low), (Watermark::High, marks.high)]
        {
            self.marks[mark_index(mark)].store(usize::try_from(frames).unwrap_or(usize::MAX), Relaxed);
        }
    }
}

const fn mark_index(mark: Watermark) -> usize {
    match mark {
        Watermark::Min => 0,
        Watermark::Low => 1,
        Watermark::High => 2,
    }
}
