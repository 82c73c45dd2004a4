//! The world an engine runs in: locks (the core's [`Platform`]), frames, page contents, and hooks for simulators.

use pageset_core::{CpuId, Pfn, Platform};

use crate::atomic::AtomicU64;
use crate::frames::FrameSource;

/// What a host supplies. Frames and memory are required. Every hook has a default that compiles to nothing.
///
/// Locks come from the platform. They may suspend the caller in virtual time, or belong to a model checker.
pub trait World: Platform + Sized {
    /// Where frames come from.
    type Frames: FrameSource;
    /// What is in them.
    type Memory: Memory;
    /// Whether every fault reads [`now_ns`](Self::now_ns). If not, only waits are timed.
    const TIMED: bool = false;

    /// Where frames come from.
    fn frames(&self) -> &Self::Frames;
    /// What is in them.
    fn memory(&self) -> &Self::Memory;

    /// `cpu` is about to change `line` with an atomic operation (locks report their own). A simulator charges the time that
    /// the line travels. A model checker may run another thread first.
    #[inline]
    fn shares(&self, cpu: CpuId, line: Line) {
        let _ = (cpu, line);
    }

    /// `cpu` waits for another CPU without a lock: spins once, or lets others run. While it calls this, the engine holds no
    /// lock of the platform that the others need.
    #[inline]
    fn relax(&self, cpu: CpuId) {
        let _ = cpu;
        core::hint::spin_loop();
    }

    /// `cpu` makes all CPUs forget translations. A simulator charges here what the interrupts of a real machine cost.
    #[inline]
    fn shoot_down(&self, cpu: CpuId) {
        let _ = cpu;
    }

    /// The leaf table whose first address is `start` was put into the tree of the address space with this number; its words begin at
    /// `words` in the host's memory, and have x86-64's format. For a host whose processor walks the table itself.
    ///
    /// Huge pages are not told of, so such a host does without them. Another CPU may have filled words already, and may find that the processor does not see the table yet: then it faults once
    /// more. Only strategies that close areas (V1, V2, V7) tell it in order with [`unlink_leaf`](Self::unlink_leaf).
    #[inline]
    fn link_leaf(&self, cpu: CpuId, space: u32, start: u64, words: *const AtomicU64) {
        let _ = (cpu, space, start, words);
    }

    /// The leaf table whose first address is `start` was taken out of the tree. [`shoot_down`](Self::shoot_down) follows, and then
    /// the table is used again.
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
        /// Whose.
        space: u32,
    },
    /// The word of one area's own lock.
    AreaLock {
        /// Number of the area.
        area: u32,
    },
    /// Resident pages. With R1 and R1b the only line of counters; a host may map it to the lock's line.
    Rss {
        /// Whose.
        space: u32,
    },
    /// Anonymous resident pages, where they have a line of their own (R1p).
    AnonRss {
        /// Whose.
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

/// Page contents. `target` is the page of the block that will be touched first, for orders above 0.
///
/// A host that only counts returns at once, and clears nothing.
pub trait Memory {
    /// Makes `2^order` frames zero.
    fn clear(&self, cpu: CpuId, pfn: Pfn, order: pageset_core::Order, target: u32);

    /// A hint: this CPU will probably clear this frame next, since it is the next of a magazine. A host may prefetch its
    /// first lines.
    #[inline]
    fn expect(&self, cpu: CpuId, pfn: Pfn) {
        let _ = (cpu, pfn);
    }

    /// Copies one frame.
    fn copy(&self, cpu: CpuId, from: Pfn, to: Pfn);

    /// Saves a frame's contents in a slot, and returns the slot's number (below 2^40). The slot has one user. `None` (the
    /// default): there is no slot, so nothing can be reclaimed.
    fn save(&self, cpu: CpuId, pfn: Pfn) -> Option<u64> {
        let _ = (cpu, pfn);
        None
    }

    /// Brings the contents of a slot back into a frame. The slot keeps its users.
    fn restore(&self, cpu: CpuId, slot: u64, pfn: Pfn) {
        let _ = (cpu, slot, pfn);
    }

    /// One more user of a slot: an address space was copied.
    fn share_slot(&self, slot: u64) {
        let _ = slot;
    }

    /// One user of a slot less; without users it can be used again.
    fn drop_slot(&self, slot: u64) {
        let _ = slot;
    }
}

/// Page contents that do not exist: for counting and for virtual time.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMemory;

impl Memory for NoMemory {
    #[inline]
    fn clear(&self, _: CpuId, _: Pfn, _: pageset_core::Order, _: u32) {}

    #[inline]
    fn copy(&self, _: CpuId, _: Pfn, _: Pfn) {}
}
