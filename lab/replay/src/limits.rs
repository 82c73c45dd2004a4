//! The limits of a recorded machine's page sets, as the kernel printed them or as a policy computes them.

use pageset_core::Policy;
use pageset_core::pcp::Limits;
use pageset_core::policy::LimitInputs;
use pageset_trace::{Layout, ZoneDescription};

use crate::caches::cache_slice;

/// Returns the limits that the kernel printed. Without printed limits, the policy's formula gives them (spec
/// §2.2, §2.3).
pub(crate) fn printed_or_computed(policy: &Policy, machine: &Layout, zone: &ZoneDescription) -> Limits {
    let printed = zone.pagesets.iter().find_map(|set| {
        Some(Limits {
            batch: to_i32(u64::from(set.batch)),
            high_min: to_i32(u64::from(set.high_min?)),
            high_max: to_i32(u64::from(set.high_max?)),
        })
    });
    printed.unwrap_or_else(|| computed(policy, machine, zone))
}

/// Returns the limits that the policy's formula gives.
pub(crate) fn computed(policy: &Policy, machine: &Layout, zone: &ZoneDescription) -> Limits {
    let on_node = machine.nodes.iter().filter(|node| node.id == zone.node);
    let cpus: usize = on_node.map(|node| node.cpus.len()).sum();
    policy.high.limits(
        policy.batch,
        &LimitInputs {
            managed: zone.managed,
            low_watermark: zone.low.saturating_sub(zone.boost),
            sharers: if cpus == 0 { machine.online_cpus() } else { cpus as u32 },
            fraction: machine.sysctls.percpu_pagelist_high_fraction.unwrap_or(0),
            page_bytes: machine.page_size,
        },
    )
}

/// Whether a CPU's share of the data caches counts as large for this policy and batch (spec §2.14).
pub(crate) fn has_large_slice(policy: &Policy, machine: &Layout, cpu: u32, batch: i32) -> bool {
    let Some(rule) = policy.free_high.and_then(|rule| rule.keep_batch) else { return false };
    cache_slice(machine, cpu).is_large(rule, batch, machine.page_size)
}

/// Converts a printed count to `i32`. A large count is capped, so that sums never overflow.
pub(crate) fn to_i32(value: u64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX / 4).min(i32::MAX / 4)
}
