//! Tests concurrent use under shuttle, which decides at every atomic operation which thread runs next. In
//! each schedule that the tests try, no frame has two owners, wrong calls leave the tables consistent, and at
//! the end every frame is accounted for.
//!
//! These tests need `RUSTFLAGS="--cfg shuttle"`, and are empty otherwise. `cargo xtask ci night shuttle` runs
//! them. `SHUTTLE_ITERATIONS` sets the number of schedules. A failure prints its schedule, which
//! `shuttle::replay` accepts.
#![cfg(shuttle)]

#[path = "shuttle/world.rs"]
mod world;

use pageset_core::{CpuId, FreeError, MigrateType, Order, Pfn, Request, RequestTraits};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Arc;
use shuttle::thread;
use world::{Blocks, World, check, order};

/// Frames of the machine: only four pageblocks, so that threads often use the same pageblock and memory is
/// short.
const FRAMES: u64 = 4 * 512;
const STEPS: u32 = 12;
const ORDERS: [u8; 9] = [0, 0, 0, 3, 5, 6, 8, 9, 10];

impl World {
    fn step(&self, cpu: CpuId, mine: &mut Blocks) {
        let mut random = thread_rng();
        match random.gen_range(0..13) {
            0..5 => {
                let order = order(ORDERS[random.gen_range(0..ORDERS.len())]);
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
                let of = order([0, 6][random.gen_range(0..2)]);
                let frames = u64::from(of.frames());
                let pfn = Pfn(random.gen_range(0..FRAMES / frames) * frames);
                let request = Request::new(of).movable();
                if self.allocator.alloc_at(cpu, pfn, &request).is_ok() {
                    self.mark(pfn, frames, true);
                    mine.push((pfn, of));
                }
            }
            10 => self.use_exact(cpu, random.gen_range(1..700)),
            11 => {
                let request = request(random.gen_range(0..7));
                if let Ok(word) = self.allocator.alloc_row(cpu, &request, random.gen_range(1..32)) {
                    let frames = u64::from(request.order.frames());
                    word.for_each(|pfn| self.mark(pfn, frames, true));
                    word.for_each(|pfn| self.mark(pfn, frames, false));
                    assert_eq!(self.allocator.free_row(cpu, word), None, "all of it is in use");
                }
            }
            _ => {
                self.allocator.tick(cpu).expect("it is a CPU");
            }
        }
    }

    fn use_exact(&self, cpu: CpuId, frames: u64) {
        let Ok(Pfn(start)) = self.allocator.alloc_exact(cpu, frames, &request(0)) else { return };
        self.mark(Pfn(start), frames, true);
        self.mark(Pfn(start), frames, false);
        if frames < 40 {
            self.allocator.split_range(cpu, start..start + frames).expect("it is in use");
            for frame in start..start + frames {
                self.allocator.free(cpu, Pfn(frame), Order::ZERO).expect("it is in use");
            }
        } else {
            self.allocator.free_range(cpu, start..start + frames).expect("it is in use");
        }
    }

    /// A step of a thread that allocates and frees, and also frees frames that it does not own.
    fn misuse(&self, cpu: CpuId, mine: &mut Blocks) {
        let mut random = thread_rng();
        let allocator = &self.allocator;
        match random.gen_range(0..10) {
            0..4 => {
                let of = order(ORDERS[random.gen_range(0..ORDERS.len())]);
                if let Ok(pfn) = allocator.alloc(cpu, &request(of.get())) {
                    mine.push((pfn, of));
                    self.mailbox.lock().expect("nobody panicked").push((pfn, of));
                }
            }
            4..6 if !mine.is_empty() => {
                let (pfn, of) = mine.swap_remove(random.gen_range(0..mine.len()));
                let _ = match random.gen_range(0..2) {
                    0 => allocator.free(cpu, pfn, of),
                    _ => allocator.free_range(cpu, pfn.0..pfn.0 + u64::from(of.frames())),
                };
            }
            6 => allocator.drain_all(),
            7 | 8 => {
                let known = self.mailbox.lock().expect("nobody panicked").clone();
                if let Some((pfn, of)) = known.get(random.gen_range(0..known.len().max(1))).copied() {
                    let _ = allocator.free(cpu, pfn, order((of.get() + random.gen_range(0..2)).min(10)));
                }
            }
            _ => {
                let start = random.gen_range(0..FRAMES / 32) * 32 + random.gen_range(0..2) * 5;
                let range = start..start + [1, 8, 32, 64, 100, 600][random.gen_range(0..6)];
                let _ = match random.gen_range(0..3) {
                    0 => allocator.split_range(cpu, range),
                    _ => allocator.free_range(cpu, range),
                };
            }
        }
    }

