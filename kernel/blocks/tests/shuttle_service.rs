//! Tests under shuttle what an administrator or the machine does while CPUs allocate and free. Pageblocks and
//! frames go out of service, CPUs go off-line, watermarks change. No frame has two owners or is lost, and no
//! CPU gets a frame that is out of service.
//!
//! These tests need `RUSTFLAGS="--cfg shuttle"`, and are empty otherwise. `cargo xtask ci night shuttle` runs
//! them.
#![cfg(shuttle)]

#[path = "shuttle/world.rs"]
mod world;

use std::collections::BTreeSet;

use pageset_core::{CpuId, FreeError, MigrateType, Order, Pfn, Request, RequestTraits, Watermarks, ZoneId};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Arc;
use shuttle::thread;
use world::{World, check};

/// Frames of the machine: only six pageblocks, so that threads often use the same pageblock.
const FRAMES: u64 = 6 * 512;
/// The number of allocations and frees that each thread tries.
const STEPS: u32 = 8;
const MOVABLE: MigrateType = MigrateType::Movable;

impl World {
    /// Allocates and frees blocks, and leaves the other blocks in the mailbox.
    fn use_memory(&self, cpu: CpuId) {
        const ORDERS: [u8; 7] = [0, 0, 3, 6, 8, 9, 10];
        let mut mine = Vec::new();
        for _ in 0..STEPS {
            let mut random = thread_rng();
            if random.gen_range(0..5) < 3 {
                let order = Order::new(ORDERS[random.gen_range(0..ORDERS.len())]).expect("small");
                mine.extend(self.alloc(cpu, order, MigrateType::ALL[random.gen_range(0..2)]));
            } else if !mine.is_empty() {
                let block = mine.swap_remove(random.gen_range(0..mine.len()));
                self.free(cpu, block);
            }
        }
        self.mailbox.lock().expect("nobody panicked").append(&mut mine);
    }
}

/// Runs two users on CPUs 0 and 1 beside `service`, which runs as CPU 2 or as one of these two CPUs. Then
/// `look` checks.
fn beside_users<R: Send + 'static>(
    service: impl Fn(&World) -> R + Send + Sync + Copy + 'static,
    look: impl Fn(&World, R) + Send + Sync + 'static,
) {
    check(move || {
        let world = Arc::new(World::new(3));
        let users: Vec<_> = (0..2)
            .map(|cpu| {
                let world = world.clone();
                thread::spawn(move || world.use_memory(CpuId(cpu)))
            })
            .collect();
        let done = service(&world);
        users.into_iter().for_each(|user| user.join().expect("it ends"));
        look(&world, done);
    });
}

fn any_frame() -> Pfn {
    Pfn(thread_rng().gen_range(0..FRAMES))
}

#[test]
fn what_is_isolated_is_not_handed_out_and_comes_back() {
    let isolate = |world: &World| -> BTreeSet<u64> {
        let mut isolated = BTreeSet::new();
        for _ in 0..STEPS {
            let pfn = any_frame();
            let cpu = CpuId(thread_rng().gen_range(0..3));
            if isolated.insert(pfn.0 / 512) {
                world.allocator.isolate_pageblock(cpu, pfn).expect("it is in service");
            } else {
                isolated.remove(&(pfn.0 / 512));
                world.allocator.unisolate_pageblock(cpu, pfn, MOVABLE).expect("it is out of service");
            }
        }
        isolated
    };
    beside_users(isolate, |world, isolated| {
        world.allocator.validate().unwrap_or_else(|violation| panic!("{violation}"));
        // Frames that a CPU was freeing during the isolation belong to that CPU until it gives them back.
        world.allocator.drain_all();
        let mut rest = Vec::new();
        for order in [9, 6].map(|order| Order::new(order).expect("small")) {
            while let Some(block) = world.alloc(CpuId(0), order, MOVABLE) {
                assert!(!isolated.contains(&(block.0.0 / 512)), "{} is out of service", block.0);
                rest.push(block);
            }
        }
        rest.into_iter().for_each(|block| world.free(CpuId(1), block));
        for block in isolated {
            world.allocator.unisolate_pageblock(CpuId(0), Pfn(block * 512), MOVABLE).expect("it is isolated");
        }
        world.end();
    });
}

#[test]
fn a_pageblock_isolated_by_two_is_isolated_once() {
    check(|| {
        let world = Arc::new(World::new(2));
        let page = world.alloc(CpuId(0), Order::ZERO, MOVABLE).expect("there is memory");
        let other = {
            let world = world.clone();
            thread::spawn(move || world.allocator.isolate_pageblock(CpuId(1), page.0).is_ok())
        };
        let ours = world.allocator.isolate_pageblock(CpuId(0), page.0).is_ok();
        world.free(CpuId(0), page);
        assert!(ours != other.join().expect("it ends"));
        world.allocator.unisolate_pageblock(CpuId(0), page.0, MOVABLE).expect("it is isolated");
        world.end();
    });
}

