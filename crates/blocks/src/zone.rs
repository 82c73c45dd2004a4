//! A zone: which pageblocks it has, how many frames are free, and how many have to stay free.

use core::ops::Range;

use pageset_core::{MigrateType, NodeId, PAGEBLOCK_FRAMES, Pfn, Watermark, Watermarks, ZoneId, ZoneKind};

use crate::atomic::{AtomicU32, AtomicUsize, Relaxed, array, constant};
use crate::cpu_lists::{TYPES, Wanted};
use crate::stack::{BlockIndex, Stack};
use crate::surplus::Surplus;

/// One zone. In this order: what says where it is lies in one line; then, on both sides of what changes often, what requests and
/// frees compare with, and which seldom changes.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Zone {
    pub(crate) span: Range<u64>,
    /// Frame number minus frame index, modulo 2^64.
    pub(crate) offset: u64,
    /// Its pageblocks, the first of which begins at a multiple of the largest block.
    pub(crate) blocks: Range<BlockIndex>,
    pub(crate) id: ZoneId,
    pub(crate) kind: ZoneKind,
    pub(crate) node: NodeId,
    /// Frames to keep back from requests that could use a higher zone.
    pub(crate) lowmem_reserve: [u64; ZoneKind::COUNT],
    gauges: Gauges,
    /// Frames that the allocator may hand out.
    pub(crate) managed: AtomicUsize,
    marks: [AtomicUsize; 3],
    /// Whole pageblocks that are kept for atomic requests of high order. There may be fewer at the moment.
    pub(crate) reserved: AtomicUsize,
    /// Frames that a CPU may keep in its surplus.
    surplus_max: AtomicU32,
    common: Common,
}

/// What CPUs leave to each other. Lines of their own.
#[derive(Debug)]
#[repr(C, align(64))]
struct Common {
    /// Pageblocks with free frames whose owners are idle, by type and order.
    shared: [[Stack; pageset_core::PAGEBLOCK_ORDER]; TYPES],
    /// Pageblocks with blocks of several orders and free frames, which no CPU has at hand, by type.
    mixed: [Stack; TYPES],
}

/// The share of a zone that all CPUs together may know free without the zone knowing it, by its inverse. Guess: of this much, a
/// zone's low watermark is a small part or it has nothing else left.
const HIDDEN_SHARE: u64 = 64;

/// What is free and in nobody's use. A line of its own, which changes when CPUs take and give whole pageblocks.
#[derive(Debug)]
#[repr(align(64))]
struct Gauges {
    whole: AtomicUsize,
    idle: AtomicUsize,
    /// What no CPU has of the budget for pageblocks in CPUs' stacks.
    unassigned: AtomicUsize,
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
                surplus_max: AtomicU32::new(0),
                gauges: Gauges {
                    whole: AtomicUsize::new(0),
                    idle: AtomicUsize::new(0),
                    unassigned: AtomicUsize::new(0),
                },
                common: Common {
                    shared: array!(array!(Stack::new())),
                    mixed: array!(Stack::new()),
                },
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
        &self.common.shared[wanted.migratetype.index()][wanted.order.index()]
    }

    pub(crate) fn mixed(&self, migratetype: MigrateType) -> &Stack {
        &self.common.mixed[migratetype.index()]
    }

    /// What no CPU has of the budget for pageblocks in CPUs' stacks.
    pub(crate) fn unassigned(&self) -> &AtomicUsize {
        &self.gauges.unassigned
    }

    pub(crate) fn add_whole(&self, blocks: usize) {
        self.gauges.whole.fetch_add(blocks, Relaxed);
    }

    pub(crate) fn remove_whole(&self, blocks: usize) {
        self.gauges.whole.fetch_sub(blocks, Relaxed);
    }

    /// Idle pageblocks had `before` frames that were counted as free, and have `now`. This changes the CPU's surplus, and the zone's
    /// count only if that is not enough or too much.
    pub(crate) fn recount_idle(&self, surplus: &Surplus, before: u32, now: u32) {
        match now.checked_sub(before) {
            Some(0) => {}
            Some(more) => self.add_idle(surplus.add(more, self.surplus_max.load(Relaxed))),
            None => {
                let less = surplus.take(before - now);
                if less > 0 {
                    self.gauges.idle.fetch_sub(less as usize, Relaxed);
                }
            }
        }
    }

    /// Frames of a CPU's surplus that the zone counts from here on.
    pub(crate) fn add_idle(&self, frames: u32) {
        if frames > 0 {
            self.gauges.idle.fetch_add(frames as usize, Relaxed);
        }
    }

    /// What so many CPUs may keep to themselves follows from the memory there is.
    pub(crate) fn set_surplus_max(&self, cpus: usize) {
        let share = self.managed() / (HIDDEN_SHARE * cpus as u64);
        self.surplus_max.store(u32::try_from(share).unwrap_or(u32::MAX), Relaxed);
    }

    /// Pageblocks that are free as a whole, and that anybody can claim.
    pub(crate) fn whole_blocks(&self) -> usize {
        self.gauges.whole.load(Relaxed)
    }

    /// Frames that are free at least: frames that were freed to pageblocks since those became idle are not counted, nor are
    /// those of pageblocks that CPUs allocate from, nor what is in a CPU's surplus.
    pub(crate) fn free_at_least(&self) -> u64 {
        let whole = (self.whole_blocks() as u64).saturating_mul(u64::from(PAGEBLOCK_FRAMES));
        // What one CPU took out of the count another one may have in its surplus.
        whole.saturating_add(self.idle_frames().max(0) as u64)
    }

    /// Frames of idle pageblocks that are counted as free, without what is in CPUs' surplus.
    pub(crate) fn idle_frames(&self) -> i64 {
        self.gauges.idle.load(Relaxed) as isize as i64
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
