//! Tests that no CPU waits for another. CPU 0 stops in the middle of an operation, in each schedule one step
//! later than in the schedule before. The other CPUs must still allocate, free and tick, and get all memory
//! except a little that CPU 0 holds. Then CPU 0 goes on, and no frame may be lost.
//!
//! These tests need `RUSTFLAGS="--cfg shuttle"`, and are empty otherwise. `cargo xtask ci night shuttle` runs
//! them. No part of this test is random.
#![cfg(shuttle)]

#[path = "shuttle/world.rs"]
mod world;

use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicBool as Flag, AtomicU64, Ordering::Relaxed};

use pageset_core::{CpuId, MigrateType, Order, Pfn, Request, RequestTraits};
use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};
use shuttle::sync::Arc;
use shuttle::thread;
use world::{Blocks, World, check_with, order};

/// Frames of the machine.
const FRAMES: u64 = 6 * 512;
/// The CPU that stops.
const CPU: CpuId = CpuId(0);
/// The CPUs that go on.
const OTHER: CpuId = CpuId(1);
const THIRD: CpuId = CpuId(2);
/// The first thread that a test starts.
const STOPPED: usize = 1;
const MOVABLE: MigrateType = MigrateType::Movable;

/// Runs task 1 up to a step, and from there only when no other task can run. The next schedule stops one step
/// later.
struct StopAt {
    step: u64,
    left: u64,
    /// The operation ended before this step, so there are no more steps.
    is_over: StdArc<Flag>,
}

impl Scheduler for StopAt {
    fn new_execution(&mut self) -> Option<Schedule> {
        if self.is_over.load(Relaxed) {
            return None;
        }
        self.left = self.step;
        self.step += 1;
        Some(Schedule::new(0))
    }

    fn next_task(&mut self, runnable: &[&Task], _: Option<TaskId>, _: bool) -> Option<TaskId> {
        let is_stopped = |task: &&&Task| usize::from(task.id()) == STOPPED;
        let stopped = runnable.iter().find(is_stopped);
        let other = runnable.iter().find(|task| !is_stopped(task));
        let next = if self.left > 0 { stopped.or(other) } else { other.or(stopped) };
        if next.is_some_and(|task| usize::from(task.id()) == STOPPED) {
            self.left = self.left.saturating_sub(1);
        }
        next.map(|task| task.id())
    }

    fn next_u64(&mut self) -> u64 {
        0
    }
}

fn request(of: u8) -> Request {
    Request::new(order(of)).movable().with(RequestTraits::NO_WATERMARKS)
}

impl World {
    fn take(&self, cpu: CpuId, of: u8, count: usize) -> Blocks {
        (0..count).map(|_| self.alloc(cpu, order(of), MOVABLE).expect("memory enough")).collect()
    }

    fn give(&self, cpu: CpuId, blocks: Blocks) {
        blocks.into_iter().for_each(|block| self.free(cpu, block));
    }

    /// Allocates all single frames that a CPU can get.
    fn take_all(&self, cpu: CpuId) -> Blocks {
        std::iter::from_fn(|| self.alloc(cpu, Order::ZERO, MOVABLE)).collect()
    }
}

/// Stops CPU 0 at each step of `operate`. `operate` gets the blocks that `prepare` allocated, and returns the
/// blocks that it has at the end. While CPU 0 is stopped, it may hold up to `held_max` further frames.
fn stop_at_each_step(
    held_max: u64,
    prepare: impl Fn(&World) -> Blocks + Send + Sync + 'static,
    operate: impl Fn(&World, Blocks) -> Blocks + Send + Sync + Copy + 'static,
) {
    stop_and_lose(held_max, 0, prepare, operate);
}

/// Does the same as [`stop_at_each_step`] for an operation that puts `lost` frames of one pageblock out of
/// service.
fn stop_and_lose(
    held_max: u64,
    lost: u64,
    prepare: impl Fn(&World) -> Blocks + Send + Sync + 'static,
    operate: impl Fn(&World, Blocks) -> Blocks + Send + Sync + Copy + 'static,
) {
    stop_in(|| World::new(3), held_max, lost, prepare, operate);
}

