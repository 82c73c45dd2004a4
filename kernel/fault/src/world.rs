//! The environment of an engine: locks (the core's [`Platform`]), frames, page contents, and hooks for
//! simulators.

use pageset_core::{CpuId, Pfn, Platform};

use crate::atomic::AtomicU64;
use crate::frames::FrameSource;

/// The host's part of an engine. A host must provide frames and memory. The hooks have defaults that do
/// nothing, except that `relax` gives a spin-loop hint.
///
/// The engine's locks come from the [`Platform`]. For example, such a lock may suspend its caller in virtual
/// time, or belong to a model checker.
pub trait World: Platform + Sized {
    /// The source of frames.
    type Frames: FrameSource;
    /// The contents of frames.
    type Memory: Memory;
    /// Whether each fault measures its times by [`now_ns`](Self::now_ns). If not, the engine measures only
    /// waits for locks.
    const TIMED: bool = false;

    /// The source of frames.
    fn frames(&self) -> &Self::Frames;
    /// The contents of frames.
    fn memory(&self) -> &Self::Memory;

    /// The engine calls this when `cpu` is about to change `line` with an atomic operation. The engine does
    /// not report operations on the platform's locks. A simulator can charge the time of the cache-line
    /// transfer. A model checker can run another thread first.
    #[inline]
    fn shares(&self, cpu: CpuId, line: Line) {
        let _ = (cpu, line);
    }

    /// The engine calls this again and again while `cpu` waits for another CPU, except in a platform lock.
    /// Spins once, or lets other CPUs run. The calling task holds no platform lock.
    #[inline]
    fn relax(&self, cpu: CpuId) {
        let _ = cpu;
        core::hint::spin_loop();
    }

    /// The engine calls this when `cpu` makes all CPUs drop their translations. A simulator can charge the
    /// cost of the interrupts.
    #[inline]
    fn shoot_down(&self, cpu: CpuId) {
        let _ = cpu;
    }

    /// The engine calls this after a task put a leaf table into the tree of address space `space`. `start` is
    /// the first address that the table covers. The table's words begin at `words` in the host's memory, in
    /// x86-64's format. Use this hook if the host's processor walks the leaf tables itself.
    ///
    /// No hook reports huge pages, so such a host must not use them. Another CPU may fill words before the
    /// processor sees the table. In that case, the access of that CPU faults once more. The engine calls this
    /// hook and [`unlink_leaf`](Self::unlink_leaf) in the right order only under V1, V2 and V7, which close
    /// areas.
    #[inline]
    fn link_leaf(&self, cpu: CpuId, space: u32, start: u64, words: *const AtomicU64) {
        let _ = (cpu, space, start, words);
    }

    /// The engine calls this after a task took a leaf table out of the tree. `start` is the first address
    /// that the table covers. The engine calls [`shoot_down`](Self::shoot_down) before it reuses the table.
    #[inline]
    fn unlink_leaf(&self, cpu: CpuId, space: u32, start: u64) {
        let _ = (cpu, space, start);
    }

    /// Time on `cpu`'s clock, in nanoseconds.
    #[inline]
    fn now_ns(&self, cpu: CpuId) -> u64 {
        let _ = cpu;
        0
    }
}

/// A cache line that several CPUs write. The lines of platform locks are not among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Line {
    /// The word of the reader-writer lock over all areas.
    MmapLock {
        /// Number of the address space.
        space: u32,
    },
    /// The word of one area's own lock.
    AreaLock {
        /// Number of the area.
        area: u32,
    },
    /// The count of resident pages. R1b has only this counter, and R1 has both counters on this line. A host
    /// may treat this line as the line of [`MmapLock`](Self::MmapLock).
    Rss {
        /// Number of the address space.
        space: u32,
    },
    /// The count of anonymous resident pages, if it has its own line (R1p).
    AnonRss {
        /// Number of the address space.
        space: u32,
    },
    /// Eight words of a page table.
    Words {
        /// Number of the table.
        table: u32,
        /// Index of the word, divided by eight.
        line: u32,
    },
    /// The number of references to a frame.
    Frame(Pfn),
}

/// The contents of pages.
///
/// A host that only counts pages needs no contents: see [`NoMemory`].
pub trait Memory {
    /// Clears the `2^order` frames of a block. The task will touch page number `target` of the block first.
    fn clear(&self, cpu: CpuId, pfn: Pfn, order: pageset_core::Order, target: u32);

    /// A hint that this CPU will probably clear this frame next, because it is the next frame in a magazine.
    /// A host may prefetch the frame's first cache lines.
    #[inline]
    fn expect(&self, cpu: CpuId, pfn: Pfn) {
        let _ = (cpu, pfn);
    }

    /// Copies one frame.
    fn copy(&self, cpu: CpuId, from: Pfn, to: Pfn);

    /// Saves a frame's contents in a slot, and returns the slot's number, which is below 2^40. The new slot
    /// has one user. The default returns `None`, so the engine cannot reclaim pages.
    fn save(&self, cpu: CpuId, pfn: Pfn) -> Option<u64> {
        let _ = (cpu, pfn);
        None
    }

    /// Copies the contents of a slot back into a frame. The number of the slot's users does not change.
    fn restore(&self, cpu: CpuId, slot: u64, pfn: Pfn) {
        let _ = (cpu, slot, pfn);
    }

    /// Adds a user to a slot. The engine calls this when it copies an address space.
    fn share_slot(&self, slot: u64) {
        let _ = slot;
    }

    /// Removes a user from a slot. A slot without users can be reused.
    fn drop_slot(&self, slot: u64) {
        let _ = slot;
    }
}

/// A memory without contents, for counting and for virtual time.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMemory;

impl Memory for NoMemory {
    #[inline]
    fn clear(&self, _: CpuId, _: Pfn, _: pageset_core::Order, _: u32) {}

    #[inline]
    fn copy(&self, _: CpuId, _: Pfn, _: Pfn) {}
}
