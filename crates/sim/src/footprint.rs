//! Which cache has a frame: by who touched it last, and how much that CPU touched since.
//!
//! Each CPU counts the lines it touches. A frame's data and its metadata each remember their last toucher and that CPU's
//! count. If the CPU has touched less than a cache's size since, they are taken to be in that cache. This is the reuse
//! distance of an ideal fully associative cache; what is not allocator pages (the workload's own data) counts only if
//! the workload says so.

use pageset_core::Pfn;

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
    /// The same and a CPU's share of the last-level cache.
    shared_lines: u64,
    frames_per_node: u64,
}

impl Footprint {
    pub(crate) fn of(machine: &Machine) -> Self {
        let slice = machine.topology.cache_slice();
        let lines = |kib: u32| u64::from(kib) * 1024 / LINE_BYTES;
        Self {
            // Zeroed memory of the system: it takes pages only where it is written.
            marks: vec![[0; 2]; machine.memory.end() as usize],
            near_lines: lines(slice.all_kib - slice.last_level_kib),
            shared_lines: lines(slice.all_kib),
            frames_per_node: (machine.memory.end() / u64::from(machine.topology.nodes)).max(1),
        }
    }

    /// The running CPU touches a frame. Returns what that costs.
    #[inline]
    pub(crate) fn touch(&mut self, engine: &Engine, pfn: Pfn, touched: Touched<'_>) -> u64 {
        let (which, lines, levels) = match touched {
            Touched::Data(lines, levels) => (0, lines, levels),
            Touched::Metadata => (1, 1, &engine.prices.metadata),
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
                (_, Touched::Metadata) => (other_cpu, engine.line(last, me)),
                (_, Touched::Data(..)) => (other_cpu, levels[2]),
            },
            _ => {
                let prices = &engine.prices;
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