fn stop_in(
    world: impl Fn() -> World + Send + Sync + 'static,
    held_max: u64,
    lost: u64,
    prepare: impl Fn(&World) -> Blocks + Send + Sync + 'static,
    operate: impl Fn(&World, Blocks) -> Blocks + Send + Sync + Copy + 'static,
) {
    let is_over = StdArc::new(Flag::new(false));
    let steps = StdArc::new(AtomicU64::new(0));
    let scheduler = StopAt { step: 0, left: 0, is_over: is_over.clone() };
    let counted = steps.clone();
    check_with(scheduler, move || {
        let world = Arc::new(world());
        let blocks = prepare(&world);
        let ours: u64 = blocks.iter().map(|(_, order)| u64::from(order.frames())).sum();
        let is_done = StdArc::new(Flag::new(false));
        let stopped = {
            let (world, is_done) = (world.clone(), is_done.clone());
            thread::spawn(move || {
                let blocks = operate(&world, blocks);
                is_done.store(true, Relaxed);
                blocks
            })
        };
        // From here on, CPU 0 runs only when this thread waits for it.
        thread::yield_now();
        is_over.store(is_done.load(Relaxed), Relaxed);
        counted.fetch_add(1, Relaxed);
        others_go_on(&world, ours + held_max);
        let all = world.take_all(OTHER);
        let left = stopped.join().expect("it ends");
        world.give(THIRD, all);
        world.give(CPU, left);
        world.end_without(lost);
    });
    assert!(steps.load(Relaxed) > 2, "the operation was stopped somewhere");
}

/// Checks that the other CPUs can allocate, free, split and tick, and that they can get all frames except for
/// at most `missing_max`.
fn others_go_on(world: &World, missing_max: u64) {
    for of in [0, 3, 6, 8, 9] {
        // Threads also run as the stopped CPU, as if an interrupt handler had interrupted that CPU.
        for (cpu, to) in [(OTHER, THIRD), (THIRD, THIRD), (CPU, CPU), (THIRD, OTHER)] {
            let block = world.alloc(cpu, order(of), MOVABLE).expect("there is memory");
            world.free(to, block);
        }
    }
    let pfn = world.allocator.alloc_exact(OTHER, 300, &request(0)).expect("there is memory");
    world.allocator.split_range(OTHER, pfn.0..pfn.0 + 300).expect("it is in use");
    world.allocator.free_range(THIRD, pfn.0..pfn.0 + 300).expect("it is in use");
    for cpu in [OTHER, THIRD, OTHER, CPU] {
        world.allocator.tick(cpu).expect("it is a CPU");
    }
    world.allocator.drain_all();
    let all = world.take_all(THIRD);
    let missing = FRAMES - all.len() as u64;
    assert!(missing <= missing_max, "{missing} of {missing_max} frames are missing");
    // Either the tables account for each frame, or `validate` finds a change that is in progress.
    match world.allocator.validate() {
        Ok(census) => assert_eq!(census.allocated + census.cached + census.free + census.leaked, FRAMES),
        Err(violation) => assert!(AT_WORK.contains(&violation.rule), "{violation}"),
    }
    world.give(OTHER, all);
}

/// Violations that `validate` may report in the middle of a change.
const AT_WORK: [&str; 15] = [
    "a whole pageblock, and no other, is in the set of whole ones or in a stock",
    "the zone counts free frames of pageblocks that no CPU reserves, and no others",
    "a CPU reserves a pageblock",
    "a CPU's share names each pageblock that the CPU reserves",
    "a withheld frame is no memory, or out of service",
    "only frames of open pageblocks can be taken one by one",
    "the count of whole pageblocks equals the pageblocks",
    "a zone's count of free frames equals the sum of its pageblocks' counts",
    "no pageblock is being changed while no CPU is inside the allocator",
    "a block of two pageblocks has both of them",
    "the second half of a block of two pageblocks has a first one",
    "no block is being changed while no CPU is inside the allocator",
    "a settled pageblock's state has the largest order of its free blocks",
    "a pageblock that is not settled is in the set of unsettled ones, or a CPU keeps it",
    "a pageblock is in the set of its largest free block",
];

/// The frames of a pageblock.
const PAGEBLOCK: u64 = 512;

fn nothing(_: &World) -> Blocks {
    Vec::new()
}

#[test]
fn an_allocation_of_any_order() {
    for of in [0, 3, 6, 7, 8, 9, 10] {
        let held_max = u64::from(order(of).frames()).max(PAGEBLOCK);
        stop_at_each_step(held_max, nothing, move |world, _| {
            world.alloc(CPU, order(of), MOVABLE).into_iter().collect()
        });
    }
}

