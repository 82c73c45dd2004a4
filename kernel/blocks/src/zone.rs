//! A zone: its pageblocks, how many frames are free, and how many must stay free.

use core::ops::Range;

use pageset_core::{NodeId, PAGEBLOCK_FRAMES, Pfn, Watermark, Watermarks, ZoneId, ZoneKind};

use crate::access::{Access, add};
use crate::atomic::{AtomicUsize, Relaxed, array, constant};
use crate::ids::{BlockId, FrameId};

/// One zone. The gauges change often, so they have their own cache line, between the fields that locate the
/// zone and the limits that seldom change.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Zone {
    pub(crate) span: Range<u64>,
    /// The number of a frame minus its [`FrameId`], modulo 2^64.
    pub(crate) offset: u64,
    /// The zone's pageblocks. The first begins at a multiple of the largest block.
    pub(crate) blocks: Range<BlockId>,
    pub(crate) id: ZoneId,
    pub(crate) kind: ZoneKind,
    pub(crate) node: NodeId,
    /// For each kind, the frames that the zone keeps from requests whose highest zone has this kind.
    pub(crate) lowmem_reserve: [u64; ZoneKind::COUNT],
    gauges: Gauges,
    /// Frames that the allocator may hand out.
    pub(crate) managed: AtomicUsize,
    marks: [AtomicUsize; 3],
    /// The highatomic reserve: whole pageblocks to keep for atomic requests of high order. Fewer pageblocks
    /// may be whole at the moment.
    pub(crate) highatomic_reserve: AtomicUsize,
}

/// Counts of free memory. The counts have a cache line of their own, because they change whenever a CPU takes
/// or returns a whole pageblock.
#[derive(Debug)]
#[repr(align(64))]
struct Gauges {
    whole: AtomicUsize,
    /// Free frames of open pageblocks that no CPU reserves. Frames freed since a pageblock was last counted
    /// are missing.
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
        pub(crate) fn empty() -> Self {
            Self {
                id: ZoneId(0),
                // The kind `Dma` has number 0, so that the whole value is zeros.
                kind: ZoneKind::Dma,
                node: NodeId(0),
                span: 0..0,
                managed: AtomicUsize::new(0),
                blocks: BlockId(0)..BlockId(0),
                offset: 0,
                lowmem_reserve: [0; ZoneKind::COUNT],
                marks: array!(AtomicUsize::new(0)),
                highatomic_reserve: AtomicUsize::new(0),
                gauges: Gauges {
                    whole: AtomicUsize::new(0),
                    idle: AtomicUsize::new(0),
                },
            }
        }
    }

    /// Converts the place of a frame to its number.
    #[inline]
    pub(crate) fn pfn(&self, id: FrameId) -> Pfn {
        Pfn((id.0 as u64).wrapping_add(self.offset))
    }

    /// Converts the number of a frame to its place. Returns `None` if the frame is outside the zone.
    #[inline]
    pub(crate) fn frame(&self, pfn: Pfn) -> Option<FrameId> {
        self.span.contains(&pfn.0).then(|| FrameId(pfn.0.wrapping_sub(self.offset) as usize))
    }

    pub(crate) fn managed(&self) -> u64 {
        self.managed.load(Relaxed) as u64
    }

    pub(crate) fn add_whole<A: Access>(&self, blocks: usize) {
        add::<A>(&self.gauges.whole, blocks);
    }

    pub(crate) fn remove_whole<A: Access>(&self, blocks: usize) {
        add::<A>(&self.gauges.whole, blocks.wrapping_neg());
    }

    /// Changes the zone's count of free frames after a CPU counted a pageblock again, and found `now` free
    /// frames instead of `before`.
    pub(crate) fn recount<A: Access>(&self, before: u32, now: u32) {
        if before != now {
            add::<A>(&self.gauges.idle, (now as usize).wrapping_sub(before as usize));
        }
    }

    /// The number of whole pageblocks that any CPU can claim.
    pub(crate) fn whole_blocks(&self) -> usize {
        self.gauges.whole.load(Relaxed)
    }

    /// An estimate of the number of free frames, usually too low. The estimate lacks free frames of reserved
    /// pageblocks, pageblocks in stocks, and frames that were freed after the last count of their pageblock.
    ///
    /// Race: a CPU takes a frame of the pageblock that it reserves, while another CPU ends the reservation
    /// and counts the frame as free. Neither CPU loses, but the estimate is too high by that frame until a
    /// CPU counts the pageblock again.
    pub(crate) fn free_at_least(&self) -> u64 {
        self.whole_frames().saturating_add(self.idle_frames().max(0) as u64)
    }

    /// The frames of whole pageblocks that any CPU can claim.
    pub(crate) fn whole_frames(&self) -> u64 {
        (self.whole_blocks() as u64).saturating_mul(u64::from(PAGEBLOCK_FRAMES))
    }

    /// Counted free frames of open pageblocks.
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
