//! Tests with damaged tables: after random words in random tables, no operation of the test panics or runs
//! for ever.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use std::vec::Vec;

use pageset_core::{
    Config, CpuId, MigrateType, NodeId, Order, Pfn, Request, RequestTraits, ZoneConfig, ZoneKind,
};

use zerocopy::FromZeros as _;

use super::{BlockAllocator, CpuArrays, Tables};
use crate::access::{Access, Alone, Shared};
use crate::atomic::Relaxed;
use crate::ids::{BlockId, FrameId};
use crate::row::{ROWS, Row};
use crate::rows::Rows;
use crate::state::State;

const ZONE_FRAMES: u64 = 10 * 512;
const CPUS: u32 = 2;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// A random word for a row. Usually the word is valid in some row.
    fn row(&mut self) -> usize {
        match self.below(8) {
            0 => Row::FREE.0,
            1 => Row::INSIDE.0,
            2 => Row::WITHHELD.0,
            3 => Row::CHANGING.0,
            4 => Row::of_order(5 + self.below(6) as usize).0,
            5 => Row::SINGLES.0,
            _ => (self.below(1 << 31) << 33 | self.below(1 << 31) << 16 | self.below(1 << 31)) as usize,
        }
    }

    fn request(&mut self) -> Request {
        let order = Order::new(self.below(11) as u8).expect("an order");
        let request = Request::new(order).of_type(MigrateType::ALL[self.below(3) as usize]);
        if self.below(4) == 0 { request.atomic() } else { request.with(RequestTraits::NO_WATERMARKS) }
    }
}

/// Changes one word of some table.
fn damage(allocator: &BlockAllocator<'_, impl Access>, random: &mut Random) {
    let block = random.below(allocator.states.len() as u64) as usize;
    let block = BlockId(block);
    let cpu = CpuId(random.below(u64::from(CPUS)) as u32);
    let shares = allocator.share_at(pageset_core::ZoneId(0), cpu);
    let some = |random: &mut Random| match random.below(2) {
        0 => random.below(12 * ROWS as u64 + 2) as u32,
        _ => random.below(1 << 31) as u32 * 2,
    };
    match random.below(9) {
        0 | 1 => allocator.rows(block).damage(random.below(ROWS as u64) as usize, random.row()),
        2 => allocator.state(block).set(State::damaged(random.below(1 << 16) as u32)),
        3 => allocator.state(block).set(State::damaged(random.below(1 << 31) as u32 * 2 + 1)),
        4 => allocator.index.damage(random.below(1 << 30) as usize, random.row()),
        5 => allocator.state(block).counted_frames.store(some(random), Relaxed),
        6 => {
            let all = shares.reservations().len() as u64;
            let reservation = &shares.reservations()[random.below(all) as usize];
            reservation.damage(some(random));
        }
        7 if random.below(2) == 0 => shares.set_near(BlockId(some(random) as usize)),
        7 => shares.stock.damage(random.row()),
        _ => shares
            .note_freed(FrameId(some(random) as usize), Order::new(random.below(6) as u8).expect("an order")),
    }
}

