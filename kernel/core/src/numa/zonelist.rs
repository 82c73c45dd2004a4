//! Zonelists. A node's zonelist has all zones. The node's CPUs try the zones in the order of the zonelist
//! (spec §1.13).

use crate::{NodeId, ZoneId, ZoneKind};

/// Largest number of nodes: enough for an Altix with 512 CPUs, which has two CPUs per node.
pub(crate) const MAX_NODES: usize = 256;

/// The distances between nodes, from the caller's matrix. Without a matrix, the distance is 10 within a node
/// and 20 between nodes, as firmware reports by default.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Distances<'c> {
    pub(crate) matrix: Option<&'c [u8]>,
    pub(crate) nodes: usize,
}

impl Distances<'_> {
    fn between(&self, from: usize, to: usize) -> u32 {
        match self.matrix.and_then(|matrix| matrix.get(from * self.nodes + to)) {
            Some(distance) => u32::from(*distance),
            None if from == to => 10,
            None => 20,
        }
    }
}

/// The facts that determine the order of zones in zonelists.
pub(crate) trait Topology {
    /// Node and kind of each zone, in table order; `None` for a zone without memory.
    fn zones(&self) -> impl Iterator<Item = Option<(NodeId, ZoneKind)>>;
    /// Whether a node has CPUs. Among equally near nodes, zonelists prefer nodes without CPUs.
    fn has_cpus(&self, node: NodeId) -> bool;
}

/// Writes each node's zonelist into `lists`, one row per node, with all zones in each row. Zones without
/// memory come last.
pub(crate) fn fill_zonelists(lists: &mut [ZoneId], distances: Distances<'_>, topology: &impl Topology) {
    let zones = topology.zones().count();
    // For each node, how often the node was the first of its distance in another node's zonelist. Among
    // equally near nodes, the node with the smallest `load` comes next. So CPUs use the memory of equally
    // near nodes evenly.
    let mut load = [0_u16; MAX_NODES];
    for local in 0..distances.nodes {
        let row = &mut lists[local * zones..(local + 1) * zones];
        let mut used = [false; MAX_NODES];
        let mut filled = 0;
        let mut previous = local;
        while let Some(node) = next_node(local, &used, &load, distances, topology) {
            if node != local && distances.between(local, node) != distances.between(local, previous) {
                load[node] += 1;
            }
            used[node] = true;
            previous = node;
            for kind in ZoneKind::ALL.into_iter().rev() {
                for (id, zone) in topology.zones().enumerate() {
                    if zone == Some((NodeId(node as u16), kind)) {
                        row[filled] = ZoneId(id as u16);
                        filled += 1;
                    }
                }
            }
        }
        let empty = topology.zones().enumerate().filter(|(_, zone)| zone.is_none());
        for (slot, (id, _)) in row[filled..].iter_mut().zip(empty) {
            *slot = ZoneId(id as u16);
        }
    }
}

fn next_node(
    local: usize,
    used: &[bool; MAX_NODES],
    load: &[u16; MAX_NODES],
    distances: Distances<'_>,
    topology: &impl Topology,
) -> Option<usize> {
    let has_memory = |node: usize| topology.zones().flatten().any(|(at, _)| at.index() == node);
    if !used[local] && has_memory(local) {
        return Some(local);
    }
    (0..distances.nodes).filter(|node| !used[*node] && has_memory(*node)).min_by_key(|&node| {
        let cost = distances.between(local, node)
            + u32::from(node < local)
            + u32::from(topology.has_cpus(NodeId(node as u16)));
        (cost * MAX_NODES as u32 + u32::from(load[node]), node)
    })
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// The node and kind of each zone, and optionally a node without CPUs.
    struct Nodes(Vec<Option<(u16, ZoneKind)>>, Option<u16>);

    impl Topology for Nodes {
        fn zones(&self) -> impl Iterator<Item = Option<(NodeId, ZoneKind)>> {
            self.0.iter().map(|zone| zone.map(|(node, kind)| (NodeId(node), kind)))
        }
        fn has_cpus(&self, node: NodeId) -> bool {
            self.1 != Some(node.0)
        }
    }

    #[track_caller]
    fn check(nodes: usize, zones: &[(u16, ZoneKind)], matrix: Option<&[u8]>, expected: &[&[u16]]) {
        let zones: Vec<_> = zones.iter().copied().map(Some).collect();
        check_with_empty(nodes, &zones, matrix, expected);
    }

    #[track_caller]
    fn check_with_empty(
        nodes: usize,
        zones: &[Option<(u16, ZoneKind)>],
        matrix: Option<&[u8]>,
        expected: &[&[u16]],
    ) {
        let mut lists = std::vec![ZoneId(u16::MAX); nodes * zones.len()];
        fill_zonelists(&mut lists, Distances { matrix, nodes }, &Nodes(zones.to_vec(), None));
        let rows: Vec<Vec<u16>> =
            lists.chunks(zones.len()).map(|row| row.iter().map(|id| id.0).collect()).collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn highest_zone_of_the_nearest_node_first() {
        use ZoneKind::{Dma, Dma32, Normal};
        let zones = [(0, Dma), (0, Dma32), (0, Normal), (1, Normal)];
        check(2, &zones, None, &[&[2, 1, 0, 3], &[3, 2, 1, 0]]);
    }

    #[test]
    fn equally_near_nodes_are_offered_in_turn() {
        let zones: Vec<_> = (0..4).map(|node| (node, ZoneKind::Normal)).collect();
        check(4, &zones, None, &[&[0, 1, 2, 3], &[1, 2, 3, 0], &[2, 3, 0, 1], &[3, 0, 1, 2]]);
    }

    #[test]
    fn distance_decides_first() {
        let zones: Vec<_> = (0..3).map(|node| (node, ZoneKind::Normal)).collect();
        let matrix = [10, 30, 20, 30, 10, 20, 20, 20, 10];
        check(3, &zones, Some(&matrix), &[&[0, 2, 1], &[1, 2, 0], &[2, 0, 1]]);
    }

    #[test]
    fn neighbours_of_two_nodes_do_not_all_spill_to_the_same_one() {
        let zones: Vec<_> = (0..4).map(|node| (node, ZoneKind::Normal)).collect();
        let matrix = [10, 20, 20, 30, 20, 10, 30, 20, 20, 30, 10, 20, 30, 20, 20, 10];
        // Nodes 1 and 2 are equally near to node 3. In the earlier zonelists, node 1 was twice the first node
        // of its distance, and node 2 only once. So node 2 comes first.
        check(4, &zones, Some(&matrix), &[&[0, 1, 2, 3], &[1, 3, 0, 2], &[2, 3, 0, 1], &[3, 2, 1, 0]]);
    }

    #[test]
    fn nodes_without_cpus_are_preferred_at_equal_distance() {
        let zones = (0..3).map(|node| Some((node, ZoneKind::Normal))).collect();
        let mut lists = [ZoneId(0); 9];
        fill_zonelists(&mut lists, Distances { matrix: None, nodes: 3 }, &Nodes(zones, Some(2)));
        assert_eq!(lists[..3], [ZoneId(0), ZoneId(2), ZoneId(1)]);
    }

    #[test]
    fn zones_without_memory_come_last() {
        use ZoneKind::{Dma32, Normal};
        let zones = [Some((0, Dma32)), None, Some((1, Normal))];
        check_with_empty(2, &zones, None, &[&[0, 2, 1], &[2, 0, 1]]);
    }

    #[test]
    fn a_node_without_memory_has_a_list_too() {
        check(2, &[(0, ZoneKind::Normal)], None, &[&[0], &[0]]);
    }
}
