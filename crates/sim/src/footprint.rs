//! Which cache has a frame: that of the CPU that touched it last, if that CPU has not touched too much else since.
//!
//! A frame's data and its metadata each remember who touched them last, and when; that CPU's [`Recency`] knows which of its
//! caches still holds what it used then. This is an ideal fully associative cache that evicts what was used least recently;
//! what is not allocator pages (the workload's own data) counts only if the workload says so.

use pageset_core::{CpuId, Pfn};

use crate::charge::DataPrices;
use crate::engine::Engine;
use crate::machine::{Machine, Near};
use crate::outcome::CacheCounts;
use crate::recency::{Held, Recency};

/// Bytes of a cache line.
pub(crate) const LINE_BYTES: u64 = 64;
/// Who touched something last, when, and how many lines of it: one word, 0 if nobody did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mark(u64);

/// Bits of a mark's lines. Of blocks of more than 8 MiB so much counts.
const LINES_BITS: u32 = 17;
/// Most lines that a mark has room for.
const LINES_MAX: u64 = (1 << LINES_BITS) - 1;
/// Bits of its CPU, plus one: there are at most 8192.
const CPU_BITS: u32 = 14;

impl Mark {
    fn new(cpu: u32, step: u64, lines: u64) -> Self {
        debug_assert!(lines <= LINES_MAX, "the caches must count what the mark counts");
        Self((step << CPU_BITS | u64::from(cpu + 1)) << LINES_BITS | lines)
    }

    /// CPU, step, lines.
    fn parts(self) -> Option<(u32, u64, u64)> {
        let above = self.0 >> LINES_BITS;
        let cpu = (above & ((1 << CPU_BITS) - 1)).checked_sub(1)?;
        Some((cpu as u32, above >> CPU_BITS, self.0 & LINES_MAX))
    }
}

/// What is touched.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Touched<'p> {
    /// The frame's metadata: one line, its whole latency is waited for.
    Metadata,
    /// Metadata: one line, fetched together with those of other frames.
    MetadataInBulk,
    /// So many lines of the frame's data (or of the block's that begins there), fetched ahead.
    Data(u64, &'p DataPrices),
}

/// Where frames were touched last.
pub(crate) struct Footprint {
    /// Of data and of metadata, as integers: a vector of those comes zeroed from the system.
    marks: Vec<[u64; 2]>,
    /// What each CPU's caches hold.
    recent: Box<[Recency]>,
    frames_per_node: u64,
}

impl Footprint {
    /// For a run on the machine's first `cpus` CPUs: idle CPUs leave the last-level cache to the others.
    pub(crate) fn of(machine: &Machine, cpus: u32) -> Self {
        let topology = &machine.topology;
        let slice = topology.cache_slice();
        let last_level = (0..cpus).map(|cpu| topology.cache_of(CpuId(cpu)));
        let mut sharers = vec![0_u32; machine.cpus() as usize];
        last_level.for_each(|cache| sharers[cache as usize] += 1);
        let sharers_max = sharers.into_iter().max().unwrap_or(1).max(1);
        let shared_kib = topology.caches.l3_kib / sharers_max;
        let lines = |kib: u32| u64::from(kib) * 1024 / LINE_BYTES;
        // Of the caches that belong to a core, a thread's part; of the last level, that of a CPU where most CPUs of the
        // run share one.
        let near_kib = slice.all_kib - slice.last_level_kib;
        Self {
            // Zeroed memory of the system: it takes pages only where it is written.
            marks: vec![[0; 2]; machine.memory.end() as usize],
            recent: (0..cpus).map(|_| Recency::new(lines(near_kib), lines(near_kib + shared_kib))).collect(),
            frames_per_node: (machine.memory.end() / u64::from(machine.topology.nodes)).max(1),
        }
    }

    /// The running CPU touches a frame. Returns what that costs.
    #[inline]
    pub(crate) fn touch(&mut self, engine: &Engine, pfn: Pfn, touched: Touched<'_>) -> u64 {
        let prices = &engine.prices;
        let (which, lines) = match touched {
            Touched::Data(lines, _) => (0, lines),
            Touched::Metadata | Touched::MetadataInBulk => (1, 1),
        };
        let (me, cpu) = (engine.cpu_index(), engine.cpu());
        let Some(marks) = self.marks.get_mut(pfn.0 as usize) else { return 0 };
        let last = Mark(marks[which]).parts().map(|(last, step, lines)| {
            let recent = &mut self.recent[last as usize];
            let held = recent.holder(step);
            recent.remove(step, lines);
            (engine.near(last, me), held, last)
        });
        let held_lines = lines.min(LINES_MAX);
        marks[which] = Mark::new(me, self.recent[me as usize].push(held_lines), held_lines).0;
        let levels = match (touched, &prices.metadata_in_bulk) {
            (Touched::Data(_, data), _) => &data.levels,
            (Touched::MetadataInBulk, Some(levels)) => levels,
            (Touched::Metadata | Touched::MetadataInBulk, _) => &prices.metadata,
        };
        // From another core: what a line costs from one under the same last level, and farther away in proportion.
        let from = |last| engine.line(last, me);
        let other = |last| match touched {
            Touched::Data(_, DataPrices { core: Some(core), .. }) => {
                in_proportion(*core, from(last), prices.cache)
            }
            Touched::Data(_, DataPrices { core: None, .. }) => levels[2],
            Touched::MetadataInBulk if prices.metadata_in_bulk.is_some() => {
                in_proportion(levels[1], from(last), prices.cache)
            }
            Touched::Metadata | Touched::MetadataInBulk => from(last),
        };
        let mut tally = engine.tally.borrow_mut();
        let CacheCounts { near, shared, other_core, other_cache, memory } = &mut tally.caches;
        let (counter, line) = match last {
            Some((Near::Same | Near::Sibling, Held::Near, _)) => (near, levels[0]),
            Some((Near::Same | Near::Sibling | Near::Cache, Held::Shared, _)) => (shared, levels[1]),
            Some((Near::Cache, Held::Near, last)) => (other_core, other(last)),
            Some((Near::Node | Near::Remote, Held::Near | Held::Shared, last)) => (other_cache, other(last)),
            Some((_, Held::Nowhere, _)) | None => {
                let node = (pfn.0 / self.frames_per_node).min(prices.nodes as u64 - 1) as usize;
                let (_, from_there) = prices.remote[usize::from(cpu.node) * prices.nodes + node];
                (memory, in_proportion(levels[2], from_there, prices.metadata[2]))
            }
        };
        *counter += lines;
        lines * line
    }
}

/// Longest time for one line, in picoseconds: a second. No machine file can make a sum of such times overflow.
const LINE_PS_MAX: u64 = 1_000_000_000_000;

/// `price` times as much as `from` is more than `near`, both for the same line; `price` if the near one costs nothing.
fn in_proportion(price: u64, from: u64, near: u64) -> u64 {
    let farther = (u128::from(price) * u128::from(from)).checked_div(u128::from(near));
    farther.map_or(price, |farther| farther.min(LINE_PS_MAX.into()) as u64)
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

    #[test]
    fn farther_lines_cost_in_proportion_and_never_overflow() {
        assert_eq!(in_proportion(400, 140, 70), 800);
        assert_eq!(in_proportion(400, 140, 0), 400, "a machine file may say that near lines cost nothing");
        let largest = 1_000_000_000_000;
        assert_eq!(in_proportion(largest, largest, 1), LINE_PS_MAX);
    }
}
