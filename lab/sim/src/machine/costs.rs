//! The costs of a simulated CPU's single operations, each with its source.

use serde::{Deserialize, Serialize};

use crate::time::Span;

/// The cost of one operation: nanoseconds, and the source of the number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Nanoseconds, with a fraction.
    pub ns: f64,
    /// Source of the number, such as "measured by pageset bench machine", the title of a publication, "fitted
    /// on …", or "guess: why".
    pub source: String,
}

/// Costs of one kind of access, by the place of the data: a cache or memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByLevel {
    /// Cost in nanoseconds if the CPU's own caches (L1, L2) have the data.
    pub near_ns: f64,
    /// Cost in nanoseconds if the last-level cache has the data.
    pub shared_ns: f64,
    /// Cost in nanoseconds if the data is in the own caches (L1, L2) of another core under the same
    /// last-level cache. For a core that is farther away, the simulation multiplies `core_ns` by the cost of
    /// a cache line from that core, and divides the product by `line_from_cache`. `core_ns` applies to data
    /// only, not to metadata. Default: `memory_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_ns: Option<f64>,
    /// Cost in nanoseconds if the data is in no cache, and in memory of the CPU's own node.
    pub memory_ns: f64,
    /// Source of the numbers.
    pub source: String,
}

/// The layout of frame metadata in memory. The layout decides which cache lines a CPU waits for while it
/// holds a zone's lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrameLayout {
    /// Each frame has a line of its own, as in Linux. To take a block or to give a block back, a CPU pays for
    /// the line of the block's first frame. Each buddy that a free reads costs a further line.
    #[default]
    LinePerFrame,
    /// Several frames share a line, as in this project's tables, which have nine bytes for each frame. With
    /// shared lines, the metadata of a buddy is mostly on a line that the CPU already has.
    SharedLines,
}

impl FrameLayout {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The prices that a simulated CPU pays on a machine: for allocations, frees, locks, cache lines and touches
/// of memory. If the description of a cost begins with "Work", the cost does not include cache misses. The
/// simulation adds the cost of cache misses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// Work of one allocation: calling the allocator, choosing a zone, locking the page set, counting.
    pub alloc: Cost,
    /// Work of one free.
    pub free: Cost,
    /// Work under the zone lock for each block that a refill (or an allocation without page set) takes.
    pub take_block: Cost,
    /// Work under the zone lock for each block that a drain (or a free without page set) gives back. The work
    /// of merging with buddies is included.
    pub give_block: Cost,
    /// Work of taking and releasing an uncontended zone lock.
    pub zone_visit: Cost,
    /// Number of cache lines that move from CPU to CPU together with a zone's lock, because the lock protects
    /// them: free-list heads and counters. The simulation moves `zone_lines` cache lines together with the
    /// lock of an LRU list too.
    pub zone_lines: u32,
    /// Cost of touching a frame's metadata, which is one cache line.
    pub metadata: ByLevel,
    /// The layout of frame metadata. Default: one line for each frame, as in Linux.
    #[serde(default, skip_serializing_if = "FrameLayout::is_default")]
    pub frame_layout: FrameLayout,
    /// Limit of a node's memory bandwidth. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bandwidth: Option<MemoryBandwidth>,
    /// Factor that lengthens the work of a CPU while another hardware thread of its core works too.
    pub sibling_slowdown: Factor,
    /// Cost of clearing 4 KiB.
    pub clear_4k: ByLevel,
    /// Cost of reading 4 KiB.
    pub read_4k: ByLevel,
    /// Cost of copying 4 KiB that the core's own caches hold, without the time to read the 4 KiB. Default:
    /// the time to read 4 KiB from the core's own caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_4k: Option<Cost>,
    /// Cost of an atomic read-modify-write on a cache line that only this CPU has.
    pub atomic: Cost,
    /// Cost of a cache line that another hardware thread of the core wrote.
    pub line_from_sibling: Cost,
    /// Cost of a cache line that another core under the same last-level cache wrote.
    pub line_from_cache: Cost,
    /// Cost of a cache line that a core of the same node wrote, under another last-level cache.
    pub line_from_node: Cost,
    /// Cost of a cache line from another node's caches or memory, for several distances between nodes. For a
    /// distance between the distances of two entries, the simulation interpolates between the costs of both
    /// entries. For a distance larger than all entries, the last entry counts.
    pub line_from_distance: Vec<AtDistance>,
    /// Whether each move of a lock's line, or of a line of an allocator without locks, takes a random time,
    /// from an exponential distribution with the line's cost as its mean. If `lines_vary` is false, each move
    /// takes exactly the line's cost.
    #[serde(default)]
    pub lines_vary: bool,
    /// Work of passing a contended lock on, without moving the lock's cache line.
    pub lock_pass: Cost,
    /// Time from waking a sleeping CPU until the CPU runs.
    pub wakeup: Cost,
    /// Cost of one page fault, without allocating and clearing the page: entry into the kernel, page-table
    /// walk and return. Workloads themselves charge the cost `fault` for their page faults.
    pub fault: Cost,
}

/// Cost of a cache line from a node at a given distance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtDistance {
    /// Distance to the node, as in the firmware's table (10 is the CPU's own node).
    pub distance: u8,
    /// Cost of a cache line from a cache of the distant node, in nanoseconds.
    pub cache_ns: f64,
    /// Cost of a cache line from the memory of the distant node, in nanoseconds.
    pub memory_ns: f64,
    /// Source of the numbers.
    pub source: String,
}

