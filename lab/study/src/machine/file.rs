//! Measures a machine, and writes the results as a machine file.

use anyhow::Result;

use super::allocator::AllocatorCosts;
use super::cores::{self, CopyCosts};
use super::lines;
use super::shape::Shape;

/// Number of cache lines that move from CPU to CPU together with a zone's lock: heads of free lists, and
/// counters. Guess.
const ZONE_LINES: u32 = 2;

/// Measures this machine, and returns the text of its machine file.
pub(super) fn measured(shape: &Shape) -> Result<String> {
    let costs = AllocatorCosts::measure(shape)?;
    let copy = cores::copy(shape)?;
    let atomic = lines::atomic();
    let turn = lines::turn();
    let line = turn.map_or(60.0, |turn| (turn - atomic).max(0.0));
    let line_source = match turn {
        Some(_) => "measured by pageset bench machine: two CPUs write a line in turn",
        None => "guess: there is one CPU",
    };
    let wakeup = match turn {
        Some(_) => (lines::message()? - 2.0 * atomic - 2.0 * line).max(0.0),
        None => 3000.0,
    };
    // When a CPU passes a contended lock on, two cache lines of the lock and all cache lines of the zone
    // move.
    let lock_pass = (costs.contended_visit() - costs.visit - line * f64::from(2 + ZONE_LINES)).max(0.0);
    let fault = (lines::fault() - costs.clear[2]).max(0.0);
    let measured = |how: &str| format!("measured by pageset bench machine: {how}");
    let cost =
        |key: &str, ns: f64, source: &str| format!("{key} = {{ ns = {ns:.2}, source = \"{source}\" }}\n");
    let levels = |key: &str, ns: [f64; 3], source: &str| {
        format!("{key} = {{ {}, source = \"{source}\" }}\n", by_level(ns))
    };
    let [metadata_shared, metadata_memory] = costs.metadata;
    let mut text = header(shape, costs.last_level_kib);
    for part in [
        cost("alloc", costs.hit, &measured("half of an allocation and free that a page set serves")),
        cost("free", costs.hit, &measured("half of an allocation and free that a page set serves")),
        cost("take_block", costs.block, &measured("16384 pages allocated, then freed; half of the time")),
        cost("give_block", costs.block, &measured("16384 pages allocated, then freed; half of the time")),
        cost("zone_visit", costs.visit, &measured("16384 pages allocated, then freed; batch 15 and 127")),
        format!("# A guess: heads of free lists, counters.\nzone_lines = {ZONE_LINES}\n"),
        levels(
            "metadata",
            [0.0, metadata_shared, metadata_memory],
            &measured("cost per page beyond the cost in near caches, which other costs include"),
        ),
        "# Nine bytes of metadata per frame: adjacent frames share a cache line.\nframe_layout = \"shared-lines\"\n".to_owned(),
        sibling_slowdown(shape),
        levels("clear_4k", costs.clear, &measured("sweeps over sets of pages of three sizes")),
        read_and_copy(costs.read, copy, &measured),
        cost("atomic", atomic, &measured("fetch_add on an own line")),
        cost("line_from_sibling", line, line_source),
        cost("line_from_cache", line, line_source),
        cost("line_from_node", line, line_source),
        cost("lock_pass", lock_pass, &measured("two CPUs want one zone's lock; lines and work subtracted")),
        cost("wakeup", wakeup, &measured("a message to a polling thread; lines and atomics subtracted")),
        cost("fault", fault, &measured("first write to a page of new memory; clearing subtracted")),
        distances(shape, line, metadata_memory),
    ] {
        text.push_str(&part);
    }
    Ok(text)
}

/// Returns the costs of data by the place of the data, in the format of the machine file. If a distant place
/// was measured as cheaper than a nearer place, the distant place gets the cost of the nearer place.
fn by_level([near, shared, memory]: [f64; 3]) -> String {
    let [shared, memory] = [shared.max(near), memory.max(shared).max(near)];
    format!("near_ns = {near:.2}, shared_ns = {shared:.2}, memory_ns = {memory:.2}")
}

