//! The machine: 6 GiB in three zones, two CPUs, one node, as in the specification's worked examples.

use pageset_blocks::BlockAllocator;
use pageset_core::policy::LINUX_6_18;
use pageset_core::{Config, CpuId, NodeId, PageAllocator, Platform, Policy, Tables, ZoneConfig, ZoneKind};

use crate::Spin;

/// The CPU of the single-threaded benchmarks.
pub const CPU: CpuId = CpuId(0);

/// A host with spin locks, without an event listener.
#[derive(Clone, Copy, Debug)]
pub struct Host;

impl Platform for Host {
    type RawLock = Spin;
    type Events = ();

    #[inline]
    fn events(&self) -> &() {
        &()
    }
}

/// An allocator for the machine, with all memory free.
///
/// # Panics
/// An error if the machine's numbers contradict each other.
#[must_use]
pub fn machine(policy: Policy) -> PageAllocator<'static, Host> {
    with_config(policy, |config| {
        let tables = Tables::on_heap(config).expect("the spans are small enough");
        PageAllocator::new(Host, config, tables).expect("the zones are in order")
    })
}

/// This project's own allocator for the machine, with all memory free.
///
/// # Panics
/// An error if the machine's numbers contradict each other.
#[must_use]
pub fn machine_of_blocks() -> BlockAllocator<'static> {
    with_config(LINUX_6_18, |config| {
        let tables = pageset_blocks::Tables::on_heap(config).expect("the spans are small enough");
        BlockAllocator::new(config, tables).expect("the zones are in order")
    })
}

fn with_config<R>(policy: Policy, build: impl FnOnce(&Config<'_>) -> R) -> R {
    const MIB: u64 = 256;
    let zone = |kind, start: u64, end: u64| (kind, start * MIB..end * MIB);
    let spans =
        [zone(ZoneKind::Dma, 0, 16), zone(ZoneKind::Dma32, 16, 3072), zone(ZoneKind::Normal, 4096, 7168)];
    let regions = spans.clone().map(|(_, span)| [span]);
    let zones: Vec<_> = spans
        .into_iter()
        .zip(&regions)
        .map(|((kind, span), regions)| ZoneConfig { kind, node: NodeId(0), span, regions })
        .collect();
    build(&Config::new(&zones, &[NodeId(0); 2]).with_policy(policy))
}
