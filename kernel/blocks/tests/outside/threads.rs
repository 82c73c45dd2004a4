//! Tests that real threads can run many operations at once.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use pageset_blocks::BlockAllocator;
use pageset_core::{CpuId, MigrateType, Order, Pfn};

use crate::machine::{RAGGED_FRAMES, order, ragged, request};

/// The number of rounds that each thread runs: a fixed number, or as many as fit into a time. Miri is some
/// thousand times slower than a processor.
fn rounds() -> impl Iterator<Item = u64> {
    let setting = |name| std::env::var(name).ok().and_then(|number| number.parse().ok());
    let usual = if cfg!(miri) { 20 } else { 20_000 };
    let count = setting("PAGESET_ROUNDS").unwrap_or(usual);
    let time = setting("PAGESET_SOAK_SECONDS").map(|seconds| (Instant::now(), Duration::from_secs(seconds)));
    (0..).take_while(move |round| time.map_or(*round < count, |(begun, time)| begun.elapsed() < time))
}

/// The largest exact count. The test looks at each frame several times.
const EXACT_MAX: u64 = if cfg!(miri) { 12 } else { 600 };

#[test]
fn nothing_is_lost_and_nothing_is_given_twice() {
    run_threads(&ragged(3));
}

fn run_threads(allocator: &BlockAllocator<'_>) {
    const THREADS: u64 = 4;
    let owned: Vec<_> = (0..8192).map(|_| std::sync::atomic::AtomicBool::new(false)).collect();
    let mailbox: Mutex<Vec<(Pfn, Order)>> = Mutex::new(Vec::new());
    let mark = |pfn: Pfn, frames: u64, to: bool| {
        for frame in pfn.0..pfn.0 + frames {
            let before = owned[frame as usize].swap(to, std::sync::atomic::Ordering::Relaxed);
            assert_ne!(before, to, "frame {frame}");
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (mailbox, mark) = (&mailbox, &mark);
            scope.spawn(move || {
                let mut seed = thread + 1;
                let mut random = move |below: u64| {
                    seed =
                        seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (seed >> 33) % below
                };
                let mut mine: Vec<(Pfn, Order)> = Vec::new();
                for _ in rounds() {
                    // Two threads share a CPU's number.
                    let cpu = CpuId((thread % 3) as u32);
                    match random(16) {
                        0..6 => {
                            let of = order([0, 0, 0, 0, 1, 2, 3, 5, 6, 7, 8, 9, 10][random(13) as usize]);
                            let migratetype = MigrateType::ALL[random(3) as usize];
                            if let Ok(pfn) = allocator.alloc(cpu, &request(of.get(), migratetype)) {
                                mark(pfn, u64::from(of.frames()), true);
                                mine.push((pfn, of));
                            }
                        }
                        6 => {
                            let mut pages = [None; 40];
                            let any = request(0, MigrateType::Movable);
                            let _ = allocator.alloc_bulk(cpu, &any, &mut pages);
                            pages.iter().flatten().for_each(|pfn| mark(*pfn, 1, true));
                            mine.extend(pages.iter().flatten().map(|pfn| (*pfn, Order::ZERO)));
                        }
                        _ if random(24) == 0 => {
                            let of = order(random(10) as u8);
                            let any = request(of.get(), MigrateType::Movable);
                            if let Ok(word) = allocator.alloc_row(cpu, &any, 20) {
                                word.for_each(|pfn| mark(pfn, u64::from(of.frames()), true));
                                word.for_each(|pfn| mark(pfn, u64::from(of.frames()), false));
                                assert_eq!(allocator.free_row(cpu, word), None);
                            }
                        }
                        7 => {
                            let frames = random(EXACT_MAX) + 1;
                            let any = request(0, MigrateType::Movable);
                            if let Ok(pfn) = allocator.alloc_exact(cpu, frames, &any) {
                                mark(pfn, frames, true);
                                mark(pfn, frames, false);
                                // The call does not split a pageblock that another CPU is changing.
                                if allocator.split_range(cpu, pfn.0..pfn.0 + frames).is_ok()
                                    && frames < EXACT_MAX / 6
                                {
                                    (pfn.0..pfn.0 + frames)
                                        .for_each(|pfn| allocator.free(cpu, Pfn(pfn), Order::ZERO).unwrap());
                                } else {
                                    allocator.free_range(cpu, pfn.0..pfn.0 + frames).unwrap();
                                }
                            }
                        }
                        8 => {
                            let pfn = Pfn(random(8192));
                            if allocator.alloc_at(cpu, pfn, &request(0, MigrateType::Movable)).is_ok() {
                                mark(pfn, 1, true);
                                mine.push((pfn, Order::ZERO));
                            }
                        }
                        9..14 if !mine.is_empty() => {
                            let block = mine.swap_remove(random(mine.len() as u64) as usize);
                            mark(block.0, u64::from(block.1.frames()), false);
                            allocator.free(cpu, block.0, block.1).unwrap();
                        }
                        14 => {
                            let mut mailbox = mailbox.lock().unwrap();
                            mine.append(&mut mailbox);
                            let half = mine.len() / 2;
                            mailbox.extend(mine.drain(..half));
                        }
                        _ => match random(20) {
                            1 | 2 => allocator.isolate_pageblock(cpu, Pfn(random(8192))).unwrap_or(()),
                            3..6 => {
                                let pfn = Pfn(random(8192));
                                allocator.unisolate_pageblock(cpu, pfn, MigrateType::Movable).unwrap_or(());
                            }
                            0 => allocator.drain_all(),
                            _ => drop(allocator.tick(cpu).unwrap()),
                        },
                    }
                }
                mailbox.lock().unwrap().append(&mut mine);
            });
        }
    });
    for (pfn, of) in mailbox.into_inner().unwrap() {
        mark(pfn, u64::from(of.frames()), false);
        allocator.free(CpuId(0), pfn, of).unwrap();
    }
    for block in 0..16 {
        allocator.unisolate_pageblock(CpuId(0), Pfn(block * 512), MigrateType::Movable).unwrap_or(());
    }
    allocator.drain_all();
    let census = allocator.validate().unwrap_or_else(|violation| panic!("{violation}"));
    assert_eq!((census.free, census.cached, census.allocated), (RAGGED_FRAMES, 0, 0));
}