#[test]
fn an_allocation_from_the_pageblock_at_hand() {
    stop_at_each_step(1, |world| world.take(CPU, 0, 1), one_more);
}

fn one_more(world: &World, mut blocks: Blocks) -> Blocks {
    blocks.extend(world.alloc(CPU, Order::ZERO, MOVABLE));
    blocks
}

#[test]
fn an_allocation_when_memory_is_short() {
    // All memory is in use except some blocks of order 3.
    let short = |world: &World| {
        let large = world.take(OTHER, 3, 64);
        let pages = world.take_all(OTHER);
        let (freed, left) = (large[..40].to_vec(), large[40..].to_vec());
        world.give(THIRD, freed);
        world.mailbox.lock().expect("nobody panicked").extend(left.into_iter().chain(pages));
    };
    let is_over = StdArc::new(Flag::new(false));
    let scheduler = StopAt { step: 0, left: 0, is_over: is_over.clone() };
    check_with(scheduler, move || {
        let world = Arc::new(World::new(3));
        short(&world);
        let is_done = StdArc::new(Flag::new(false));
        let stopped = {
            let (world, is_done) = (world.clone(), is_done.clone());
            thread::spawn(move || {
                let block = world.alloc(CPU, Order::ZERO, MOVABLE);
                is_done.store(true, Relaxed);
                block
            })
        };
        thread::yield_now();
        is_over.store(is_done.load(Relaxed), Relaxed);
        // The other CPUs get the other free memory, whatever the stopped CPU is doing.
        let all = world.take_all(OTHER);
        assert!(all.len() as u64 + PAGEBLOCK >= 40 * 8, "{} frames", all.len());
        let block = stopped.join().expect("it ends");
        world.give(THIRD, all);
        world.give(CPU, block.into_iter().collect());
        world.end();
    });
}

#[test]
fn a_free_of_any_order_to_its_own_pageblock() {
    for of in [0, 3, 7, 9, 10] {
        let one = move |world: &World| world.take(CPU, of, 1);
        stop_at_each_step(2 * PAGEBLOCK, one, |world, blocks| {
            world.give(CPU, blocks);
            Vec::new()
        });
    }
}

#[test]
fn a_free_to_a_pageblock_of_another_cpu() {
    for of in [0, 3, 8, 9] {
        let theirs = move |world: &World| world.take(OTHER, of, 1);
        stop_at_each_step(PAGEBLOCK, theirs, |world, blocks| {
            world.give(CPU, blocks);
            Vec::new()
        });
    }
}

/// The last block of a pageblock is freed after its owner gave the pageblock up.
#[test]
fn a_free_that_makes_a_pageblock_whole() {
    for of in [0, 6, 8] {
        let last = move |world: &World| {
            let blocks = world.take(OTHER, of, 1);
            world.allocator.drain_cpu(OTHER).expect("it is a CPU");
            blocks
        };
        stop_at_each_step(PAGEBLOCK, last, |world, blocks| {
            world.give(CPU, blocks);
            Vec::new()
        });
    }
}

#[test]
fn many_at_once() {
    stop_at_each_step(2 * PAGEBLOCK, nothing, |world, _| {
        let mut pages = [None; 70];
        // When CPU 0 goes on, other CPUs have all the memory.
        let _ = world.allocator.alloc_bulk(CPU, &request(0), &mut pages);
        let blocks: Blocks = pages.into_iter().flatten().map(|pfn| (pfn, Order::ZERO)).collect();
        world.allocator.free_batch(CPU, &blocks).expect("they are in use");
        if let Ok(word) = world.allocator.alloc_row(CPU, &request(2), 10) {
            assert_eq!(world.allocator.free_row(CPU, word), None);
        }
        Vec::new()
    });
}

#[test]
fn exact_counts_and_parts() {
    for frames in [300, 700] {
        stop_at_each_step(3 * PAGEBLOCK, nothing, move |world, _| {
            // When CPU 0 goes on, other CPUs may have all memory, or may be changing the pageblock.
            if let Ok(pfn) = world.allocator.alloc_exact(CPU, frames, &request(0)) {
                let _ = world.allocator.split_range(CPU, pfn.0 + 10..pfn.0 + 20);
                world.allocator.free_range(CPU, pfn.0..pfn.0 + frames).expect("it is in use");
            }
            Vec::new()
        });
    }
}

