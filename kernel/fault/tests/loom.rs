//! Tests the memory orderings E1 to E6 of spec §1.3 under loom, on page tables of two levels with two entries
//! each. Loom tries the orders of memory operations that the language allows.
//!
//! This file needs `RUSTFLAGS="--cfg loom"` and is empty otherwise. `cargo xtask ci night loom` runs the
//! tests of this file.
#![cfg(loom)]

use std::cell::Cell as StdCell;
use std::sync::OnceLock;

use loom::cell::UnsafeCell;
use loom::sync::{Arc, Mutex, MutexGuard};
use loom::thread;
use pageset_core::lock_api::{GuardSend, RawMutex};
use pageset_core::{CpuId, Order, Pfn, Platform};
use pageset_fault::{
    Access, AddressSpace, Backing, Bump, Engine, EngineConfig, Geometry, Memory, Options, Prot, Task, World,
};

/// A lock whose waiting threads sleep, because loom cannot follow spin loops. The lock makes its mutex at the
/// first use, because loom requires mutexes that are made inside the model.
struct LoomLock {
    mutex: OnceLock<Mutex<()>>,
    guard: StdCell<Option<MutexGuard<'static, ()>>>,
}

// SAFETY: only the holder of the mutex touches the guard.
unsafe impl Sync for LoomLock {}
// SAFETY: as for `Sync`.
unsafe impl Send for LoomLock {}

impl LoomLock {
    fn mutex(&self) -> &Mutex<()> {
        self.mutex.get_or_init(|| Mutex::new(()))
    }

    fn keep(&self, guard: MutexGuard<'_, ()>) -> GuardSend {
        // SAFETY: `unlock` drops the guard while it borrows the lock, and the lock owns the mutex.
        let guard = unsafe { std::mem::transmute::<MutexGuard<'_, ()>, MutexGuard<'static, ()>>(guard) };
        self.guard.set(Some(guard));
        GuardSend::new()
    }
}

// SAFETY: loom's mutex has at most one holder at a time.
unsafe impl RawMutex for LoomLock {
    const INIT: Self = Self { mutex: OnceLock::new(), guard: StdCell::new(None) };
    type Guard = GuardSend;

    fn lock(&self) -> GuardSend {
        self.keep(self.mutex().lock().expect("no panic"))
    }

    fn try_lock(&self) -> Option<GuardSend> {
        self.mutex().try_lock().ok().map(|guard| self.keep(guard))
    }

    unsafe fn unlock(&self, _: GuardSend) {
        drop(self.guard.take());
    }

    fn is_locked(&self) -> bool {
        self.mutex().try_lock().is_err()
    }
}

/// The contents of frames, in loom's cells. Loom reports an error if a write to a cell and another access are
/// not ordered.
struct Cells(Vec<UnsafeCell<u64>>);

impl Memory for Cells {
    fn clear(&self, _: CpuId, pfn: Pfn, _: Order, _: u32) {
        // SAFETY: loom stops the model if another thread's access to the cell is not ordered with this write.
        self.0[pfn.0 as usize].with_mut(|cell| unsafe { *cell = 0 });
    }

    fn copy(&self, _: CpuId, _: Pfn, _: Pfn) {}
}

struct LoomWorld {
    frames: Bump,
    memory: Cells,
}

// SAFETY: loom watches every access to the cells.
unsafe impl Sync for LoomWorld {}
// SAFETY: as for `Sync`.
unsafe impl Send for LoomWorld {}

impl Platform for LoomWorld {
    type RawLock = LoomLock;
    type Events = ();

    fn events(&self) -> &() {
        &()
    }
}

impl World for LoomWorld {
    type Frames = Bump;
    type Memory = Cells;

    fn frames(&self) -> &Bump {
        &self.frames
    }

    fn memory(&self) -> &Cells {
        &self.memory
    }

    fn relax(&self, _: CpuId) {
        thread::yield_now();
    }
}

const PAGE: u64 = 64;
const FRAMES: u64 = 8;