    /// Checks that the tables are consistent at the end, and that all frames in use can be freed.
    fn end_misuse(&self) {
        self.allocator.drain_all();
        self.allocator.validate().unwrap_or_else(|violation| panic!("{violation}"));
        for pfn in 0..FRAMES {
            if self.allocator.block_in_use(Pfn(pfn)).is_some() {
                assert_eq!(self.allocator.free_range(CpuId(0), pfn..pfn + 1), Ok(()), "{pfn}");
            }
        }
        self.mailbox.lock().expect("nobody panicked").clear();
        self.end();
    }
}

fn request(of: u8) -> Request {
    Request::new(order(of)).movable().with(RequestTraits::NO_WATERMARKS)
}

/// Runs `threads` threads as `cpus` CPUs.
fn run(
    world: &Arc<World>,
    threads: u32,
    cpus: u32,
    step: impl Fn(&World, CpuId, &mut Blocks) + Send + Copy + 'static,
) {
    let threads: Vec<_> = (0..threads)
        .map(|thread| {
            let world = world.clone();
            thread::spawn(move || {
                let mut mine = Vec::new();
                // If there are more threads than CPUs, some threads share a CPU.
                (0..STEPS).for_each(|_| step(&world, CpuId(thread % cpus), &mut mine));
                mine
            })
        })
        .collect();
    for thread in threads {
        let mine = thread.join().expect("it ends");
        world.left.lock().expect("nobody panicked").extend(mine);
    }
}

fn programs(threads: u32, cpus: u32) {
    check(move || {
        let world = Arc::new(World::new(cpus as usize));
        run(&world, threads, cpus, World::step);
        let left = std::mem::take(&mut *world.left.lock().expect("nobody panicked"));
        world.mailbox.lock().expect("nobody panicked").extend(left);
        world.end();
    });
}

#[test]
fn two_cpus() {
    programs(2, 2);
}

#[test]
fn three_cpus() {
    programs(3, 3);
}

#[test]
fn three_threads_as_two_cpus() {
    programs(3, 2);
}

#[test]
fn threads_that_free_what_is_not_theirs_leave_tables_consistent() {
    for threads in [2, 3] {
        check(move || {
            let world = Arc::new(World::new(threads as usize));
            run(&world, threads, threads, World::misuse);
            world.end_misuse();
        });
    }
}

/// One thread frees a part of a block that fills a row. Another thread frees the whole block meanwhile, and
/// takes a larger block with the same row.
#[test]
fn a_free_of_a_row_while_it_becomes_a_part_of_a_larger_block_frees_whole_blocks() {
    check(|| {
        let world = Arc::new(World::new(2));
        let Pfn(start) = world.allocator.alloc(CpuId(0), &request(7)).expect("memory enough");
        let free = world.allocator.free_range(CpuId(0), start..start + 64);
        let free = free.and(world.allocator.free_range(CpuId(0), start + 96..start + 128));
        assert_eq!(free, Ok(()));
        let row = start + 64;
        let wrong = {
            let world = world.clone();
            thread::spawn(move || {
                let _ = world.allocator.free_range(CpuId(1), row..row + 32);
            })
        };
        let _ = world.allocator.free(CpuId(0), Pfn(row), order(5));
        let _ = world.allocator.alloc_at(CpuId(0), Pfn(start), &request(7));
        wrong.join().expect("it ends");
        world.end_misuse();
    });
}

