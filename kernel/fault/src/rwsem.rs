//! A reader-writer lock in one word, like Linux's mmap_sem. A reader takes the lock with one atomic operation
//! and releases the lock with a second atomic operation. A waiting writer keeps new readers out.

use crate::atomic::{AtomicU64, Ordering};
use crate::stats::LockStats;
use crate::world::{Line, World};
use pageset_core::CpuId;

const WRITER: u64 = 1 << 63;

/// A reader-writer lock. Each caller passes the cache line that the lock is on, for [`World::shares`].
#[derive(Debug, Default)]
pub(crate) struct RwSem {
    /// The number of readers, and the bit [`WRITER`], which is set while a writer waits for the lock or holds
    /// the lock.
    word: AtomicU64,
}

impl RwSem {
    pub(crate) fn new() -> Self {
        Self { word: AtomicU64::new(0) }
    }

    /// Tries to take the lock as a reader. Returns `false` if a writer waits for the lock or holds the lock.
    #[inline]
    pub(crate) fn try_read<W: World>(&self, world: &W, cpu: CpuId, line: Line) -> bool {
        world.shares(cpu, line);
        if self.word.fetch_add(1, Ordering::Acquire) & WRITER == 0 {
            return true;
        }
        self.end_read(world, cpu, line);
        false
    }

    /// Takes the lock as a reader. Waits while a writer waits for the lock or holds the lock.
    #[inline]
    pub(crate) fn read<W: World>(&self, world: &W, cpu: CpuId, line: Line, stats: &mut LockStats) {
        stats.acquired += 1;
        if !self.try_read(world, cpu, line) {
            self.read_slow(world, cpu, line, stats);
        }
    }

    #[cold]
    fn read_slow<W: World>(&self, world: &W, cpu: CpuId, line: Line, stats: &mut LockStats) {
        let start_ns = world.now_ns(cpu);
        stats.contended += 1;
        loop {
            while self.word.load(Ordering::Relaxed) & WRITER != 0 {
                world.relax(cpu);
            }
            if self.try_read(world, cpu, line) {
                break;
            }
        }
        stats.wait_ns += world.now_ns(cpu).saturating_sub(start_ns);
    }

    /// Releases the lock of a reader.
    #[inline]
    pub(crate) fn end_read<W: World>(&self, world: &W, cpu: CpuId, line: Line) {
        world.shares(cpu, line);
        let before = self.word.fetch_sub(1, Ordering::Release);
        debug_assert_ne!(before & !WRITER, 0, "a reader leaves, and none is inside");
    }

    /// Takes the lock as the writer: keeps new readers out, and then waits until all readers have released
    /// the lock.
    pub(crate) fn write<W: World>(&self, world: &W, cpu: CpuId, line: Line) {
        loop {
            world.shares(cpu, line);
            if self.word.fetch_or(WRITER, Ordering::Acquire) & WRITER == 0 {
                break;
            }
            while self.word.load(Ordering::Relaxed) & WRITER != 0 {
                world.relax(cpu);
            }
        }
        while self.word.load(Ordering::Acquire) != WRITER {
            world.relax(cpu);
        }
    }

    /// Releases the lock of the writer.
    pub(crate) fn end_write<W: World>(&self, world: &W, cpu: CpuId, line: Line) {
        world.shares(cpu, line);
        let before = self.word.fetch_and(!WRITER, Ordering::Release);
        debug_assert_ne!(before & WRITER, 0, "the writer leaves, and none is inside");
    }
}