fn task(strategy: &str) -> Task<LoomWorld> {
    let world = LoomWorld {
        frames: Bump::new(0..FRAMES),
        memory: Cells((0..FRAMES).map(|_| UnsafeCell::new(7)).collect()),
    };
    let geometry = Geometry::new(6, 1, 2).expect("a tiny geometry");
    let config =
        EngineConfig { geometry, cpus: 2, tasks: 2, tables: 4, prezeroed: 0, magazine: 0, lru_lists: 2 };
    let engine = Engine::new(world, &config);
    let space =
        AddressSpace::new(&engine, Options::new(strategy.parse().expect("a strategy"))).expect("memory");
    let mut task = Task::new(&space, CpuId(0)).expect("a task is free");
    // Use all locks once before the threads start. The first use of a lock creates its mutex, and loom must
    // see that the creation is ordered before the threads' uses.
    task.map(0..4 * PAGE, Prot::ReadWrite).expect("free");
    for page in [0, 2] {
        task.fault(page * PAGE, Access::Write).expect("memory");
    }
    task.unmap(0..4 * PAGE).expect("a range of pages");
    task.map(0..4 * PAGE, Prot::ReadWrite).expect("free");
    task
}

/// Runs a model with at most two preemptions. Two preemptions show nearly all mistakes.
fn check(test: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.max_branches = 100_000;
    model.check(test);
}

/// Handles a fault, then reads the frame. The read must see the cleared page, even if another task mapped the
/// page (orderings E1 and E2, spec §1.3).
fn fault_and_read(task: &mut Task<LoomWorld>, va: u64) {
    if let Ok(Backing::Frame(pfn)) = task.fault(va, Access::Write) {
        let engine = std::sync::Arc::clone(task.space().engine());
        // SAFETY: loom stops the model if a write is not ordered with this load.
        let value = engine.world().memory().0[pfn.0 as usize].with(|cell| unsafe { *cell });
        assert_eq!(value, 0, "read before it was cleared");
    }
}

fn two_faults(strategy: &'static str) {
    check(move || {
        let mut first = task(strategy);
        let space = std::sync::Arc::clone(first.space());
        let other = Arc::new(space);
        let second = thread::spawn(move || {
            let mut second = Task::new(&other, CpuId(1)).expect("a task is free");
            fault_and_read(&mut second, 0);
        });
        fault_and_read(&mut first, 0);
        second.join().expect("no panic");
    });
}

/// Tests E1 to E4. A task that finds a page's word also sees the page's contents, and a task that finds a
/// table also sees the table's words.
#[test]
fn a_page_that_is_found_is_cleared_with_locks() {
    two_faults("P1,V0,R1");
}

#[test]
fn a_page_that_is_found_is_cleared_with_exchanges() {
    two_faults("P2,V0,R1");
}

#[test]
fn a_page_that_is_found_is_cleared_with_transactions() {
    two_faults("P3,V0,R1");
}

/// Tests E5 and E6. No task touches an unmapped page after unmap has returned.
#[test]
fn an_unmapped_frame_is_not_touched_any_more() {
    check(|| {
        let mut first = task("P2,V7,R1");
        let Ok(Backing::Frame(pfn)) = first.fault(0, Access::Write) else { unreachable!("memory") };
        let space = std::sync::Arc::clone(first.space());
        let second = thread::spawn(move || {
            let mut second = Task::new(&space, CpuId(1)).expect("a task is free");
            let engine = std::sync::Arc::clone(space.engine());
            let _ = second.access(0, Access::Write, |page| {
                let Backing::Frame(pfn) = page else { unreachable!("a store") };
                // SAFETY: loom stops the model if the other thread's write is not ordered with this write.
                engine.world().memory().0[pfn.0 as usize].with_mut(|cell| unsafe { *cell = 1 });
            });
        });
        first.unmap(0..4 * PAGE).expect("a range of pages");
        let engine = std::sync::Arc::clone(first.space().engine());
        // SAFETY: the frame is free, and its next owner is this thread.
        engine.world().memory().0[pfn.0 as usize].with_mut(|cell| unsafe { *cell = 2 });
        second.join().expect("no panic");
    });
}