/// Frames pass from one owner to another. Meanwhile a wrong free of these frames must not report that the
/// frames are out of service.
#[test]
fn frames_that_another_cpu_takes_or_frees_are_not_called_leaked() {
    check(|| {
        let world = Arc::new(World::new(2));
        let Pfn(block) = world.allocator.alloc(CpuId(1), &request(8)).expect("memory enough");
        let freeing = {
            let world = world.clone();
            thread::spawn(move || {
                assert_eq!(world.allocator.free(CpuId(1), Pfn(block), order(8)), Ok(()));
                world.use_exact(CpuId(1), 200);
            })
        };
        for start in [block + 64, block + 200] {
            let refused = world.allocator.free_range(CpuId(0), start..2 * FRAMES);
            let is_right =
                matches!(refused, Err(FreeError::DoubleFree(_) | FreeError::Foreign(_) | FreeError::Busy(_)));
            assert!(is_right, "{refused:?}");
        }
        freeing.join().expect("it ends");
        world.end();
    });
}

/// The last frame in use of a pageblock is freed. One CPU begins to make the pageblock whole, and another
/// CPU takes a block of it.
#[test]
fn a_pageblock_that_was_nearly_made_whole_is_found_again() {
    check(|| {
        let world = Arc::new(World::new(2));
        let of = order(4);
        let block = world.alloc(CpuId(0), of, MigrateType::Movable).expect("memory enough");
        world.allocator.drain_all();
        let user = {
            let world = world.clone();
            thread::spawn(move || {
                let block = world.alloc(CpuId(1), of, MigrateType::Movable).expect("memory enough");
                let second = world.alloc(CpuId(1), of, MigrateType::Movable).expect("memory enough");
                world.free(CpuId(1), block);
                second
            })
        };
        world.free(CpuId(0), block);
        let second = user.join().expect("it ends");
        world.allocator.validate().unwrap_or_else(|violation| panic!("{violation}"));
        world.free(CpuId(0), second);
        world.end();
    });
}

/// Two CPUs own parts of one block, and free them at once.
#[test]
fn parts_of_a_block_that_two_cpus_free_at_once_are_all_freed() {
    check(|| {
        let world = Arc::new(World::new(2));
        let mut random = thread_rng();
        let of = [6, 7, 8, 9, 10][random.gen_range(0..5)];
        let frames = u64::from(order(of).frames());
        let Pfn(start) = world.allocator.alloc(CpuId(0), &request(of)).expect("memory enough");
        let cut = start + [frames / 2, 1, frames / 4, frames - 5][random.gen_range(0..4)];
        let splits = [random.gen_bool(0.3), random.gen_bool(0.3)];
        let free = move |world: &World, cpu: u32, part: std::ops::Range<u64>| {
            let retried = |mut call: Box<dyn FnMut() -> Result<(), FreeError> + '_>| loop {
                match call() {
                    Err(FreeError::Busy(_)) => thread::yield_now(),
                    outcome => return outcome,
                }
            };
            if splits[cpu as usize] {
                let split = || world.allocator.split_range(CpuId(cpu), part.clone());
                assert_eq!(retried(Box::new(split)), Ok(()));
            }
            let mut rest = part.clone();
            let free = || {
                let freed = world.allocator.free_range(CpuId(cpu), rest.clone());
                if let Err(FreeError::Busy(Pfn(at))) = freed {
                    rest.start = at;
                }
                freed
            };
            assert_eq!(retried(Box::new(free)), Ok(()));
        };
        let other = {
            let world = world.clone();
            thread::spawn(move || free(&world, 1, cut..start + frames))
        };
        free(&world, 0, start..cut);
        other.join().expect("it ends");
        world.end();
    });
}

