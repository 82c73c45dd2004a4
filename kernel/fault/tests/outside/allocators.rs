//! Tests the engine with frames from `pageset-core` and from `pageset-blocks`.

use std::sync::Arc;

use pageset_blocks::BlockAllocator;
use pageset_core::policy::Counting;
use pageset_core::{
    Config, ConfigError, CpuId, FrameAllocator, NodeId, PageAllocator, Policy, ZoneConfig, ZoneKind,
};
use pageset_fault::{
    Access, AddressSpace, Engine, EngineConfig, Geometry, Host, Locks, NoMemory, Options, Prot, Task,
};

const PAGE: u64 = 4096;
const FRAMES: u64 = 8192;
/// The number of pages that each task touches.
const PAGES: u64 = 2000;
const CPUS: u32 = 2;

fn with_config<R>(build: impl FnOnce(&Config<'_>) -> R) -> R {
    let regions = [0..FRAMES];
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..FRAMES, regions: &regions }];
    let mut config = Config::new(&zones, &[NodeId(0); CPUS as usize]);
    config.min_free_kbytes = Some(0);
    build(&config)
}

/// Lets two tasks on two CPUs fill an address space and end. Checks that all frames come back.
fn faults_and_returns(allocator: impl FrameAllocator + Send + Sync + 'static) {
    let host = Host::<parking_lot::RawMutex, _, _>::new(allocator, NoMemory);
    let engine = Engine::new(host, &EngineConfig::new(Geometry::PAGES_4K, CPUS, FRAMES));
    let space = AddressSpace::new(&engine, Options::new("P2,V7,R3".parse().expect("a strategy")));
    let space = space.expect("memory enough");
    std::thread::scope(|scope| {
        for cpu in 0..CPUS {
            let space = Arc::clone(&space);
            scope.spawn(move || {
                let mut task = Task::new(&space, CpuId(cpu)).expect("a task is free");
                let start = u64::from(cpu) << 30;
                task.map(start..start + PAGES * PAGE, Prot::ReadWrite).expect("free");
                for page in 0..PAGES {
                    task.fault(start + page * PAGE, Access::Write).expect("memory enough");
                }
                assert_eq!((task.stats().installed, task.stats().refused_frees), (PAGES, 0));
            });
        }
    });
    assert_eq!(engine.check(&[&space]).expect("the invariants").pages, PAGES * u64::from(CPUS));
    drop(space);
    assert_eq!(engine.check(&[]).expect("the invariants").tables, 0);
}

#[test]
fn linux_has_frames() {
    faults_and_returns(with_config(|config| {
        let tables = pageset_core::Tables::on_heap(config).expect("the zone is possible");
        PageAllocator::new(Locks::<parking_lot::RawMutex>::new(), config, tables)
            .expect("the zone is possible")
    }));
}

/// Without the feature `lab` of `pageset-core`, the allocator refuses policies that need the feature. This
/// crate tests the refusal, because the tests of `pageset-core` always have the feature.
#[test]
fn linux_refuses_a_rule_that_is_not_compiled_in() {
    let has_lab = Policy::named("linux-4.9").is_some();
    let refused = with_config(|config| {
        let mut config = *config;
        config.policy.counting = Counting::Blocks;
        let tables = pageset_core::Tables::on_heap(&config).expect("the zone is possible");
        PageAllocator::new(Locks::<parking_lot::RawMutex>::new(), &config, tables).err()
    });
    assert_eq!(refused, (!has_lab).then_some(ConfigError::NeedsLab("counting")));
}

#[test]
fn our_own_has_frames() {
    faults_and_returns(with_config(|config| {
        let tables = pageset_blocks::Tables::on_heap(config).expect("the zone is possible");
        BlockAllocator::new(config, tables).expect("the zone is possible")
    }));
}