/// Frames in use go out of service while CPUs take the frames beside them.
#[test]
fn a_bad_frame_is_never_handed_out_again() {
    check(|| {
        let world = Arc::new(World::new(3));
        // This thread holds the three frames, so no other thread can take them. So the free below cannot hit
        // a block of another thread.
        let bad: Vec<_> =
            (0..3).map(|_| world.alloc(CpuId(2), Order::ZERO, MOVABLE).expect("there is memory").0).collect();
        let users: Vec<_> = (0..2)
            .map(|cpu| {
                let world = world.clone();
                thread::spawn(move || world.use_memory(CpuId(cpu)))
            })
            .collect();
        for pfn in &bad {
            world.allocator.mark_bad(CpuId(2), *pfn).expect("nobody stops in the middle");
            let freed = world.allocator.free(CpuId(2), *pfn, Order::ZERO);
            assert_eq!(freed, Err(FreeError::Leaked(*pfn)));
        }
        users.into_iter().for_each(|user| user.join().expect("it ends"));
        let left = std::mem::take(&mut *world.mailbox.lock().expect("nobody panicked"));
        left.into_iter().for_each(|block| world.free(CpuId(0), block));
        world.allocator.drain_all();
        let census = world.allocator.validate().unwrap_or_else(|violation| panic!("{violation}"));
        assert_eq!((census.free, census.allocated, census.leaked), (FRAMES - 3, 0, 3));
    });
}

/// Marks any frame, free or in use. Every frame is still free, in use, or out of service.
#[test]
fn frames_marked_bad_at_any_moment_are_accounted_for() {
    check(|| {
        let world = Arc::new(World::new(2));
        let user = {
            let world = world.clone();
            thread::spawn(move || {
                let request = |order| Request::new(order).movable().with(RequestTraits::NO_WATERMARKS);
                let mut lost = 0;
                for order in [0, 9, 3, 0, 10].map(|order| Order::new(order).expect("small")) {
                    let Ok(pfn) = world.allocator.alloc(CpuId(0), &request(order)) else { continue };
                    match world.allocator.free(CpuId(0), pfn, order) {
                        Ok(()) => {}
                        Err(FreeError::Leaked(_)) => lost += u64::from(order.frames()),
                        Err(error) => panic!("{error}"),
                    }
                }
                lost
            })
        };
        let mut bad = BTreeSet::new();
        for _ in 0..3 {
            let pfn = Pfn(thread_rng().gen_range(0..1024));
            if world.allocator.mark_bad(CpuId(1), pfn).is_ok() {
                bad.insert(pfn);
            }
        }
        let lost = user.join().expect("it ends");
        world.allocator.drain_all();
        let census = world.allocator.validate().unwrap_or_else(|violation| panic!("{violation}"));
        assert_eq!((census.free + census.leaked, census.allocated), (FRAMES, 0));
        assert!(census.leaked <= bad.len() as u64 + lost && (bad.is_empty() || census.leaked > 0));
    });
}

#[test]
fn cpus_come_and_go() {
    let come_and_go = |world: &World| {
        for cpu in [0, 1, 0] {
            world.allocator.cpu_offline(CpuId(cpu)).expect("it is a CPU");
            world.allocator.cpu_online(CpuId(cpu)).expect("it is a CPU");
        }
        world.allocator.cpu_offline(CpuId(1)).expect("it is a CPU");
    };
    beside_users(come_and_go, |world, ()| {
        world.allocator.drain_cpu(CpuId(1)).expect("it is a CPU");
        world.end();
    });
}

#[test]
fn ticks_move_pageblocks_and_lose_none() {
    let tick = |world: &World| {
        for cpu in [0, 1, 2, 1, 0, 0, 1] {
            world.allocator.tick(CpuId(cpu)).expect("it is a CPU");
        }
    };
    beside_users(tick, |world, ()| world.end());
}

/// Watermarks change during a request. The request is refused or served by the old or by the new watermarks,
/// and no frame is lost.
#[test]
fn watermarks_change_while_memory_is_used() {
    let change = |world: &World| {
        for mark in [0, FRAMES, 100, u64::MAX, 0] {
            let marks = Watermarks { min: mark, low: mark, high: mark };
            world.allocator.set_watermarks(ZoneId(0), marks).expect("it is a zone");
            let heeds = Request::new(Order::ZERO).movable();
            if let Ok(pfn) = world.allocator.alloc(CpuId(2), &heeds) {
                world.allocator.free(CpuId(2), pfn, Order::ZERO).expect("it is in use");
            }
        }
        world.allocator.set_min_free_kbytes(64);
    };
    beside_users(change, |world, ()| world.end());
}
