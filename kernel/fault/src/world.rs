//! The environment of an engine: locks (the core's [`Platform`]), frames, page contents, and hooks for hosts
//! such as simulators.

use pageset_core::{CpuId, Pfn, Platform};

use crate::atomic::AtomicU64;
use crate::frames::FrameSource;

/// The host's part of an engine. A host must provide frames and memory. The default `relax` gives a spin-loop
/// hint, and the default `now_ns` returns 0. All other default hooks do nothing.
///
/// The engine's locks come from the [`Platform`]. For example, a lock of the platform may suspend its caller
/// in virtual time, or belong to a model checker.
pub trait World: Platform + Sized {
    /// The source of frames.
    type Frames: FrameSource;
    /// The contents of frames.
    type Memory: Memory;
    /// Whether each fault measures its times by [`now_ns`](Self::now_ns). If `TIMED` is `false`, the engine
    /// measures only waits for locks.
    const TIMED: bool = false;

    /// The source of frames.
    fn frames(&self) -> &Self::Frames;
    /// The contents of frames.
    fn memory(&self) -> &Self::Memory;

    /// The engine calls `shares` when a task on `cpu` is about to change the cache line `line` with an atomic
    /// operation. The engine does not call `shares` for operations on the platform's locks, for reference
    /// counts of frames, or for words of page tables that change under a lock. In `shares`, a simulator can
    /// charge the time of the cache-line transfer, and a model checker can run another thread.
    #[inline]
    fn shares(&self, cpu: CpuId, line: Line) {
        let _ = (cpu, line);
    }

    /// The engine calls `relax` again and again while a task on `cpu` waits for another CPU, but not while
    /// the task waits for a platform lock. An implementation spins once, or lets other CPUs run. During the
    /// call, the task holds no platform lock.
    #[inline]
    fn relax(&self, cpu: CpuId) {
        let _ = cpu;
        core::hint::spin_loop();
    }

    /// The engine calls `shoot_down` when a task on `cpu` makes all CPUs drop their address translations. In
    /// `shoot_down`, a simulator can charge the cost of the interrupts.
    #[inline]
    fn shoot_down(&self, cpu: CpuId) {
        let _ = cpu;
    }

    /// The engine calls `link_leaf` after a task put a leaf table into the tree of address space number
    /// `space`. `start` is the first address that the leaf table covers. The leaf table's words begin at
    /// `words` in the host's memory, in x86-64's format. Implement `link_leaf` if the host's processor walks
    /// the leaf tables itself.
    ///
    /// No hook reports huge pages, so a host whose processor walks leaf tables must not use huge pages.
    /// Another CPU may fill words of the leaf table before `link_leaf` is called, and its access to the page
    /// then faults once more. Under V0 and V3, calls of `link_leaf` and [`unlink_leaf`](Self::unlink_leaf)
    /// may come in a wrong order, because writers do not wait for faults.
    #[inline]
    fn link_leaf(&self, cpu: CpuId, space: u32, start: u64, words: *const AtomicU64) {
        let _ = (cpu, space, start, words);
    }

    /// The engine calls `unlink_leaf` after an unmap took a leaf table out of the tree of address space
    /// number `space`. `start` is the first address that the leaf table covers. Before the engine reuses the
    /// leaf table, the engine calls [`shoot_down`](Self::shoot_down).
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

/// A cache line that several CPUs write. This enum has no values for the lines of platform locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Line {
    /// The line of mmap_sem, the reader-writer lock over all areas of an address space.
    MmapLock {
        /// Number of the address space.
        space: u32,
    },
    /// The line of one area's own lock.
    AreaLock {
        /// Number of the area.
        area: u32,
    },
    /// The line of an address space's shared counters of pages. Under R1p, the count of anonymous pages has
    /// its own line. A host may treat the lines `Rss` and [`MmapLock`](Self::MmapLock) as one line.
    Rss {
        /// Number of the address space.
        space: u32,
    },
    /// The line of the count of anonymous resident pages under R1p.
    AnonRss {
        /// Number of the address space.
        space: u32,
    },
    /// A cache line of eight words of a page table.
    Words {
        /// Number of the table.
        table: u32,
        /// The index of any word on this line, divided by eight.
        line: u32,
    },
    /// The line of a frame's reference count. The engine does not pass this line to `shares` yet.
    Frame(Pfn),
}

/// The contents of pages.
///
/// A host that only counts pages uses [`NoMemory`].
pub trait Memory {
    /// Clears the `2^order` frames of a block. After the clear, the task will first touch page number
    /// `target` of the block.
    fn clear(&self, cpu: CpuId, pfn: Pfn, order: pageset_core::Order, target: u32);

    /// Hints that `cpu` will probably clear the frame `pfn` next, because this frame is the next frame in a
    /// task's magazine. A host may prefetch the frame's first cache lines.
    #[inline]
    fn expect(&self, cpu: CpuId, pfn: Pfn) {
        let _ = (cpu, pfn);
    }

    /// Copies one frame.
    fn copy(&self, cpu: CpuId, from: Pfn, to: Pfn);

    /// Saves a frame's contents in a swap slot, which is a place of the host for the contents of one page.
    /// Returns the swap slot's number, which is below 2^40. The new swap slot has one user. The default
    /// `save` returns `None`, and the engine then cannot reclaim pages.
    fn save(&self, cpu: CpuId, pfn: Pfn) -> Option<u64> {
        let _ = (cpu, pfn);
        None
    }

    /// Copies the contents of a swap slot back into a frame. The number of the swap slot's users does not
    /// change.
    fn restore(&self, cpu: CpuId, slot: u64, pfn: Pfn) {
        let _ = (cpu, slot, pfn);
    }

    /// Adds a user to a swap slot. The engine calls `share_slot` when a fork copies the page-table word of a
    /// reclaimed page.
    fn share_slot(&self, slot: u64) {
        let _ = slot;
    }

    /// Removes one user of a swap slot. The host may reuse a swap slot that has no user left.
    fn drop_slot(&self, slot: u64) {
        let _ = slot;
    }
}

/// A memory without contents, for programs that only count pages or run in virtual time.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMemory;

impl Memory for NoMemory {
    #[inline]
    fn clear(&self, _: CpuId, _: Pfn, _: pageset_core::Order, _: u32) {}

    #[inline]
    fn copy(&self, _: CpuId, _: Pfn, _: Pfn) {}
}