/// One CPU frees the last frame in use of a pageblock while the reserving CPU gives the pageblock up. One of
/// the two CPUs makes the pageblock whole.
#[test]
fn a_pageblock_that_becomes_free_while_its_owner_leaves_is_whole() {
    for of in [0, 5, 7] {
        check(move || {
            let world = Arc::new(World::new(2));
            let block = world.alloc(CpuId(0), order(of), MigrateType::Movable).expect("there is memory");
            let freer = {
                let world = world.clone();
                thread::spawn(move || world.free(CpuId(1), block))
            };
            world.allocator.drain_cpu(CpuId(0)).expect("it is a CPU");
            freer.join().expect("it ends");
            // The pageblock is whole without a further request or tick.
            let whole: u64 = world.allocator.zones().map(|zone| zone.whole_pageblocks).sum();
            assert_eq!(whole, FRAMES / 512);
        });
    }
}

/// A CPU that fails to take a block of several rows holds some of the rows for a moment. Another CPU that
/// settles the pageblock meanwhile does not see these rows as free. At the end, the state must have the
/// orders of all free blocks.
#[test]
fn rows_that_were_taken_in_vain_are_found_again() {
    check(|| {
        let world = Arc::new(World::new(2));
        let blocks: Blocks =
            (0..16).filter_map(|_| world.alloc(CpuId(0), order(5), MigrateType::Movable)).collect();
        let (freed, kept): (Blocks, Blocks) = blocks.into_iter().partition(|(pfn, _)| pfn.0 % 128 < 64);
        freed.into_iter().for_each(|block| world.free(CpuId(0), block));
        let other = {
            let world = world.clone();
            thread::spawn(move || {
                let place = Pfn(kept[0].0.0 / 128 * 128);
                assert!(world.allocator.alloc_at(CpuId(1), place, &request(7)).is_err());
                kept
            })
        };
        world.allocator.drain_cpu(CpuId(0)).expect("it is a CPU");
        let mut kept = other.join().expect("it ends");
        world.allocator.validate().unwrap_or_else(|violation| panic!("{violation}"));
        kept.drain(..).for_each(|block| world.free(CpuId(0), block));
    });
}

/// A CPU takes a run, loses its pageblock to an isolation, and returns the run. Another CPU takes the same
/// frames as part of a larger block before the first CPU is done. The block stays whole.
#[test]
fn a_run_that_is_returned_leaves_the_next_owners_block_alone() {
    check(|| {
        let world = Arc::new(World::new(2));
        let kept = world.alloc(CpuId(0), order(3), MigrateType::Movable).expect("all is free");
        world.allocator.drain_all();
        let others = [0, 1].map(|cpu| {
            let world = world.clone();
            thread::spawn(move || match cpu {
                0 => world.use_exact(CpuId(0), 300),
                _ => {
                    for block in (0..2).filter_map(|_| world.alloc(CpuId(1), order(8), MigrateType::Movable))
                    {
                        assert_eq!(world.allocator.block_in_use(block.0), Some(block));
                        world.free(CpuId(1), block);
                    }
                }
            })
        });
        world.allocator.isolate_pageblock(CpuId(1), kept.0).expect("it is in service");
        world.allocator.unisolate_pageblock(CpuId(1), kept.0, MigrateType::Movable).expect("it is not");
        others.into_iter().for_each(|other| other.join().expect("it ends"));
        world.free(CpuId(0), kept);
        world.end();
    });
}

/// Three operations try to get the pageblock in a CPU's stock at once: the next request of its CPU, a request
/// of another CPU, and an isolation.
#[test]
fn one_gets_the_pageblock_in_the_stock_of_a_cpu() {
    check(|| {
        let world = Arc::new(World::new(2));
        let work = |world: &World, cpu: u32| {
            for _ in 0..2 {
                let block = world.alloc(CpuId(cpu), order(9), MigrateType::Movable).expect("memory enough");
                world.free(CpuId(0), block);
            }
        };
        let others: Vec<_> = (0..2)
            .map(|cpu| {
                let world = world.clone();
                thread::spawn(move || work(&world, cpu))
            })
            .collect();
        world.allocator.isolate_pageblock(CpuId(1), Pfn(0)).expect("it is in service");
        world.allocator.unisolate_pageblock(CpuId(1), Pfn(0), MigrateType::Movable).expect("it is not");
        world.allocator.drain_cpu(CpuId(0)).expect("it is a CPU");
        others.into_iter().for_each(|other| other.join().expect("it ends"));
        world.allocator.validate().unwrap_or_else(|violation| panic!("{violation}"));
        world.end();
    });
}