/// Limit of a node's memory bandwidth, in bytes per nanosecond (GB/s).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryBandwidth {
    /// Bandwidth of reading memory.
    pub read_gb_per_s: f64,
    /// Bandwidth of clearing memory. A processor that fetches a line before it overwrites the line can clear
    /// with half of the memory's bandwidth.
    pub clear_gb_per_s: f64,
    /// Source of the numbers.
    pub source: String,
}

/// A factor, and the source of its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Factor {
    /// The factor. The factor 1 leaves a time as it is.
    pub factor: f64,
    /// Source of the number.
    pub source: String,
}

impl Cost {
    /// Returns the cost as a span of virtual time.
    #[must_use]
    pub fn span(&self) -> Span {
        Span::from_ns_f64(self.ns)
    }

    pub(super) fn check(&self, key: &str) -> Result<(), String> {
        check_ns(key, self.ns, &self.source)
    }
}

/// Largest cost that a machine file may have: one second, in nanoseconds.
const NS_MAX: f64 = 1e9;

/// The bandwidths that a machine file may have, in GB/s.
const GB_PER_S: std::ops::RangeInclusive<f64> = 0.001..=1e6;

fn check_ns(key: &str, ns: f64, source: &str) -> Result<(), String> {
    if !(0.0..=NS_MAX).contains(&ns) {
        return Err(format!("{key}: {ns} ns is out of range; use 0 to {NS_MAX:e}"));
    }
    if source.trim().is_empty() {
        return Err(format!(
            "{key}: source is empty; write where the number is from (\"measured by …\" or \"guess: why\")"
        ));
    }
    Ok(())
}

impl Costs {
    pub(super) fn check(&self) -> Result<(), String> {
        for (key, cost) in self.single() {
            cost.check(&format!("costs.{key}"))?;
        }
        if let Some(copy) = &self.copy_4k {
            copy.check("costs.copy_4k")?;
        }
        for (key, levels) in
            [("metadata", &self.metadata), ("clear_4k", &self.clear_4k), ("read_4k", &self.read_4k)]
        {
            let core_ns = levels.core_ns.into_iter();
            for ns in [levels.near_ns, levels.shared_ns, levels.memory_ns].into_iter().chain(core_ns) {
                check_ns(&format!("costs.{key}"), ns, &levels.source)?;
            }
            if key == "metadata" && levels.core_ns.is_some() {
                return Err(format!(
                    "costs.{key}: core_ns is only for data; for metadata, line_from_cache is used"
                ));
            }
        }
        for entry in &self.line_from_distance {
            check_ns("costs.line_from_distance", entry.cache_ns, &entry.source)?;
            check_ns("costs.line_from_distance", entry.memory_ns, &entry.source)?;
        }
        if let Some(bandwidth) = &self.memory_bandwidth {
            for gb_per_s in [bandwidth.read_gb_per_s, bandwidth.clear_gb_per_s] {
                if !GB_PER_S.contains(&gb_per_s) {
                    let (least, most) = (GB_PER_S.start(), GB_PER_S.end());
                    return Err(format!(
                        "costs.memory_bandwidth: {gb_per_s} GB/s is out of range; use {least} to {most}"
                    ));
                }
            }
            check_ns("costs.memory_bandwidth", 0.0, &bandwidth.source)?;
        }
        let ascending = |pair: &[AtDistance]| pair[0].distance < pair[1].distance;
        if !self.line_from_distance.windows(2).all(ascending) {
            return Err("costs.line_from_distance: entries must ascend in distance; sort them".to_owned());
        }
        let slowdown = self.sibling_slowdown.factor;
        if !(1.0..=100.0).contains(&slowdown) {
            return Err(format!("costs.sibling_slowdown: {slowdown} is out of range; use 1 to 100"));
        }
        if self.zone_lines > 64 {
            return Err(format!("costs.zone_lines: {} is out of range; use 0 to 64", self.zone_lines));
        }
        Ok(())
    }

    /// Returns the costs that are single numbers and have no default, each with its key in the file.
    pub fn single(&self) -> [(&'static str, &Cost); 12] {
        [
            ("alloc", &self.alloc),
            ("free", &self.free),
            ("take_block", &self.take_block),
            ("give_block", &self.give_block),
            ("zone_visit", &self.zone_visit),
            ("atomic", &self.atomic),
            ("line_from_sibling", &self.line_from_sibling),
            ("line_from_cache", &self.line_from_cache),
            ("line_from_node", &self.line_from_node),
            ("lock_pass", &self.lock_pass),
            ("wakeup", &self.wakeup),
            ("fault", &self.fault),
        ]
    }

    /// Returns two costs of a line from a node at the distance `distance`: from the node's cache, and from
    /// the node's memory.
    pub(crate) fn at_distance(&self, distance: u8) -> (Span, Span) {
        let entries = &self.line_from_distance;
        let local = (10.0, self.line_from_node.ns, self.metadata.memory_ns);
        let point = |entry: &AtDistance| (f64::from(entry.distance), entry.cache_ns, entry.memory_ns);
        let wanted = f64::from(distance);
        let below = entries.iter().map(point).rfind(|entry| entry.0 <= wanted).unwrap_or(local);
        let above = entries.iter().map(point).find(|entry| entry.0 >= wanted).unwrap_or(below);
        let share = if above.0 > below.0 { (wanted - below.0) / (above.0 - below.0) } else { 0.0 };
        let between = |low: f64, high: f64| Span::from_ns_f64(low + (high - low) * share);
        (between(below.1, above.1), between(below.2, above.2))
    }
}
