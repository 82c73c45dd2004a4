//! Concurrent use under shuttle, which decides at every atomic operation which thread runs next: no frame is ever owned twice,
//! whatever the schedule, in the end every frame is accounted for, and a thread that stops for ever blocks nobody.
//!
//! Needs `RUSTFLAGS="--cfg shuttle"`, and is empty otherwise; `ci/shuttle.sh` runs it. `SHUTTLE_ITERATIONS` sets the number of
//! schedules. The schedule of a failure is printed, and `shuttle::replay` takes it.
#![cfg(shuttle)]

#[path = "shuttle/random.rs"]
mod random;
#[path = "shuttle/world.rs"]
mod world;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pageset_blocks::RemoteFrees;
use pageset_core::{CpuId, FreeError, MigrateType, Order, Pfn, Request, RequestTraits};
use random::{check, iterations};
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{RandomScheduler, Schedule, Scheduler, Task, TaskId};
use shuttle::sync::Arc;
use shuttle::thread;
use world::{FRAMES, World, check_with};

const STEPS: u32 = 12;

/// Runs task 1 up to a random step, and never again while another task can run.
struct Stopping {
    random: RandomScheduler,
    /// Steps that task 1 still makes.
    left: u64,
}

/// The first thread that a test starts.
const STOPPED: usize = 1;

impl Scheduler for Stopping {
    fn new_execution(&mut self) -> Option<Schedule> {
        let schedule = self.random.new_execution();
        self.left = self.random.next_u64() % 400;
        schedule
    }

    fn next_task(&mut self, runnable: &[&Task], current: Option<TaskId>, yields: bool) -> Option<TaskId> {
        let is_stopped = |task: &&Task| usize::from(task.id()) == STOPPED;
        let others: Vec<&Task> = runnable.iter().copied().filter(|task| !is_stopped(task)).collect();
        let choice = if self.left == 0 && !others.is_empty() { &others } else { runnable };
        let next = self.random.next_task(choice, current, yields)?;
        if usize::from(next) == STOPPED {
            self.left = self.left.saturating_sub(1);
        }
        Some(next)
    }

    fn next_u64(&mut self) -> u64 {
        self.random.next_u64()
    }
}

impl World {
    fn step(&self, cpu: CpuId, mine: &mut Vec<(Pfn, Order)>) {
        const ORDERS: [u8; 8] = [0, 0, 0, 3, 6, 8, 9, 10];
        let mut random = thread_rng();
        match random.gen_range(0..13) {
            0..5 => {
                let order = Order::new(ORDERS[random.gen_range(0..ORDERS.len())]).expect("small");
                let migratetype = MigrateType::ALL[random.gen_range(0..2)];
                mine.extend(self.alloc(cpu, order, migratetype));
            }
            5..8 if !mine.is_empty() => {
                let block = mine.swap_remove(random.gen_range(0..mine.len()));
                self.free(cpu, block);
            }
            8 => {
                let mut mailbox = self.mailbox.lock().expect("nobody panicked");
                let half = mine.len() / 2;
                let given: Vec<_> = mine.drain(..half).collect();
                mine.append(&mut mailbox);
                mailbox.extend(given);
            }
            9 => {
                let pfn = Pfn(random.gen_range(0..FRAMES));
                let request = Request::new(Order::ZERO).movable();
                if self.allocator.alloc_at(cpu, pfn, &request).is_ok() {
                    self.mark(pfn, 1, true);
                    mine.push((pfn, Order::ZERO));
                }
            }
            10 => {
                let frames = random.gen_range(1..700);
                let request = Request::new(Order::ZERO).movable().with(RequestTraits::NO_WATERMARKS);
                if let Ok(pfn) = self.allocator.alloc_exact(cpu, frames, &request) {
                    self.mark(pfn, frames, true);
                    self.mark(pfn, frames, false);
                    // Another CPU may be at the pageblock; then it stays as it is.
                    let is_split = self.allocator.split_range(cpu, pfn.0..pfn.0 + frames).is_ok();
                    if is_split && frames < 20 {
                        for frame in pfn.0..pfn.0 + frames {
                            self.allocator.free(cpu, Pfn(frame), Order::ZERO).expect("it is in use");
                        }
                    } else {
                        self.allocator.free_range(cpu, pfn.0..pfn.0 + frames).expect("it is in use");
                    }
                }
            }
            11 => {
                let order = Order::new([0, 3, 6][random.gen_range(0..3)]).expect("small");
                let request = Request::new(order).movable().with(RequestTraits::NO_WATERMARKS);
                if let Ok(word) = self.allocator.alloc_word(cpu, &request, random.gen_range(1..64)) {
                    let frames = u64::from(order.frames());
                    word.for_each(|pfn| self.mark(pfn, frames, true));
                    word.for_each(|pfn| self.mark(pfn, frames, false));
                    assert_eq!(self.allocator.free_word(cpu, word), None, "all of it is in use");
                }
            }
            _ => {
                self.allocator.tick(cpu).expect("it is a CPU");
            }
        }
    }
}