/// Two threads run as one CPU. One thread gives up a pageblock, and removes it from the CPU's list after the
/// other thread has reserved it again.
#[test]
fn threads_that_share_a_cpu_have_at_hand_what_it_reserves() {
    check(|| {
        let world = Arc::new(World::new(1));
        let work = |world: &World| {
            for of in [0, 1] {
                let block = world.alloc(CpuId(0), order(of), MigrateType::Movable).expect("memory enough");
                world.allocator.drain_cpu(CpuId(0)).expect("it is a CPU");
                let other = world.alloc(CpuId(0), order(of), MigrateType::Movable).expect("memory enough");
                [block, other].into_iter().for_each(|block| world.free(CpuId(0), block));
            }
        };
        let other = {
            let world = world.clone();
            thread::spawn(move || work(&world))
        };
        work(&world);
        other.join().expect("it ends");
        world.allocator.validate().unwrap_or_else(|violation| panic!("{violation}"));
        world.end();
    });
}

/// Pageblocks go out of service and come back, and a frame goes out of service for good, while another CPU
/// allocates and frees.
#[test]
fn service_while_another_cpu_is_at_work() {
    check(|| {
        let world = Arc::new(World::new(2));
        let user = {
            let world = world.clone();
            thread::spawn(move || {
                let mut mine = Vec::new();
                (0..STEPS).for_each(|_| world.step(CpuId(1), &mut mine));
                world.mailbox.lock().expect("nobody panicked").extend(mine);
            })
        };
        for _ in 0..3 {
            let pfn = Pfn(thread_rng().gen_range(0..FRAMES));
            world.allocator.isolate_pageblock(CpuId(0), pfn).expect("it is in service");
            world.allocator.unisolate_pageblock(CpuId(0), pfn, MigrateType::Movable).expect("it is not");
        }
        user.join().expect("it ends");
        world.end();
    });
}

#[test]
fn a_block_that_goes_out_of_service_while_its_owner_cuts_and_frees_it() {
    for of in [3, 5, 7] {
        check(move || {
            let world = Arc::new(World::new(2));
            let frames = u64::from(order(of).frames());
            let Pfn(start) = world.allocator.alloc(CpuId(0), &request(of)).expect("memory enough");
            let bad = start + thread_rng().gen_range(0..frames);
            let owner = {
                let world = world.clone();
                thread::spawn(move || {
                    let half = start + frames / 2;
                    let first = world.allocator.free_range(CpuId(1), start..half);
                    (first, world.allocator.free_range(CpuId(1), half..start + frames))
                })
            };
            let marked = world.allocator.mark_bad(CpuId(0), Pfn(bad));
            assert!(matches!(marked, Ok(()) | Err(FreeError::Busy(_))), "{marked:?}");
            let freed = owner.join().expect("it ends");
            world.allocator.drain_all();
            let census = world.allocator.validate().unwrap_or_else(|violation| panic!("{violation}"));
            assert_eq!(census.leaked > 0, marked.is_ok(), "{freed:?}");
            for pfn in start..start + frames {
                if world.allocator.block_in_use(Pfn(pfn)).is_some() {
                    assert_eq!(world.allocator.free_range(CpuId(0), pfn..pfn + 1), Ok(()), "{freed:?}");
                }
            }
            world.allocator.drain_all();
            let census = world.allocator.validate().unwrap_or_else(|violation| panic!("{violation}"));
            assert_eq!(census.free + census.leaked, FRAMES);
        });
    }
}
