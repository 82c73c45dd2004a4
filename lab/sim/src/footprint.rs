//! Tells which cache has a frame's data. The CPU that touched the frame last has the data in its caches,
//! unless the CPU has since touched more data than its caches hold.
//!
//! A frame has two marks, one for its data and one for its metadata. A mark names the CPU of the last touch
//! and the time of the touch. The [`Recency`] of a CPU tells which of the CPU's caches still holds the lines
//! that the CPU last used at a given time. Caches are modelled as fully associative, and evict the least
//! recently used line. The model learns that a CPU touched a frame's data only from calls of the workload,
//! such as `touch`.

use pageset_core::{CpuId, Pfn};

use crate::machine::Machine;
use crate::prices::DataPrices;
use crate::recency::{Held, Recency};

/// Bytes of a cache line.
pub(crate) const LINE_BYTES: u64 = 64;
/// The last touch of a frame's data or metadata, packed into one word: the CPU, the step (its time), and the
/// number of touched cache lines. The word is 0 if no CPU touched the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mark(u64);

/// Number of bits of a [`Mark`] that hold the number of touched cache lines. A mark counts lines of less than
/// 8 MiB in all. A touch of more lines counts as [`LINES_MAX`] lines.
const LINES_BITS: u32 = 17;
/// Largest number of touched cache lines that a mark can count.
const LINES_MAX: u64 = (1 << LINES_BITS) - 1;
/// Number of bits of a mark that hold the CPU's number plus one. A machine has at most 8192 CPUs.
const CPU_BITS: u32 = 14;

impl Mark {
    fn new(cpu: u32, step: u64, lines: u64) -> Self {
        debug_assert!(lines <= LINES_MAX, "a mark must be able to count all touched lines");
        Self((step << CPU_BITS | u64::from(cpu + 1)) << LINES_BITS | lines)
    }

    /// The mark's CPU, step and number of lines. `None` if no CPU has touched the data.
    fn parts(self) -> Option<(u32, u64, u64)> {
        let above = self.0 >> LINES_BITS;
        let cpu = (above & ((1 << CPU_BITS) - 1)).checked_sub(1)?;
        Some((cpu as u32, above >> CPU_BITS, self.0 & LINES_MAX))
    }
}

/// The part of a frame that an access touches.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Touched<'p> {
    /// The frame's metadata, which is one cache line. The CPU waits for the line's whole latency.
    Metadata,
    /// Lines of the frame's data, or of the data of the block that begins with the frame. The CPU prefetches
    /// lines of data.
    Data(u64, &'p DataPrices),
}

impl Touched<'_> {
    /// Number of lines that the access touches.
    #[inline]
    pub(crate) fn lines(self) -> u64 {
        match self {
            Self::Data(lines, _) => lines,
            Self::Metadata => 1,
        }
    }
}

/// Records for each frame which CPU touched the frame last, and when. A `Footprint` also records, for each
/// CPU, the lines that the CPU's caches hold.
pub(crate) struct Footprint {
    /// For each frame, two packed [`Mark`]s: the last touch of its data, and the last touch of its metadata.
    /// The marks are plain integers, so that the operating system can provide a zeroed vector.
    marks: Vec<[u64; 2]>,
    /// The lines that each CPU's caches hold.
    recent: Box<[Recency]>,
    frames_per_node: u64,
}

impl Footprint {
    /// Makes a footprint for a run on the machine's first `cpus` CPUs. The other CPUs of the machine get no
    /// part of the last-level cache.
    pub(crate) fn of(machine: &Machine, cpus: u32) -> Self {
        let topology = &machine.topology;
        let slice = topology.cache_slice();
        let last_level = (0..cpus).map(|cpu| topology.cache_of(CpuId(cpu)));
        let mut sharers = vec![0_u32; machine.cpus() as usize];
        last_level.for_each(|cache| sharers[cache as usize] += 1);
        let sharers_max = sharers.into_iter().max().unwrap_or(1).max(1);
        let shared_kib = topology.caches.l3_kib / sharers_max;
        let lines = |kib: u32| u64::from(kib) * 1024 / LINE_BYTES;
        // Each hardware thread of the machine gets an equal part of the caches of its core. All CPUs of the
        // run get equal parts of last-level cache: the size of one cache, divided by the largest number of
        // the run's CPUs that share a cache.
        let near_kib = slice.all_kib - slice.last_level_kib;
        Self {
            // The operating system provides memory only for pages that are written.
            marks: vec![[0; 2]; machine.memory.end() as usize],
            recent: (0..cpus).map(|_| Recency::new(lines(near_kib), lines(near_kib + shared_kib))).collect(),
            frames_per_node: (machine.memory.end() / u64::from(machine.topology.nodes)).max(1),
        }
    }

    /// Records that `cpu` touches a frame. Returns the CPU of the previous touch, and the cache of that CPU
    /// that holds the frame. Returns `Some(None)` if no CPU has touched the frame before, and `None` if the
    /// machine has no such frame.
    #[inline]
    pub(crate) fn touch(&mut self, cpu: u32, pfn: Pfn, touched: Touched<'_>) -> Option<Option<(u32, Held)>> {
        let which = match touched {
            Touched::Data(..) => 0,
            Touched::Metadata => 1,
        };
        let mark = self.marks.get(pfn.0 as usize)?[which];
        let last = Self::cpu_of(mark).map(|last| (last, self.held(mark)));
        self.marks[pfn.0 as usize][which] = self.renew(mark, cpu, touched.lines());
        Some(last)
    }

    /// Returns the CPU that a mark names.
    #[inline]
    pub(crate) fn cpu_of(mark: u64) -> Option<u32> {
        Mark(mark).parts().map(|(cpu, ..)| cpu)
    }

    /// Returns which cache of the mark's CPU still holds the touched lines.
    #[inline]
    pub(crate) fn held(&self, mark: u64) -> Held {
        let held = Mark(mark).parts().map(|(cpu, step, _)| self.recent[cpu as usize].holder(step));
        held.unwrap_or(Held::Nowhere)
    }

    /// Records that `cpu` touches `lines` lines. `mark` is the mark of the lines before this touch. Returns
    /// the new mark of the lines.
    #[inline]
    pub(crate) fn renew(&mut self, mark: u64, cpu: u32, lines: u64) -> u64 {
        if let Some((last, step, lines)) = Mark(mark).parts() {
            self.recent[last as usize].remove(step, lines);
        }
        let lines = lines.min(LINES_MAX);
        Mark::new(cpu, self.recent[cpu as usize].push(lines), lines).0
    }

    /// Number of the node whose memory a frame is in, on a machine of `nodes` nodes.
    pub(crate) fn node(&self, pfn: Pfn, nodes: usize) -> usize {
        (pfn.0 / self.frames_per_node).min(nodes as u64 - 1) as usize
    }
}

impl std::fmt::Debug for Footprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Footprint").field("frames", &self.marks.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_has_room_for_the_largest_machine_and_block() {
        let largest = (8191, 1 << 32, LINES_MAX);
        assert_eq!(Mark::new(largest.0, largest.1, largest.2).parts(), Some(largest));
        assert_eq!(Mark::new(0, 1, 1).parts(), Some((0, 1, 1)));
        assert_eq!(Mark::default().parts(), None);
    }
}
