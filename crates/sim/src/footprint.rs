//! Which cache has a frame: by who touched it last, and how much that CPU touched since.
//!
//! Each CPU counts the lines it touches. A frame's data and its metadata each remember their last toucher and that CPU's
//! count. If the CPU has touched less than a cache's size since, they are taken to be in that cache. This is the reuse
//! distance of an ideal fully associative cache; what is not allocator pages (the workload's own data) counts only if
//! the workload says so.

use pageset_core::{CpuId, Pfn};

use crate::engine::Engine;
use crate::machine::{Machine, Near};
use crate::outcome::CacheCounts;

/// Bytes of a cache line.
pub(crate) const LINE_BYTES: u64 = 64;
/// Bits of a mark that hold the count of lines.
const COUNT_BITS: u32 = 48;
const COUNT: u64 = (1 << COUNT_BITS) - 1;

/// What is touched.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Touched<'p> {
    /// The frame's metadata: one line, its whole latency is waited for.
    Metadata,
    /// Metadata: one line, fetched together with those of other frames.
    MetadataInBulk,
    /// So many lines of the frame's data (or of the block's that begins there), fetched ahead; costs per line from
    /// near caches, the shared cache, memory.
    Data(u64, &'p [u64; 3]),
}

/// Where frames were touched last.
pub(crate) struct Footprint {
    /// Of data and of metadata: (CPU + 1) above, that CPU's count of lines below; 0: never touched.
    marks: Vec<[u64; 2]>,
    /// Lines in the caches that belong to a core, divided among its threads.
    near_lines: u64,
    /// The same and a share of the last-level cache: that of a CPU where most CPUs of the run share one.
    shared_lines: u64,
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
        Self {
            // Zeroed memory of the system: it takes pages only where it is written.
            marks: vec![[0; 2]; machine.memory.end() as usize],
            near_lines: lines(slice.all_kib - slice.last_level_kib),
            shared_lines: lines(slice.all_kib - slice.last_level_kib + shared_kib),
            frames_per_node: (machine.memory.end() / u64::from(machine.topology.nodes)).max(1),
        }
    }

    /// The running CPU touches a frame. Returns what that costs.
    #[inline]
    pub(crate) fn touch(&mut self, engine: &Engine, pfn: Pfn, touched: Touched<'_>) -> u64 {
        let prices = &engine.prices;
        let (which, lines, levels) = match (touched, &prices.metadata_in_bulk) {
            (Touched::Data(lines, levels), _) => (0, lines, levels),
            (Touched::MetadataInBulk, Some(levels)) => (1, 1, levels),
            (Touched::Metadata | Touched::MetadataInBulk, _) => (1, 1, &prices.metadata),
        };
        let (me, cpu) = (engine.cpu_index(), engine.cpu());
        let count = cpu.traffic.get() + lines;
        cpu.traffic.set(count);
        let Some(marks) = self.marks.get_mut(pfn.0 as usize) else { return 0 };
        let mark = u64::from(me + 1) << COUNT_BITS | count & COUNT;
        let before = std::mem::replace(&mut marks[which], mark);
        let mut tally = engine.tally.borrow_mut();
        let CacheCounts { near, shared, other_cpu, memory } = &mut tally.caches;
        let last = (before >> COUNT_BITS).checked_sub(1).map(|last| last as u32);
        let since = last
            .map_or(u64::MAX, |last| engine.cpus[last as usize].traffic.get().saturating_sub(before & COUNT));
        let (counter, line) = match last {
            Some(last) if since <= self.shared_lines => match (engine.near(last, me), touched) {
                (Near::Same | Near::Sibling, _) if since <= self.near_lines => (near, levels[0]),
                (Near::Same | Near::Sibling, _) => (shared, levels[1]),
                (Near::Cache, _) if since > self.near_lines => (shared, levels[1]),
                (_, Touched::Data(..)) => (other_cpu, levels[2]),
                (_, Touched::MetadataInBulk) if prices.metadata_in_bulk.is_some() => {
                    (other_cpu, levels[1] * engine.line(last, me) / prices.cache.max(1))
                }
                (_, Touched::Metadata | Touched::MetadataInBulk) => (other_cpu, engine.line(last, me)),
            },
            _ => {
                let node = (pfn.0 / self.frames_per_node).min(prices.nodes as u64 - 1) as usize;
                let (_, from_there) = prices.remote[usize::from(cpu.node) * prices.nodes + node];
                (memory, levels[2] * from_there / prices.metadata[2].max(1))
            }
        };
        *counter += lines;
        lines * line
    }
}

impl std::fmt::Debug for Footprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Footprint").field("frames", &self.marks.len()).finish_non_exhaustive()
    }
}
