//! The recording's machine as an allocator.

use pageset_core::{Config, CpuId, NodeId, PageAllocator, Policy, Tables, Watermarks, ZoneConfig, ZoneId};
use pageset_trace::{Layout, ZoneDescription};

use super::ReplayError;
use super::lock::OneThread;
use crate::caches::cache_slice;

/// An allocator of a replay.
pub(super) type Allocator = PageAllocator<'static, OneThread>;

/// A zone of the machine and its number in the allocator; zones without memory have none.
pub(super) fn populated(machine: &Layout) -> Vec<(&ZoneDescription, ZoneId)> {
    let mut zones: Vec<_> = machine.zones.iter().filter(|zone| zone.managed > 0).collect();
    zones.sort_by_key(|zone| (zone.node, zone.kind));
    zones.into_iter().enumerate().map(|(id, zone)| (zone, ZoneId(id as u16))).collect()
}

/// Builds the machine's allocator: its zones, CPUs, caches and settings; all managed frames free.
pub(super) fn allocator(machine: &Layout, policy: &Policy) -> Result<Allocator, ReplayError> {
    let impossible = |error: &dyn std::fmt::Display| ReplayError::Layout(error.to_string());
    machine.check().map_err(|problem| impossible(&problem))?;
    let zones = populated(machine);
    // Which of the spanned frames are managed is not recorded; the upper ones are taken.
    let regions: Vec<_> = zones.iter().map(|(zone, _)| [managed_frames(zone)]).collect();
    let configs: Vec<_> = zones
        .iter()
        .zip(&regions)
        .map(|((zone, _), regions)| ZoneConfig {
            kind: zone.kind,
            node: NodeId(zone.node),
            span: zone.start_pfn..zone.start_pfn + zone.spanned,
            regions,
        })
        .collect();
    let cpus: Vec<_> = (0..machine.cpus).map(|cpu| NodeId(machine.node_of_cpu(cpu).unwrap_or(0))).collect();
    let distances = distances(machine);
    let sysctls = &machine.sysctls;
    let mut config = Config::new(&configs, &cpus).with_policy(*policy);
    config.page_bytes = machine.page_size;
    config.distances = distances.as_deref();
    config.min_free_kbytes = sysctls.min_free_kbytes;
    config.watermark_scale_factor = sysctls.watermark_scale_factor.unwrap_or(config.watermark_scale_factor);
    config.watermark_boost_factor = sysctls.watermark_boost_factor.unwrap_or(config.watermark_boost_factor);
    config.percpu_pagelist_high_fraction = sysctls.percpu_pagelist_high_fraction.unwrap_or(0);
    for (ratio, recorded) in config.lowmem_reserve_ratio.iter_mut().zip(&sysctls.lowmem_reserve_ratio) {
        *ratio = *recorded;
    }
    let tables = Tables::on_heap(&config).map_err(|error| impossible(&error))?;
    let allocator = PageAllocator::new(OneThread, &config, tables).map_err(|error| impossible(&error))?;
    for cpu in 0..machine.cpus {
        let slice = cache_slice(machine, cpu);
        allocator.set_cache_slice(CpuId(cpu), slice).map_err(|error| impossible(&error))?;
    }
    Ok(allocator)
}

/// The frames of a zone that the allocator gets.
pub(super) fn managed_frames(zone: &ZoneDescription) -> std::ops::Range<u64> {
    let end = zone.start_pfn + zone.spanned;
    end - zone.managed..end
}

/// Puts the recorded watermarks in force (they may have been set by hand).
pub(super) fn set_recorded_watermarks(allocator: &Allocator, machine: &Layout) {
    for (zone, id) in populated(machine) {
        let unboosted = |mark: u64| mark.saturating_sub(zone.boost);
        let (min, low, high) = (unboosted(zone.min), unboosted(zone.low), unboosted(zone.high));
        let watermarks = Watermarks { min, low, high };
        allocator.set_watermarks(id, watermarks).expect("a zone of this machine");
    }
}

/// Distances between all nodes, if the machine says any; what it leaves out is 10 to itself and 20 to others.
fn distances(machine: &Layout) -> Option<Vec<u8>> {
    // An allocator has at most 256 nodes, and says so when there are more.
    const NODES_MAX: usize = 256;
    let nodes =
        machine.nodes.iter().map(|node| usize::from(node.id) + 1).max().filter(|n| *n <= NODES_MAX)?;
    machine.nodes.iter().any(|node| !node.distances.is_empty()).then_some(())?;
    let mut matrix: Vec<u8> =
        (0..nodes * nodes).map(|at| if at / nodes == at % nodes { 10 } else { 20 }).collect();
    for node in &machine.nodes {
        let row = &mut matrix[usize::from(node.id) * nodes..][..nodes];
        row.iter_mut().zip(&node.distances).for_each(|(entry, distance)| *entry = *distance);
    }
    Some(matrix)
}

#[cfg(test)]
mod tests {
    use pageset_core::POLICIES;
    use pageset_trace::Node;

    use super::*;
    use crate::replay::tests::small_layout;

    #[test]
    fn the_machine_has_its_zones_and_limits() {
        let machine = small_layout();
        for policy in POLICIES {
            let allocator = allocator(&machine, policy).unwrap();
            set_recorded_watermarks(&allocator, &machine);
            for (zone, (recorded, _)) in allocator.zones().zip(populated(&machine)) {
                assert_eq!(
                    (zone.kind, zone.managed, zone.free),
                    (recorded.kind, recorded.managed, recorded.managed)
                );
                assert_eq!(zone.watermarks.low, recorded.low);
            }
        }
    }

    #[test]
    fn watermarks_at_the_end_of_the_numbers_do_not_overflow() {
        let mut machine = small_layout();
        (machine.zones[0].min, machine.zones[0].low, machine.zones[0].high) = (0, 0, u64::MAX);
        let allocator = allocator(&machine, &POLICIES[0]).unwrap();
        set_recorded_watermarks(&allocator, &machine);
        assert_eq!(allocator.zones().next().unwrap().watermarks.high, u64::MAX);
    }

    #[test]
    fn distances_make_a_square() {
        let mut machine = small_layout();
        machine.nodes[0].distances = vec![10, 31];
        machine.nodes.push(Node { id: 1, cpus: Vec::new(), distances: Vec::new() });
        assert_eq!(distances(&machine), Some(vec![10, 31, 20, 10]));
        machine.nodes[0].distances.clear();
        assert_eq!(distances(&machine), None);
    }

    #[test]
    fn an_impossible_machine_is_an_error() {
        let mut machine = small_layout();
        machine.zones[1].start_pfn = machine.zones[0].start_pfn;
        assert!(matches!(allocator(&machine, &POLICIES[0]), Err(ReplayError::Layout(_))));
    }
}