/// Returns the costs of reading by the place of the data, and the cost of copying without the time to read,
/// in the format of the machine file.
fn read_and_copy(read: [f64; 3], copy: Option<CopyCosts>, measured: &dyn Fn(&str) -> String) -> String {
    let sweeps = measured("sweeps over sets of pages of three sizes");
    let ([near, ..], levels) = (read, by_level(read));
    let Some(copy) = copy else {
        return format!("read_4k = {{ {levels}, source = \"{sweeps}\" }}\n");
    };
    let work = (copy.near - near).max(0.0);
    let from_core = (copy.from_core - work).max(near);
    let in_turn = measured("two CPUs copy the same pages in turn");
    format!(
        "read_4k = {{ {levels}, core_ns = {from_core:.2}, source = \"{sweeps}; {in_turn}, copying subtracted\" }}\n\
         copy_4k = {{ ns = {work:.2}, source = \"{in_turn}, each page a second time, minus reading\" }}\n"
    )
}

fn header(shape: &Shape, last_level_kib: u32) -> String {
    let Shape { nodes, threads_per_core, cpus_per_cache, .. } = shape;
    let title = shape.title.replace(['"', '\\'], "'");
    format!(
        "# Written by `pageset bench machine`. Costs are of this project's allocator in user space.\n\
         name = \"this-machine\"\n\
         title = \"{title}\"\n\
         source = \"/sys and /proc of this machine\"\n\
         \n\
         [topology]\n\
         sockets = {nodes}\n\
         nodes_per_socket = 1\n\
         cores_per_node = {}\n\
         threads_per_core = {threads_per_core}\n\
         cores_per_cache = {}\n\
         \n\
         [caches]\n\
         l1d_kib = {}\n\
         l2_kib = {}\n\
         # Measured: reads of up to this size are fast. The system reports {} KiB.\n\
         l3_kib = {}\n\
         \n\
         [memory]\n\
         mib_per_node = {}\n\
         \n\
         [costs]\n",
        cores_per_node(shape),
        cores_per_cache(cores_per_node(shape), cpus_per_cache / threads_per_core),
        shape.l1d_kib,
        shape.l2_kib,
        shape.l3_kib,
        last_level_kib,
        (shape.mib / u64::from(*nodes)).max(1),
    )
}

fn cores_per_node(shape: &Shape) -> u32 {
    (shape.cpus / shape.nodes / shape.threads_per_core).max(1)
}

/// Returns the number of cores that share a last-level cache. In a virtual machine, the numbers that the
/// system reports may contradict each other. If the reported number `told` does not divide the number of
/// cores of a node, the result is the number of all cores of the node.
fn cores_per_cache(cores_per_node: u32, told: u32) -> u32 {
    let told = told.clamp(1, cores_per_node);
    if cores_per_node.is_multiple_of(told) { told } else { cores_per_node }
}

fn sibling_slowdown(shape: &Shape) -> String {
    let (factor, source) = match shape.threads_per_core {
        1 => ("1.0", "one thread per core"),
        _ => ("1.6", "guess: two threads of a core do 1.25 times the work of one thread"),
    };
    format!("sibling_slowdown = {{ factor = {factor}, source = \"{source}\" }}\n")
}

fn distances(shape: &Shape, line: f64, memory: f64) -> String {
    if shape.nodes == 1 {
        return "line_from_distance = []\n".to_owned();
    }
    format!(
        "\n[[costs.line_from_distance]]\ndistance = 20\ncache_ns = {:.2}\nmemory_ns = {:.2}\n\
         source = \"guess: twice the cost within the node\"\n",
        2.0 * line,
        2.0 * memory
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_cores_fit_into_nodes() {
        assert_eq!(cores_per_cache(8, 4), 4);
        assert_eq!(cores_per_cache(6, 4), 6);
        assert_eq!(cores_per_cache(2, 0), 1);
        assert_eq!(cores_per_cache(2, 99), 2);
    }
}