fn call<A: Access>(allocator: &BlockAllocator<'_, A>, held: &mut Vec<(Pfn, Order)>, random: &mut Random) {
    let cpu = CpuId(random.below(u64::from(CPUS)) as u32);
    let request = random.request();
    let pfn = random.below(ZONE_FRAMES);
    let range = pfn..pfn + 1 + random.below(700);
    match random.below(20) {
        0..6 => held.extend(allocator.alloc(cpu, &request).map(|pfn| (pfn, request.order))),
        6..10 if !held.is_empty() => {
            let (pfn, order) = held.swap_remove(random.below(held.len() as u64) as usize);
            allocator.free(cpu, pfn, order).ok();
        }
        10 => drop(allocator.alloc_exact(cpu, 1 + random.below(300), &request)),
        11 => drop(allocator.alloc_at(cpu, Pfn(pfn >> request.order.get() << request.order.get()), &request)),
        12 => drop(allocator.free_range(cpu, range)),
        13 => drop(allocator.split_range(cpu, range)),
        14 => {
            if let Ok(blocks) = allocator.alloc_row(cpu, &request, random.below(40) as usize) {
                held.extend(blocks.map(|pfn| (pfn, request.order)));
            }
        }
        15 => {
            let half = held.split_off(held.len() / 2);
            allocator.free_batch(cpu, &half).ok();
        }
        16 => {
            let mut pages = [None; 40];
            allocator.alloc_bulk(cpu, &Request::new(Order::ZERO), &mut pages).ok();
            let pages = pages.into_iter().flatten();
            allocator.free_many(cpu, Order::ZERO, pages.collect::<Vec<_>>().into_iter());
        }
        17 => match random.below(6) {
            0 => drop(allocator.isolate_pageblock(cpu, Pfn(pfn))),
            1 => drop(allocator.unisolate_pageblock(cpu, Pfn(pfn), MigrateType::Movable)),
            2 => drop(allocator.mark_bad(cpu, Pfn(pfn))),
            3 => drop(allocator.cpu_offline(cpu)),
            4 => drop(allocator.alloc_pageblocks(cpu, &request, 5, |_| ())),
            _ => allocator.drain_all(),
        },
        18 => drop(allocator.tick(cpu)),
        _ => {
            let _ = (allocator.is_free(Pfn(pfn)), allocator.is_whole(Pfn(pfn)), allocator.owner_of(Pfn(pfn)));
            let _ = (allocator.block_in_use(Pfn(pfn)), allocator.pageblock_type(Pfn(pfn)));
            let _ = (allocator.largest_free_order(), allocator.validate(), allocator.zones().count());
        }
    }
}

/// Builds an allocator and uses it. Then damages the tables and uses the allocator again, up to four times.
fn play<A: Access + 'static>(
    seed: u64,
    build: impl Fn(&Config<'_>) -> BlockAllocator<'static, A>,
    also: impl Fn(&BlockAllocator<'static, A>, &mut Random),
) {
    let regions = [0..3000, 3100..ZONE_FRAMES];
    let zones =
        [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..ZONE_FRAMES, regions: &regions }];
    let nodes = [NodeId(0); CPUS as usize];
    let mut config = Config::new(&zones, &nodes);
    config.min_free_kbytes = Some([0, 512][seed as usize % 2]);
    let allocator = build(&config);
    let (mut held, mut random) = (Vec::new(), Random(seed));
    (0..random.below(200)).for_each(|_| call(&allocator, &mut held, &mut random));
    for _ in 0..1 + random.below(4) {
        (0..1 + random.below(6)).for_each(|_| damage(&allocator, &mut random));
        (0..60).for_each(|_| call(&allocator, &mut held, &mut random));
        also(&allocator, &mut random);
    }
}

fn play_shared(seed: u64) {
    play::<Shared>(
        seed,
        |config| BlockAllocator::new(config, Tables::on_heap(config).expect("heap")).expect("possible"),
        |allocator, random| {
            let mut arrays = CpuArrays::new(allocator, CpuId(0));
            for _ in 0..40 {
                let request = random.request();
                if let Ok(pfn) = arrays.alloc(&request) {
                    arrays.free(pfn, request.order).ok();
                }
            }
            arrays.drain();
        },
    );
}

fn play_alone(seed: u64) {
    let build = |config: &Config<'_>| {
        let rows = pageset_core::Storage::owned(10, <Rows<Alone>>::new_zeroed).expect("heap");
        BlockAllocator::for_one(config, Tables::with_rows(rows, config).expect("heap")).expect("possible")
    };
    play::<Alone>(seed, build, |_, _| ());
}

#[test]
fn no_operation_panics_or_hangs_on_damaged_tables() {
    const SEEDS: u64 = if cfg!(miri) { 10 } else { 3000 };
    for (name, play) in [("shared", play_shared as fn(u64)), ("alone", play_alone)] {
        let (told, tell) = channel();
        let playing = std::thread::spawn(move || {
            let mut panicked = Vec::new();
            for seed in 0..SEEDS {
                told.send(seed).ok();
                if catch_unwind(AssertUnwindSafe(|| play(seed))).is_err() {
                    panicked.push(seed);
                }
            }
            panicked
        });
        let mut seed = 0;
        loop {
            match tell.recv_timeout(Duration::from_secs(60)) {
                Ok(next) => seed = next,
                Err(RecvTimeoutError::Timeout) => panic!("{name}, seed {seed}: it goes on and on"),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let panicked = playing.join().expect("panics are caught");
        assert!(panicked.is_empty(), "{name}, seeds {panicked:?}");
    }
}