#[test]
fn a_given_place() {
    for (pfn, of) in [(FRAMES - 1, 0), (FRAMES - 8, 3), (FRAMES - 512, 9), (FRAMES - 1024, 10)] {
        stop_at_each_step(3 * PAGEBLOCK, nothing, move |world, _| {
            if world.allocator.alloc_at(CPU, Pfn(pfn), &request(of)).is_err() {
                return Vec::new();
            }
            world.mark(Pfn(pfn), u64::from(order(of).frames()), true);
            vec![(Pfn(pfn), order(of))]
        });
    }
}

/// Prepares a reserved pageblock, a pageblock in the stock, and a pageblock with some free parts.
fn all_kinds(world: &World) -> Blocks {
    let theirs = world.take(OTHER, 0, 40);
    let mut ours = world.take(CPU, 0, 30);
    ours.extend(world.take(CPU, 9, 1));
    world.give(CPU, theirs);
    world.give(CPU, ours.split_off(10));
    ours
}

#[test]
fn a_tick_and_a_drain() {
    let held_max = 2 * PAGEBLOCK + 40;
    stop_at_each_step(held_max, all_kinds, |world, blocks| {
        for _ in 0..3 {
            world.allocator.tick(CPU).expect("it is a CPU");
        }
        blocks
    });
    stop_at_each_step(held_max, all_kinds, |world, blocks| {
        world.allocator.drain_all();
        blocks
    });
}

#[test]
fn a_cpu_that_leaves_and_comes_back() {
    stop_at_each_step(2 * PAGEBLOCK + 40, all_kinds, |world, blocks| {
        world.allocator.cpu_offline(CPU).expect("it is a CPU");
        world.allocator.cpu_online(CPU).expect("it is a CPU");
        blocks
    });
}

#[test]
fn pageblocks_out_of_service() {
    stop_at_each_step(3 * PAGEBLOCK + 40, all_kinds, |world, blocks| {
        for pfn in [blocks[0].0, Pfn(FRAMES - 1)] {
            world.allocator.isolate_pageblock(CPU, pfn).expect("it is in service");
            world.allocator.unisolate_pageblock(CPU, pfn, MOVABLE).expect("it is out of service");
        }
        blocks
    });
}

#[test]
fn a_frame_out_of_service() {
    stop_and_lose(3 * PAGEBLOCK + 40, 1, all_kinds, |world, mut blocks| {
        let (bad, _) = blocks.pop().expect("there are some");
        world.mark(bad, 1, false);
        world.allocator.mark_bad(CPU, bad).expect("it is in use");
        blocks
    });
}

/// CPU 0 stops in the middle of `add_memory`. The other CPUs can still take all memory that was there before.
#[test]
fn memory_that_is_added() {
    const BEFORE: u64 = 4 * PAGEBLOCK;
    const ADDED: u64 = PAGEBLOCK + 100;
    let is_over = StdArc::new(Flag::new(false));
    let scheduler = StopAt { step: 0, left: 0, is_over: is_over.clone() };
    check_with(scheduler, move || {
        let world = Arc::new(World::with_memory(3, BEFORE));
        let is_done = StdArc::new(Flag::new(false));
        let stopped = {
            let (world, is_done) = (world.clone(), is_done.clone());
            thread::spawn(move || {
                world.allocator.add_memory(CPU, BEFORE..BEFORE + ADDED).expect("they are holes");
                is_done.store(true, Relaxed);
            })
        };
        thread::yield_now();
        is_over.store(is_done.load(Relaxed), Relaxed);
        for cpu in [OTHER, THIRD] {
            let all = world.take_all(cpu);
            assert!((BEFORE..=BEFORE + ADDED).contains(&(all.len() as u64)), "{} frames", all.len());
            world.give(OTHER, all);
            world.allocator.tick(cpu).expect("it is a CPU");
        }
        // Another CPU adds the rest of the pageblock. The call of `add_memory` is an error while CPU 0 is
        // beginning to add the pageblock.
        let add_rest = || world.allocator.add_memory(OTHER, BEFORE + ADDED..BEFORE + 2 * PAGEBLOCK);
        let is_added = add_rest().is_ok();
        stopped.join().expect("it ends");
        if !is_added {
            add_rest().expect("nothing of it was added");
        }
        world.end();
    });
}
