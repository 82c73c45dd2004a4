//! A CPU's share of the machine's data caches.

use pageset_core::CacheSlice;
use pageset_trace::{CacheKind, Layout};

/// Computes one CPU's share of the data caches.
pub(crate) fn cache_slice(machine: &Layout, cpu: u32) -> CacheSlice {
    let share_kib =
        |bytes: u64, sharers: usize| u32::try_from(bytes / 1024 / sharers.max(1) as u64).unwrap_or(u32::MAX);
    let data = || {
        let of_cpu = machine.caches.iter().filter(move |cache| cache.cpu == cpu);
        of_cpu.filter(|cache| !matches!(cache.kind, CacheKind::Instruction))
    };
    let last_level = data().max_by_key(|cache| cache.level);
    CacheSlice {
        all_kib: data()
            .fold(0, |sum: u32, cache| sum.saturating_add(share_kib(cache.bytes, cache.shared_by.len()))),
        last_level_kib: last_level.map_or(0, |cache| share_kib(cache.bytes, cache.shared_by.len())),
    }
}
