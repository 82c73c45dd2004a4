//! Converts the costs in a machine file to picoseconds.

use crate::footprint::LINE_BYTES;
use crate::machine::{ByLevel, FrameLayout, Machine};

/// Number of fractional bits of [`Processor::slowdown`](crate::engine::Processor::slowdown).
pub(crate) const SLOWDOWN_BITS: u32 = 8;

/// The costs of operations on a machine, in picoseconds.
#[derive(Debug)]
pub(crate) struct Prices {
    pub(crate) alloc: u64,
    pub(crate) free: u64,
    pub(crate) take_block: u64,
    pub(crate) give_block: u64,
    pub(crate) zone_visit: u64,
    pub(crate) zone_lines: u64,
    /// Costs of one metadata line: from the core's own caches, from the last-level cache, and from memory.
    pub(crate) metadata: [u64; 3],
    pub(crate) frame_layout: FrameLayout,
    /// Cost of clearing one line.
    pub(crate) clear: DataPrices,
    /// Cost of reading or writing one line.
    pub(crate) read: DataPrices,
    /// Cost of copying one line, without the cost of reading the line.
    pub(crate) copy: u64,
    pub(crate) atomic: u64,
    pub(crate) sibling: u64,
    pub(crate) cache: u64,
    pub(crate) node: u64,
    /// For each pair of nodes, row by row: the cost of a line from the second node's cache, and the cost of a
    /// line from the second node's memory.
    pub(crate) remote: Box<[(u64, u64)]>,
    pub(crate) nodes: usize,
    /// Costs of the planes (networks between groups of nodes), if the machine has planes.
    pub(crate) planes: Option<PlanePrices>,
    pub(crate) lock_pass: u64,
    pub(crate) wakeup: u64,
    /// The value of [`Processor::slowdown`](crate::engine::Processor::slowdown) if several hardware threads
    /// of a core have bodies.
    pub(crate) slowdown: u64,
}

/// Costs of one line of data, in picoseconds.
#[derive(Debug)]
pub(crate) struct DataPrices {
    /// Costs of the line: from the core's own caches, from the last-level cache, and from memory.
    pub(crate) levels: [u64; 3],
    /// Cost to fetch the line from the private caches of another core, if both cores share a last-level
    /// cache. `None` if a line from another core costs as much as a line from memory.
    pub(crate) core: Option<u64>,
    /// Time that memory is busy with the line, in picoseconds; 0 if the bandwidth is not known.
    pub(crate) service: u64,
}

/// Costs of a plane (one of the parallel networks between nodes), in picoseconds.
#[derive(Debug)]
pub(crate) struct PlanePrices {
    /// Number of nodes of one brick (group of nodes). CPUs of one brick exchange lines without using a plane.
    pub(crate) brick_nodes: u16,
    /// Time that one moving cache line occupies the plane.
    line: u64,
    /// Time that one request for a line occupies the plane.
    request: u64,
}

impl PlanePrices {
    /// Returns the time that a moving line occupies the plane while `waiting` CPUs wait for lines. The time
    /// includes the requests of the waiting CPUs, which use the plane too.
    pub(crate) fn busy(&self, waiting: u64) -> u64 {
        self.line.saturating_add(self.request.saturating_mul(waiting))
    }
}

/// The number of lines of 64 bytes in 4 KiB. Machine files give costs for 4 KiB.
const LINES_OF_4K: f64 = 64.0;

impl Prices {
    pub(crate) fn of(machine: &Machine) -> Self {
        let costs = &machine.costs;
        let levels = |levels: &ByLevel| {
            [levels.near_ns, levels.shared_ns, levels.memory_ns].map(|ns| (ns * 1000.0).round() as u64)
        };
        let bandwidth = costs.memory_bandwidth.as_ref();
        let data = |of_4k: &ByLevel, gb_per_s: Option<f64>| {
            let of_line = |ns: f64| (ns * 1000.0 / LINES_OF_4K).round() as u64;
            DataPrices {
                levels: [of_4k.near_ns, of_4k.shared_ns, of_4k.memory_ns].map(of_line),
                core: of_4k.core_ns.map(of_line),
                service: gb_per_s.map_or(0, |rate| (LINE_BYTES as f64 * 1000.0 / rate).round() as u64),
            }
        };
        let nodes = machine.topology.nodes as usize;
        let distances = &machine.topology.distances;
        let remote = distances.iter().map(|distance| {
            let (cache, memory) = costs.at_distance(*distance);
            (cache.0, memory.0)
        });
        Self {
            alloc: costs.alloc.span().0,
            free: costs.free.span().0,
            take_block: costs.take_block.span().0,
            give_block: costs.give_block.span().0,
            zone_visit: costs.zone_visit.span().0,
            zone_lines: costs.zone_lines.into(),
            metadata: levels(&costs.metadata),
            frame_layout: costs.frame_layout,
            clear: data(&costs.clear_4k, bandwidth.map(|most| most.clear_gb_per_s)),
            read: data(&costs.read_4k, bandwidth.map(|most| most.read_gb_per_s)),
            copy: {
                let copy_ns = costs.copy_4k.as_ref().map_or(costs.read_4k.near_ns, |copy| copy.ns);
                (copy_ns * 1000.0 / LINES_OF_4K).round() as u64
            },
            atomic: costs.atomic.span().0,
            sibling: costs.line_from_sibling.span().0,
            cache: costs.line_from_cache.span().0,
            node: costs.line_from_node.span().0,
            remote: remote.collect(),
            nodes,
            planes: machine.planes.as_ref().map(|planes| PlanePrices {
                brick_nodes: planes.brick_nodes as u16,
                line: planes.line.span().0,
                request: planes.request.as_ref().map_or(0, |request| request.span().0),
            }),
            lock_pass: costs.lock_pass.span().0,
            wakeup: costs.wakeup.span().0,
            slowdown: ((costs.sibling_slowdown.factor - 1.0) * f64::from(1 << SLOWDOWN_BITS)).round() as u64,
        }
    }
}
