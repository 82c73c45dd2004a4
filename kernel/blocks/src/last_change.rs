//! Who changed a line last, and when: for laboratories, which count how often CPUs meet there. Nobody observes it: it is not part
//! of what happens.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pageset_core::CpuId;

/// The last change of a line.
#[derive(Debug)]
#[cfg_attr(feature = "alloc", derive(zerocopy::FromZeros))]
pub(crate) struct LastChange {
    /// The CPU, plus 1; 0 if there was no change.
    cpu: AtomicU32,
    /// Times that the pageblock changed its set.
    moves: AtomicU32,
    at_ns: AtomicUsize,
}

impl LastChange {
    /// A line that nobody has changed.
    pub(crate) const fn none() -> Self {
        Self { cpu: AtomicU32::new(0), moves: AtomicU32::new(0), at_ns: AtomicUsize::new(0) }
    }

    /// A CPU puts the pageblock into another set.
    pub(crate) fn note_move(&self) {
        self.moves.fetch_add(1, Relaxed);
    }

    pub(crate) fn moves(&self) -> usize {
        self.moves.load(Relaxed) as usize
    }

    /// A CPU changes the line. Returns how long ago another one did, if that was the last change.
    pub(crate) fn note(&self, cpu: CpuId, now_ns: usize) -> Option<usize> {
        let cpu = cpu.0.wrapping_add(1);
        let before = self.cpu.swap(cpu, Relaxed);
        // A CPU may note its change a little later than it made it: then another one seems to have been before.
        let passed_ns = now_ns.abs_diff(self.at_ns.swap(now_ns, Relaxed));
        (before != 0 && before != cpu).then_some(passed_ns)
    }
}
