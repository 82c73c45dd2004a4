//! The format of machine files.

use serde::Deserialize;

use super::{Caches, Costs, Machine, Planes, TickPhase, Topology, ZoneLayout};

/// The contents of a machine file that is not checked yet.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    title: String,
    /// The source of all numbers of the file that do not name their own source.
    source: String,
    #[serde(default = "kib_4")]
    page_bytes: u32,
    /// Default: the ticks of all CPUs are spread over the interval between two ticks.
    #[serde(default)]
    tick_phase: TickPhase,
    #[serde(default)]
    notes: Vec<String>,
    topology: TopologyTable,
    caches: Caches,
    memory: Memory,
    costs: Costs,
    /// Default: the machine connects its nodes without planes.
    planes: Option<Planes>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TopologyTable {
    sockets: u32,
    nodes_per_socket: u32,
    cores_per_node: u32,
    threads_per_core: u32,
    /// Default: all cores of a node share one cache.
    cores_per_cache: Option<u32>,
    /// Distances between nodes, one row per node. If `distances` has no rows, `levels` gives the distances.
    #[serde(default)]
    distances: Vec<Vec<u8>>,
    /// Groups of nodes in a hierarchy, e.g. bricks under routers. Two nodes that share no group have distance
    /// 20.
    #[serde(default)]
    levels: Vec<Level>,
}

/// A level of the hierarchy: groups of adjacent nodes, and the distance between nodes of one group.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Level {
    /// Number of nodes in one group. The number of nodes in a group must be a multiple of the number of nodes
    /// in a group of the previous level.
    nodes: u32,
    /// Distance between two nodes of one group at this level that are in different groups at the previous
    /// level.
    distance: u8,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Memory {
    mib_per_node: u64,
    /// Whether the lowest 16 MiB are the zone `DMA`, and the rest of the lowest 4 GiB is the zone `DMA32`.
    #[serde(default = "yes")]
    dma_zones: bool,
}

const fn kib_4() -> u32 {
    4096
}

const fn yes() -> bool {
    true
}

/// Largest number of CPUs of a machine. Source: Linux's largest `NR_CPUS` for x86-64, 8192.
const CPUS_MAX: u32 = 8192;
/// Largest number of nodes of a machine. Source: the limit of `pageset-core`.
const NODES_MAX: u32 = 256;
/// Largest amount of memory: 64 TiB, in MiB. 46 address bits can address 64 TiB.
const MIB_MAX: u64 = 64 << 20;
/// Largest size of a cache: 4 GiB, in KiB.
const CACHE_KIB_MAX: u32 = 4 << 20;

pub(super) fn parse(text: &str) -> Result<Machine, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    if file.source.trim().is_empty() {
        return Err("source is empty; write where the machine's figures are from".to_owned());
    }
    if !file.page_bytes.is_power_of_two() || !(4096..=65_536).contains(&file.page_bytes) {
        return Err(format!("page_bytes: {} is not a page size; use 4096, 16384 or 65536", file.page_bytes));
    }
    let topology = topology(&file.topology, file.caches)?;
    if file.memory.mib_per_node == 0 || file.memory.mib_per_node > MIB_MAX / u64::from(topology.nodes) {
        return Err(format!(
            "memory.mib_per_node: {} for {} nodes; use at least 1, and at most {MIB_MAX} for all nodes together",
            file.memory.mib_per_node, topology.nodes
        ));
    }
    file.costs.check()?;
    file.planes.as_ref().map_or(Ok(()), Planes::check)?;
    if topology.nodes > 1 && file.costs.line_from_distance.is_empty() {
        return Err(
            "costs.line_from_distance is empty, but there are several nodes; give the cost of a line from \
                    another node, e.g. [[costs.line_from_distance]] distance = 20, cache_ns = …"
                .to_owned(),
        );
    }
    let bytes_per_node = file.memory.mib_per_node << 20;
    let memory = ZoneLayout::even(topology.nodes, bytes_per_node, file.page_bytes, file.memory.dma_zones);
    Ok(Machine {
        name: file.name,
        title: file.title,
        source: file.source,
        page_bytes: file.page_bytes,
        topology,
        memory,
        costs: file.costs,
        planes: file.planes,
        tick_phase: file.tick_phase,
        notes: file.notes,
    })
}

fn topology(table: &TopologyTable, caches: Caches) -> Result<Topology, String> {
    for (key, value, max) in [
        ("sockets", table.sockets, NODES_MAX),
        ("nodes_per_socket", table.nodes_per_socket, NODES_MAX),
        ("cores_per_node", table.cores_per_node, CPUS_MAX),
        ("threads_per_core", table.threads_per_core, 16),
        ("cores_per_cache", table.cores_per_cache.unwrap_or(1), CPUS_MAX),
    ] {
        if !(1..=max).contains(&value) {
            return Err(format!("topology.{key}: {value} is out of range; use 1 to {max}"));
        }
    }
    let nodes = table.sockets * table.nodes_per_socket;
    if nodes > NODES_MAX {
        return Err(format!("topology: {nodes} nodes; use at most {NODES_MAX}"));
    }
    let cpus = u64::from(nodes) * u64::from(table.cores_per_node) * u64::from(table.threads_per_core);
    if cpus > u64::from(CPUS_MAX) {
        return Err(format!("topology: {cpus} CPUs; use at most {CPUS_MAX}"));
    }
    let cores_per_cache = table.cores_per_cache.unwrap_or(table.cores_per_node);
    if !table.cores_per_node.is_multiple_of(cores_per_cache) {
        return Err(format!(
            "topology.cores_per_cache: {cores_per_cache} does not divide cores_per_node ({})",
            table.cores_per_node
        ));
    }
    for (key, kib) in [("l1d_kib", caches.l1d_kib), ("l2_kib", caches.l2_kib), ("l3_kib", caches.l3_kib)] {
        if kib > CACHE_KIB_MAX {
            return Err(format!("caches.{key}: {kib} is out of range; use 0 to {CACHE_KIB_MAX}"));
        }
    }
    Ok(Topology {
        sockets: table.sockets,
        nodes,
        cores_per_node: table.cores_per_node,
        threads_per_core: table.threads_per_core,
        cores_per_cache,
        caches,
        distances: distances(table, nodes)?,
    })
}

fn distances(table: &TopologyTable, nodes: u32) -> Result<Vec<u8>, String> {
    if !table.distances.is_empty() {
        let is_square = table.distances.iter().all(|row| row.len() == nodes as usize);
        if table.distances.len() != nodes as usize || !is_square {
            return Err(format!("topology.distances: need {nodes} rows of {nodes} numbers"));
        }
        return Ok(table.distances.concat());
    }
    let mut covered = 1;
    for level in &table.levels {
        if level.nodes <= covered || !level.nodes.is_multiple_of(covered) || level.distance <= 10 {
            return Err(format!(
                "topology.levels: a group of {} nodes at distance {}; each group must be a multiple of the one \
                 before, and its distance above 10",
                level.nodes, level.distance
            ));
        }
        covered = level.nodes;
    }
    let between = |one: u32, other: u32| {
        let group = table.levels.iter().find(|level| one / level.nodes == other / level.nodes);
        if one == other { 10 } else { group.map_or(20, |level| level.distance) }
    };
    Ok((0..nodes).flat_map(|one| (0..nodes).map(move |other| between(one, other))).collect())
}
