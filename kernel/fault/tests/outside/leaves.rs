//! Tests the hooks for hosts whose processor walks the leaf tables itself.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pageset_core::{CpuId, Platform};
use pageset_fault::{
    Access, AddressSpace, Bump, Engine, EngineConfig, Geometry, NoMemory, Options, Prot, Task, World,
};

const LEAF: u64 = 2 << 20;
const PAGE: u64 = 4096;

/// A host that records each leaf table under the first address that the table covers.
struct Walker {
    frames: Bump,
    leaves: Mutex<BTreeMap<u64, usize>>,
    /// The number of leaf tables that were taken out of the tree and that the processor may still use.
    gone: AtomicU64,
    shoot_downs: AtomicU64,
}

impl Platform for Walker {
    type RawLock = parking_lot::RawMutex;
    type Events = ();

    fn events(&self) -> &() {
        &()
    }
}

impl World for Walker {
    type Frames = Bump;
    type Memory = NoMemory;

    fn frames(&self) -> &Bump {
        &self.frames
    }

    fn memory(&self) -> &NoMemory {
        &NoMemory
    }

    fn link_leaf(&self, _: CpuId, space: u32, start: u64, words: *const AtomicU64) {
        assert_eq!(space, 0);
        let before = self.leaves.lock().expect("no panic").insert(start, words as usize);
        assert_eq!(before, None, "one leaf table for each address");
    }

    fn unlink_leaf(&self, _: CpuId, _: u32, start: u64) {
        self.leaves.lock().expect("no panic").remove(&start).expect("it was linked");
        self.gone.fetch_add(1, Relaxed);
    }

    fn shoot_down(&self, _: CpuId) {
        self.gone.store(0, Relaxed);
        self.shoot_downs.fetch_add(1, Relaxed);
    }
}

#[test]
fn a_host_knows_each_leaf_table_while_it_is_in_the_tree() {
    for strategy in ["P1,V1,R1", "P2,V7,R3"] {
        let world = Walker {
            frames: Bump::new(0..4096),
            leaves: Mutex::default(),
            gone: AtomicU64::new(0),
            shoot_downs: AtomicU64::new(0),
        };
        let engine = Engine::new(world, &EngineConfig::new(Geometry::PAGES_4K, 1, 4096));
        let options = Options::new(strategy.parse().expect("a strategy"));
        let space = AddressSpace::new(&engine, options).expect("memory for a root");
        let mut task = Task::new(&space, CpuId(0)).expect("a task is free");
        let starts = || engine.world().leaves.lock().expect("no panic").keys().copied().collect::<Vec<_>>();
        task.map(LEAF..4 * LEAF, Prot::ReadWrite).expect("free");
        assert_eq!(starts(), [], "a table comes with the first page");
        for va in [LEAF + 5 * PAGE, 3 * LEAF - PAGE, LEAF + 7 * PAGE] {
            task.fault(va, Access::Write).expect("mapped");
        }
        assert_eq!(starts(), [LEAF, 2 * LEAF]);
        task.unmap(LEAF..2 * LEAF).expect("mapped");
        assert_eq!(starts(), [2 * LEAF]);
        assert_eq!(
            engine.world().gone.load(Relaxed),
            0,
            "{strategy}: the host drops translations before a table is reused"
        );
        assert_eq!(engine.world().shoot_downs.load(Relaxed), 1);
        task.unmap(2 * LEAF..4 * LEAF).expect("mapped");
        assert_eq!(starts(), []);
    }
}