fn programs(threads: u32, cpus: u32, rule: RemoteFrees) {
    check(move || {
        let world = World::new(cpus as usize, rule);
        let world = Arc::new(if thread_rng().gen_bool(0.5) { world } else { world.apart() });
        let threads: Vec<_> = (0..threads)
            .map(|thread| {
                let world = world.clone();
                thread::spawn(move || {
                    let mut mine = Vec::new();
                    // With more threads than CPUs, some share a number.
                    (0..STEPS).for_each(|_| world.step(CpuId(thread % cpus), &mut mine));
                    world.mailbox.lock().expect("nobody panicked").append(&mut mine);
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
        world.end();
    });
}

#[test]
fn two_cpus_that_give_back_at_once() {
    programs(2, 2, RemoteFrees::AtOnce);
}

#[test]
fn three_cpus_that_keep_what_they_free() {
    programs(3, 3, RemoteFrees::Kept);
}

#[test]
fn three_threads_as_two_cpus() {
    programs(3, 2, RemoteFrees::Kept);
}

/// The last frame of a pageblock is freed while its owner is done with it: somebody makes the pageblock whole.
#[test]
fn a_pageblock_that_becomes_free_while_its_owner_leaves_is_whole() {
    check(|| {
        let world = Arc::new(World::new(2, RemoteFrees::AtOnce).apart());
        let page = world.alloc(CpuId(0), Order::ZERO, MigrateType::Movable).expect("there is memory");
        let freer = {
            let world = world.clone();
            thread::spawn(move || world.free(CpuId(1), page))
        };
        world.allocator.drain_cpu(CpuId(0)).expect("it is a CPU");
        freer.join().expect("it ends");
        // Nobody asks for memory, and no tick comes.
        let whole: u64 = world.allocator.zones().map(|zone| zone.whole_pageblocks).sum();
        assert_eq!(whole, FRAMES / 512);
    });
}

/// A block comes back while its pageblock is being mixed; parts of it are taken and freed at once.
#[test]
fn neighbours_in_a_pageblock_that_was_just_mixed_are_told_apart() {
    check(|| {
        let world = Arc::new(World::new(3, RemoteFrees::AtOnce).apart());
        let eight = Order::new(3).expect("small");
        let request = |order| Request::new(order).movable().with(RequestTraits::NO_WATERMARKS);
        let block = world.alloc(CpuId(0), eight, MigrateType::Movable).expect("memory is free");
        let first = block.0;
        let part = |cpu: u32, pfn: Pfn| {
            let world = world.clone();
            thread::spawn(move || {
                for _ in 0..6 {
                    if world.allocator.alloc_at(CpuId(cpu), pfn, &request(Order::ZERO)).is_ok() {
                        world.mark(pfn, 1, true);
                        assert_eq!(world.allocator.block_in_use(pfn), Some((pfn, Order::ZERO)));
                        world.free(CpuId(cpu), (pfn, Order::ZERO));
                    }
                }
            })
        };
        let mixing = part(1, first);
        let other = part(2, Pfn(first.0 + 1));
        world.free(CpuId(0), block);
        [mixing, other].into_iter().for_each(|thread| thread.join().expect("nobody panics"));
        world.end();
    });
}

/// Neighbours take their first block at once, free it, and are idle now and then: of the pageblocks that they claim, one is theirs,
/// and each of the others is whole again.
#[test]
fn neighbours_that_claim_at_once_share_one() {
    check(|| {
        let world = Arc::new(World::new(3, RemoteFrees::Kept));
        let neighbour = |cpu: u32| {
            let world = world.clone();
            thread::spawn(move || {
                for _ in 0..4 {
                    let block = world.alloc(CpuId(cpu), Order::ZERO, MigrateType::Movable);
                    block.into_iter().for_each(|block| world.free(CpuId(cpu), block));
                    if thread_rng().gen_bool(0.5) {
                        world.allocator.drain_cpu(CpuId(cpu)).expect("it is one of the CPUs");
                    }
                }
            })
        };
        let neighbours = [0, 1, 2].map(neighbour);
        neighbours.into_iter().for_each(|thread| thread.join().expect("nobody panics"));
        world.end();
    });
}

/// A consumer collects the pages of the pageblock from which its producer allocates, and a third thread makes it give them
/// back, or allocates as the same CPU meanwhile.
#[test]
fn what_a_consumer_collects_is_lost_nowhere() {
    /// All lists together have room for so many here (`FRAMES_MAX`).
    const LISTED_MAX: u64 = 16;
    static COLLECTED: AtomicUsize = AtomicUsize::new(0);
    check(|| {
        let world = Arc::new(World::new(2, RemoteFrees::Kept).apart());
        let producer = {
            let world = world.clone();
            thread::spawn(move || {
                for _ in 0..60 {
                    let page = world.alloc(CpuId(0), Order::ZERO, MigrateType::Movable);
                    world.mailbox.lock().expect("nobody panicked").extend(page);
                }
                // Sometimes the pageblock stays in use, sometimes not.
                if thread_rng().gen_bool(0.3) {
                    world.allocator.drain_cpu(CpuId(0)).expect("it is one of the CPUs");
                }
            })
        };
        let consumer = {
            let world = world.clone();
            thread::spawn(move || {
                let mut freed = 0;
                while freed < 40 {
                    let pages = std::mem::take(&mut *world.mailbox.lock().expect("nobody panicked"));
                    freed += pages.len();
                    pages.into_iter().for_each(|page| world.free(CpuId(1), page));
                    thread::yield_now();
                }
            })
        };
        let other = {
            let world = world.clone();
            thread::spawn(move || {
                for _ in 0..4 {
                    match thread_rng().gen_range(0..4) {
                        0 => drop(world.allocator.tick(CpuId(1)).expect("it is one of the CPUs")),
                        1 => world.allocator.drain_cpu(CpuId(1)).expect("it is one of the CPUs"),
                        _ => {
                            let page = world.alloc(CpuId(1), Order::ZERO, MigrateType::Movable);
                            world.mailbox.lock().expect("nobody panicked").extend(page);
                        }
                    }
                }
            })
        };
        [producer, consumer, other].into_iter().for_each(|thread| thread.join().expect("nobody panics"));
        let held: u64 = world.allocator.zones().map(|zone| zone.held).sum();
        COLLECTED.fetch_add(usize::from(held > LISTED_MAX), Relaxed);
        world.end();
    });
    assert!(COLLECTED.load(Relaxed) > 0 || iterations() < 500, "no schedule collected anything");
}

/// A CPU that stops in the middle of any operation blocks nobody: the others do all they have to do before it goes on.
#[test]
fn a_thread_that_stops_blocks_nobody() {
    let scheduler = Stopping { random: RandomScheduler::new(iterations()), left: 0 };
    check_with(scheduler, || {
        let world = World::new(3, RemoteFrees::Kept);
        let world = Arc::new(if thread_rng().gen_bool(0.5) { world } else { world.apart() });
        // Beyond its own steps, the stopped thread touches nothing that others lock.
        let stopped = {
            let world = world.clone();
            thread::spawn(move || {
                let request = |order| Request::new(order).with(RequestTraits::NO_WATERMARKS);
                let mut mine = Vec::new();
                for order in [0, 3, 9, 0, 8, 10].map(|order| Order::new(order).expect("small")) {
                    if let Ok(pfn) = world.allocator.alloc(CpuId(0), &request(order)) {
                        mine.push((pfn, order));
                    }
                    world.allocator.tick(CpuId(0)).expect("it is a CPU");
                }
                for (pfn, order) in mine {
                    world.allocator.free(CpuId(0), pfn, order).expect("it is in use");
                }
            })
        };
        let others: Vec<_> = (1..3)
            .map(|cpu| {
                let world = world.clone();
                thread::spawn(move || {
                    let mut mine = Vec::new();
                    (0..STEPS).for_each(|_| world.step(CpuId(cpu), &mut mine));
                    mine.into_iter().for_each(|block| world.free(CpuId(cpu), block));
                })
            })
            .collect();
        // They end first: the other one runs only when nobody else can.
        others.into_iter().for_each(|thread| thread.join().expect("it ends"));
        stopped.join().expect("it ends");
        world.end();
    });
}

/// Three CPUs own parts of one block, and free them at once; one of them may split its part before.
#[test]
fn fault_02_parts_of_a_block_that_are_freed_at_once_are_all_freed() {
    check(|| {
        let world = World::new(3, RemoteFrees::AtOnce);
        let world = Arc::new(if thread_rng().gen_bool(0.5) { world } else { world.apart() });
        let order = Order::new([4, 7, 9, 10][thread_rng().gen_range(0..4)]).expect("small");
        let (start, _) = world.alloc(CpuId(0), order, MigrateType::Movable).expect("memory is free");
        let frames = u64::from(order.frames());
        let mut cuts = [0, thread_rng().gen_range(0..=frames), frames / 2, frames];
        cuts.sort_unstable();
        world.mark(start, frames, false);
        let part = |cpu: u32| {
            let world = world.clone();
            let part = start.0 + cuts[cpu as usize]..start.0 + cuts[cpu as usize + 1];
            thread::spawn(move || {
                let cpu = CpuId(cpu);
                let is_split = thread_rng().gen_bool(0.3);
                while is_split && !part.is_empty() {
                    let split = world.allocator.split_range(cpu, part.clone());
                    if !matches!(split, Err(FreeError::Busy(_))) {
                        split.expect("it is in use");
                        break;
                    }
                    thread::yield_now();
                }
                let mut rest = part;
                while !rest.is_empty() {
                    match world.allocator.free_range(cpu, rest.clone()) {
                        Err(FreeError::Busy(pfn)) => rest.start = pfn.0,
                        freed => {
                            freed.expect("it is in use");
                            break;
                        }
                    }
                    thread::yield_now();
                }
                // It may get frames that another one is about to mark, and is not to.
                let block = world.alloc(cpu, Order::new(2).expect("small"), MigrateType::Movable);
                block.into_iter().for_each(|block| world.free(cpu, block));
            })
        };
        [0, 1, 2].map(part).into_iter().for_each(|thread| thread.join().expect("nobody panics"));
        world.end();
    });
}

/// Two CPUs free the same block, or parts of it, while a third one takes and frees blocks: the tables agree with each other, and every
/// frame can be freed.
#[test]
fn fault_18_racing_double_frees_leave_tables_that_agree() {
    check(|| {
        let world = World::new(3, RemoteFrees::AtOnce);
        let world = Arc::new(if thread_rng().gen_bool(0.5) { world } else { world.apart() });
        let request = |order| Request::new(order).movable().with(RequestTraits::NO_WATERMARKS);
        let order = Order::new([0, 1, 3, 7, 9, 10][thread_rng().gen_range(0..6)]).expect("small");
        let frames = u64::from(order.frames());
        let pfn = world.allocator.alloc(CpuId(0), &request(order)).expect("memory is free");
        let freer = |cpu: u32| {
            let world = world.clone();
            thread::spawn(move || {
                let end = pfn.0 + thread_rng().gen_range(1..=frames);
                let _ = match thread_rng().gen_bool(0.6) {
                    true => world.allocator.free(CpuId(cpu), pfn, order),
                    false => world.allocator.free_range(CpuId(cpu), pfn.0..end),
                };
            })
        };
        let user = {
            let world = world.clone();
            thread::spawn(move || {
                for _ in 0..6 {
                    let order = Order::new([0, 1, 3, 9][thread_rng().gen_range(0..4)]).expect("small");
                    if let Ok(pfn) = world.allocator.alloc(CpuId(2), &request(order)) {
                        let _ = world.allocator.free(CpuId(2), pfn, order);
                    }
                }
            })
        };
        let threads = [freer(0), freer(1), user];
        threads.into_iter().for_each(|thread| thread.join().expect("nobody panics"));
        let census = || world.allocator.validate().unwrap_or_else(|violation| panic!("{violation}"));
        world.allocator.drain_all();
        census();
        for pfn in (0..FRAMES).filter(|pfn| world.allocator.block_in_use(Pfn(*pfn)).is_some()) {
            world.allocator.free_range(CpuId(0), pfn..pfn + 1).expect("it is in use");
        }
        world.allocator.drain_all();
        assert_eq!((census().free, census().allocated), (FRAMES, 0));
    });
}
