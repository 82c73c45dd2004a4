//! The environment of an engine: locks (the core's [`Platform`]), frames, page contents, and hooks for
//! simulators.

use pageset_core::{CpuId, Pfn, Platform};

use crate::atomic::AtomicU64;
use crate::frames::FrameSource;

/// The host's part of an engine. Frames and memory are required. The hooks have defaults that do nothing,
/// except that `relax` gives a spin-loop hint.
///
/// Locks come from the platform. Such a lock may suspend the caller in virtual time, or belong to a model
/// checker.
pub trait World: Platform + Sized {
    /// The source of frames.
    type Frames: FrameSource;
    /// The contents of frames.
    type Memory: Memory;
    /// Whether each fault reads [`now_ns`](Self::now_ns). If not, only the times of waits are measured.
    const TIMED: bool = false;

    /// The source of frames.
    fn frames(&self) -> &Self::Frames;
    /// The contents of frames.
    fn memory(&self) -> &Self::Memory;

    /// Called when `cpu` is about to change `line` with an atomic operation. Operations on the platform's
    /// locks are not reported here. A simulator charges the time of the cache-line transfer. A model checker
    /// may run another thread first.
    #[inline]
    fn shares(&self, cpu: CpuId, line: Line) {
        let _ = (cpu, line);
    }

    /// Called again and again while `cpu` waits for another CPU, but not for a lock. Spins once, or lets
    /// other CPUs run. Meanwhile the engine holds no platform lock that the other CPUs need.
    #[inline]
    fn relax(&self, cpu: CpuId) {
        let _ = cpu;
        core::hint::spin_loop();
    }

    /// Called when `cpu` makes all CPUs drop their translations. A simulator charges the cost of the
    /// interrupts here.
    #[inline]
    fn shoot_down(&self, cpu: CpuId) {
        let _ = cpu;
    }

    /// Called after a leaf table was put into the tree of address space `space`. `start` is the first address
    /// that the table covers. The table's words begin at `words` in the host's memory, in x86-64's format.
    /// Use this hook if the host's processor walks the leaf tables itself.
    ///
    /// The hook does not report huge pages, so such a host must not use them. Another CPU may fill words
    /// before the processor sees the table; that CPU's access then faults once more. Only under strategies
    /// that close areas (V1, V2, V7) are this call and [`unlink_leaf`](Self::unlink_leaf) in the right order.
    #[inline]
    fn link_leaf(&self, cpu: CpuId, space: u32, start: u64, words: *const AtomicU64) {
        let _ = (cpu, space, start, words);
    }

    /// Called after the leaf table whose first address is `start` was taken out of the tree. The engine then
    /// calls [`shoot_down`](Self::shoot_down), and reuses the table after that.
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

/// A cache line that several CPUs write, outside locks. `space` is an address space's number.
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
    /// may treat this line as the cache line of the address space's lock.
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

/// The contents of pages. For orders above 0, `target` is the page of the block that will be touched first.
///
/// A host that only counts pages clears nothing.
pub trait Memory {
    /// Clears `2^order` frames.
    fn clear(&self, cpu: CpuId, pfn: Pfn, order: pageset_core::Order, target: u32);

    /// A hint: this CPU will probably clear this frame next, because it is the next one in a magazine. A host
    /// may prefetch its first lines.
    #[inline]
    fn expect(&self, cpu: CpuId, pfn: Pfn) {
        let _ = (cpu, pfn);
    }

    /// Copies one frame.
    fn copy(&self, cpu: CpuId, from: Pfn, to: Pfn);

    /// Saves a frame's contents in a slot, and returns the slot's number, which is below 2^40. The new slot
    /// has one user. The default returns `None`: there is no slot, so nothing can be reclaimed.
    fn save(&self, cpu: CpuId, pfn: Pfn) -> Option<u64> {
        let _ = (cpu, pfn);
        None
    }

    /// Copies the contents of a slot back into a frame. The number of the slot's users does not change.
    fn restore(&self, cpu: CpuId, slot: u64, pfn: Pfn) {
        let _ = (cpu, slot, pfn);
    }

    /// Adds a user to a slot, when an address space is copied.
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
