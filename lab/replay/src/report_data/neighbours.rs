//! Groups CPUs that are near each other, by node and then by last-level cache.

use std::collections::BTreeSet;

use pageset_trace::{CacheKind, Layout};
use serde::Serialize;

/// CPUs that share a node and a last-level cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Neighbours {
    /// The node of these CPUs. `None` if the machine's description does not contain the CPUs.
    pub node: Option<u16>,
    /// The numbers of the CPUs.
    pub cpus: Vec<u32>,
}

/// Returns all CPUs of a machine in groups. All CPUs below `seen` are included, even if the machine's
/// description lacks them, because events may name such CPUs.
#[must_use]
pub fn neighbours(machine: Option<&Layout>, seen: usize) -> Vec<Neighbours> {
    let cpus = machine.map_or(0, |machine| machine.cpus);
    let caches = machine.map_or(&[][..], |machine| &machine.caches);
    let nodes = machine.map_or(&[][..], |machine| &machine.nodes);
    let mut left: BTreeSet<u32> = (0..cpus.max(seen as u32)).collect();
    let mut all = Vec::new();
    let levels = caches.iter().filter(|cache| cache.kind != CacheKind::Instruction);
    let last_level = levels.map(|cache| cache.level).max();
    let mut add = |node, cpus: &mut dyn Iterator<Item = u32>, left: &mut BTreeSet<u32>| {
        let mut cpus: Vec<u32> = cpus.filter(|cpu| left.remove(cpu)).collect();
        cpus.sort_unstable();
        if !cpus.is_empty() {
            all.push(Neighbours { node, cpus });
        }
    };
    for node in nodes {
        let is_local = |cpu: &u32| node.cpus.contains(cpu);
        let last = caches.iter().filter(|cache| {
            Some(cache.level) == last_level && cache.kind != CacheKind::Instruction && is_local(&cache.cpu)
        });
        for cache in last {
            add(Some(node.id), &mut cache.shared_by.iter().copied().filter(is_local), &mut left);
        }
        add(Some(node.id), &mut node.cpus.iter().copied(), &mut left);
    }
    let rest: Vec<u32> = left.iter().copied().collect();
    add(None, &mut rest.into_iter(), &mut left);
    all
}

#[cfg(test)]
mod tests {
    use pageset_trace::{Cache, Node, Sysctls};

    use super::*;

    #[test]
    fn every_cpu_is_in_one_group() {
        let cache = |cpu, shared_by: &[u32]| Cache {
            cpu,
            level: 3,
            kind: CacheKind::Unified,
            bytes: 1 << 20,
            shared_by: shared_by.to_vec(),
        };
        let node = |id, cpus: &[u32]| Node { id, cpus: cpus.to_vec(), distances: Vec::new() };
        let machine = Layout {
            kernel: String::new(),
            architecture: String::new(),
            page_size: 4096,
            assumed: Vec::new(),
            cpus: 6,
            sysctls: Sysctls::default(),
            nodes: vec![node(0, &[0, 2, 4]), node(1, &[1, 3])],
            caches: vec![cache(0, &[0, 4]), cache(4, &[0, 4]), cache(2, &[2])],
            zones: Vec::new(),
        };
        let group = |node, cpus: &[u32]| Neighbours { node, cpus: cpus.to_vec() };
        let expected =
            [group(Some(0), &[0, 4]), group(Some(0), &[2]), group(Some(1), &[1, 3]), group(None, &[5, 6])];
        assert_eq!(neighbours(Some(&machine), 7), expected);
    }
}
