//! The CPU that changed a cache line last, and the time of that change. The counters `line_transfers` and
//! `contended_lines` use the CPU and the time. The atomics here are the language's own, so the feature
//! `observed` and the model checkers do not see them.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pageset_core::CpuId;

/// The last change of a line.
#[derive(Debug)]
#[cfg_attr(feature = "alloc", derive(zerocopy::FromZeros))]
pub(crate) struct LastChange {
    /// The number of the CPU, plus 1. 0 means that no CPU changed the line.
    cpu: AtomicU32,
    /// How often the pageblock changed its set.
    moves: AtomicU32,
    at_ns: AtomicUsize,
}

impl LastChange {
    /// A line that no CPU has changed.
    pub(crate) const fn none() -> Self {
        Self { cpu: AtomicU32::new(0), moves: AtomicU32::new(0), at_ns: AtomicUsize::new(0) }
    }

    /// Notes that a CPU puts the pageblock into another set.
    pub(crate) fn note_move(&self) {
        self.moves.fetch_add(1, Relaxed);
    }

    /// Forgets the changes of sets that the constructor of the allocator made.
    pub(crate) fn forget_moves(&self) {
        self.moves.store(0, Relaxed);
    }

    pub(crate) fn moves(&self) -> usize {
        self.moves.load(Relaxed) as usize
    }

    /// Notes that a CPU changes the line. If another CPU made the last change, returns how long ago that was.
    pub(crate) fn note(&self, cpu: CpuId, now_ns: usize) -> Option<usize> {
        let cpu = cpu.0.wrapping_add(1);
        let before = self.cpu.swap(cpu, Relaxed);
        // A CPU notes a change a little after it has made the change. So the times of two CPUs may be in the
        // wrong order, and only their distance counts.
        let passed_ns = now_ns.abs_diff(self.at_ns.swap(now_ns, Relaxed));
        (before != 0 && before != cpu).then_some(passed_ns)
    }
}
