//! Tests wrong calls, one at a time and by several threads at once. After wrong calls, no frame is lost or
//! handed out twice, and no right call fails because of the wrong calls. The tests use only public functions,
//! so that they stay valid when the allocator changes.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use pageset_blocks::{BlockAllocator, Tables};
use pageset_core::{
    Config, CpuId, FreeError, MigrateType, NodeId, Order, Pfn, Request, RequestTraits, ZoneConfig, ZoneKind,
};

use crate::machine::order;

const CPU: CpuId = CpuId(0);
const OTHER: CpuId = CpuId(1);

/// An allocator with default settings.
fn by_default(frames: u64, cpus: usize) -> BlockAllocator<'static> {
    let regions = [0..frames];
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..frames, regions: &regions }];
    let nodes = vec![NodeId(0); cpus];
    let mut config = Config::new(&zones, &nodes);
    config.min_free_kbytes = Some(0);
    let tables = Tables::on_heap(&config).expect("the zone is possible");
    BlockAllocator::new(&config, tables).expect("the zone is possible")
}

fn request(of: u8, migratetype: MigrateType) -> Request {
    Request::new(order(of)).of_type(migratetype).with(RequestTraits::NO_WATERMARKS)
}

fn movable(of: u8) -> Request {
    request(of, MigrateType::Movable)
}

/// Allocates all memory, checks that each frame came once, and frees it.
#[track_caller]
fn assert_every_frame_can_be_had_once(allocator: &BlockAllocator<'_>) {
    let before = allocator.validate().unwrap_or_else(|violation| panic!("{violation}"));
    let cpus = (0..allocator.cpus() as u32).map(CpuId);
    let mut had = BTreeSet::new();
    for cpu in cpus {
        for migratetype in [MigrateType::Movable, MigrateType::Unmovable, MigrateType::Reclaimable] {
            while let Ok(pfn) = allocator.alloc(cpu, &request(0, migratetype)) {
                assert!(had.insert(pfn), "{pfn} is handed out twice");
            }
        }
    }
    assert_eq!(had.len() as u64, before.free + before.cached, "free frames are lost");
    had.into_iter().for_each(|pfn| assert_eq!(allocator.free(CPU, pfn, Order::ZERO), Ok(())));
    allocator.drain_all();
    let after = allocator.validate().unwrap_or_else(|violation| panic!("{violation}"));
    assert_eq!(after.allocated, before.allocated);
}

/// Asserts that no caller has these frames: each call that frees them is refused.
#[track_caller]
fn assert_nobody_has(allocator: &BlockAllocator<'_>, frames: Range<u64>) {
    let cpus = || (0..allocator.cpus() as u32).map(CpuId);
    for cpu in cpus() {
        let refused = Err(FreeError::DoubleFree(Pfn(frames.start)));
        assert_eq!(allocator.free_range(cpu, frames.clone()), refused, "{frames:?} by {cpu:?}");
        assert_eq!(allocator.split_range(cpu, frames.clone()), refused, "{frames:?} by {cpu:?}");
    }
    assert_eq!(allocator.block_in_use(Pfn(frames.start)), None);
}

#[test]
fn fault_01_frames_that_a_cpu_took_ahead_cannot_be_freed() {
    {
        for cpus in [1, 4] {
            let allocator = by_default(4096, cpus);
            allocator.alloc(CPU, &request(3, MigrateType::Reclaimable)).expect("memory enough");
            allocator.alloc(CPU, &movable(6)).expect("memory enough");
            let one = allocator.alloc(CPU, &movable(0)).expect("memory enough").0;
            // No caller has the frames beside the page in use, or a frame further away.
            for frames in [one + 1..one + 4, one + 3..one + 4, one + 40..one + 41] {
                assert_nobody_has(&allocator, frames);
            }
            assert!(allocator.free(CPU, Pfn(one + 1), Order::ZERO).is_err());
            let refused = Err(FreeError::DoubleFree(Pfn(one + 1)));
            assert_eq!(allocator.free_range(CPU, one..one + 4), refused, "one of them is in use");
            assert_eq!(allocator.free_range(CPU, one..one + 1), Ok(()), "and it can be freed alone");
            assert_every_frame_can_be_had_once(&allocator);
        }
    }
}

#[test]
fn fault_01_frames_that_were_freed_cannot_be_freed_as_a_range() {
    {
        for of in [0, 1, 2, 3, 4, 7, 9, 10] {
            let allocator = by_default(8192, 2);
            let frames = u64::from(order(of).frames());
            for freer in [CPU, OTHER] {
                let block = allocator.alloc(CPU, &movable(of)).expect("memory enough");
                let neighbour = allocator.alloc(CPU, &movable(of)).expect("memory enough");
                assert_eq!(allocator.free(freer, block, order(of)), Ok(()));
                assert_nobody_has(&allocator, block.0..block.0 + frames);
                assert_nobody_has(&allocator, block.0 + frames / 2..block.0 + frames / 2 + 1);
                assert_eq!(allocator.free_range(OTHER, neighbour.0..neighbour.0 + frames), Ok(()));
                assert_every_frame_can_be_had_once(&allocator);
            }
        }
    }
}

#[test]
fn a_block_that_two_cpus_free_is_freed_once_unless_the_host_chose_otherwise() {
    let allocator = by_default(65_536, 2);
    let page = allocator.alloc(CPU, &Request::new(Order::ZERO)).expect("memory enough");
    assert_eq!(allocator.free(OTHER, page, Order::ZERO), Ok(()));
    for cpu in [CPU, OTHER] {
        assert_eq!(allocator.free(cpu, page, Order::ZERO), Err(FreeError::DoubleFree(page)));
    }
    assert_every_frame_can_be_had_once(&allocator);
}

/// Lets several threads begin a round at once. Waiting threads spin, because the race is over before a
/// sleeping thread is awake.
struct Start {
    arrived: AtomicUsize,
    threads: usize,
}

impl Start {
    const fn of(threads: usize) -> Self {
        Self { arrived: AtomicUsize::new(0), threads }
    }

    fn wait(&self) {
        let round = self.arrived.fetch_add(1, SeqCst) / self.threads;
        let mut looks = 0_u32;
        while self.arrived.load(SeqCst) < (round + 1) * self.threads {
            std::hint::spin_loop();
            looks += 1;
            if looks > 2000 {
                std::thread::yield_now();
            }
        }
    }
}

fn random(seed: &mut u64, below: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % below
}

/// Calls again, from the frame that `Busy` names, until the call no longer returns `Busy`.
fn retried(
    mut rest: Range<u64>,
    call: impl Fn(Range<u64>) -> Result<(), FreeError>,
) -> Result<(), FreeError> {
    loop {
        match call(rest.clone()) {
            Err(FreeError::Busy(pfn)) => rest.start = pfn.0,
            outcome => return outcome,
        }
        std::thread::yield_now();
    }
}

/// The rounds of a race: up to `most`, but only as many as fit into four seconds, because other programs use
/// the machine, too.
fn rounds(most: usize) -> impl Iterator<Item = usize> {
    const TIME: Duration = Duration::from_secs(4);
    let begun = Instant::now();
    (0..if cfg!(miri) { 5 } else { most }).take_while(move |_| begun.elapsed() < TIME)
}

/// Allocates a block and returns its parts, which several threads own.
fn parts_of_a_block(
    allocator: &BlockAllocator<'_>,
    round: usize,
    seed: &mut u64,
    parts: usize,
) -> Vec<Range<u64>> {
    let of = order([9, 9, 10, 9, 8, 4][round % 6]);
    let start = allocator.alloc(CPU, &movable(of.get())).expect("all is free").0;
    let frames = u64::from(of.frames());
    let mut cuts = vec![0, frames];
    cuts.resize_with(parts + 1, || [frames / 2, random(seed, frames + 1)][round % 2]);
    cuts.sort_unstable();
    cuts.windows(2).map(|cut| start + cut[0]..start + cut[1]).collect()
}

#[test]
fn fault_02_parts_of_a_block_that_several_threads_free_at_once_are_all_freed() {
    // Most machines run two threads at once. Further threads could only wait for a CPU.
    const THREADS: usize = 2;
    {
        let allocator = by_default(4096, THREADS);
        let (begin, end) = (Start::of(THREADS), Start::of(THREADS));
        let parts = Mutex::new(Vec::<Range<u64>>::new());
        // Checks results after the round, because the other threads wait for the end of the round.
        let refused = Mutex::new(Vec::new());
        let free_own = |thread: usize, round: usize| {
            let cpu = CpuId(thread as u32);
            let part = parts.lock().unwrap().get(thread).cloned()?;
            let split = || retried(part.clone(), |_| allocator.split_range(cpu, part.clone()));
            let free = || retried(part.clone(), |rest| allocator.free_range(cpu, rest));
            if !part.is_empty() {
                let is_split = (round + thread).is_multiple_of(3);
                if let Err(error) = if is_split { split().and_then(|()| free()) } else { free() } {
                    refused.lock().unwrap().push((round, part, error));
                }
            }
            Some(())
        };
        std::thread::scope(|scope| {
            for thread in 1..THREADS {
                let (begin, end, free_own) = (&begin, &end, &free_own);
                scope.spawn(move || {
                    for round in 0.. {
                        begin.wait();
                        // The thread got no parts, so there are no more rounds.
                        if free_own(thread, round).is_none() {
                            return;
                        }
                        end.wait();
                    }
                });
            }
            let mut seed = 1;
            for round in rounds(200_000) {
                *parts.lock().unwrap() = parts_of_a_block(&allocator, round, &mut seed, THREADS);
                begin.wait();
                free_own(0, round);
                end.wait();
                if !refused.lock().unwrap().is_empty() {
                    break;
                }
            }
            parts.lock().unwrap().clear();
            begin.wait();
        });
        assert_eq!(refused.into_inner().unwrap(), []);
        allocator.drain_all();
        assert_eq!(allocator.validate().map(|census| census.allocated), Ok(0));
        assert_every_frame_can_be_had_once(&allocator);
    }
}

/// The last free makes the pageblock whole, and either CPU may see that.
#[test]
fn two_cpus_that_free_the_last_frames_of_a_pageblock_both_succeed() {
    {
        let allocator = by_default(2048, 2);
        let (begin, end) = (Start::of(2), Start::of(2));
        let frames = Mutex::new(Some([Pfn(0); 2]));
        let refused = Mutex::new(Vec::new());
        let free_own = |cpu: CpuId, round: usize| {
            let own = (*frames.lock().unwrap())?[cpu.0 as usize];
            if let Err(error) = allocator.free(cpu, own, Order::ZERO) {
                refused.lock().unwrap().push((round, error));
            }
            Some(())
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0.. {
                    begin.wait();
                    // The thread got no frames, so there are no more rounds.
                    if free_own(OTHER, round).is_none() {
                        return;
                    }
                    end.wait();
                }
            });
            for round in rounds(200_000) {
                let Pfn(start) = allocator.alloc(CPU, &movable(9)).expect("all is free");
                allocator.split_range(CPU, start..start + 512).expect("it is in use");
                allocator.free_range(CPU, start..start + 510).expect("they are in use");
                *frames.lock().unwrap() = Some([Pfn(start + 510), Pfn(start + 511)]);
                begin.wait();
                free_own(CPU, round);
                end.wait();
                if !refused.lock().unwrap().is_empty() {
                    break;
                }
            }
            *frames.lock().unwrap() = None;
            begin.wait();
        });
        assert_eq!(refused.into_inner().unwrap(), []);
        allocator.drain_all();
        assert_eq!(allocator.validate().map(|census| census.allocated), Ok(0));
    }
}

/// A step of a thread that frees its own frames and also frames that it does not own.
fn misuse(
    allocator: &BlockAllocator<'_>,
    cpu: CpuId,
    seed: &mut u64,
    known: &Mutex<Vec<(Pfn, Order)>>,
    frames: u64,
) {
    match random(seed, 4) {
        // A block that some thread has, had, or has freed.
        0 | 1 => {
            let block = {
                let known = known.lock().unwrap();
                known.get(random(seed, 64) as usize).copied()
            };
            if let Some((pfn, of)) = block {
                let _ = allocator.free(cpu, pfn, of);
            }
        }
        2 => {
            let pfn = Pfn(random(seed, frames));
            let _ = allocator.free(cpu, pfn, order(random(seed, 11) as u8));
        }
        _ => {
            let start = random(seed, frames);
            let _ = allocator.free_range(cpu, start..start + 1 + random(seed, 1100));
        }
    }
}

/// Runs threads that allocate and free at random. Some of their frees are of frames that they do not own.
fn run_misuse(seed: u64, calls: u64) -> BlockAllocator<'static> {
    const THREADS: u64 = 4;
    const FRAMES: u64 = 12 * 512;
    let allocator = by_default(FRAMES, THREADS as usize);
    let known = Mutex::new(Vec::new());
    let together = Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (allocator, known, together) = (&allocator, &known, &together);
            scope.spawn(move || {
                let cpu = CpuId(thread as u32);
                let mut seed = seed * 1000 + thread;
                let mut held: Vec<(Pfn, Order)> = Vec::new();
                together.wait();
                for _ in 0..calls {
                    match random(&mut seed, 100) {
                        0..45 => {
                            let of =
                                order([0, 0, 0, 1, 2, 3, 4, 6, 8, 9, 10][random(&mut seed, 11) as usize]);
                            let migratetype = MigrateType::ALL[random(&mut seed, 3) as usize];
                            if let Ok(pfn) = allocator.alloc(cpu, &request(of.get(), migratetype)) {
                                held.push((pfn, of));
                            }
                        }
                        45..85 if !held.is_empty() => {
                            let (pfn, of) = held.swap_remove(random(&mut seed, held.len() as u64) as usize);
                            let _ = match random(&mut seed, 4) {
                                0 => allocator.free_range(cpu, pfn.0..pfn.0 + u64::from(of.frames())),
                                1 => allocator.free_batch(cpu, &[(pfn, of)]).map_err(|(_, error)| error),
                                _ => allocator.free(cpu, pfn, of),
                            };
                            let mut known = known.lock().unwrap();
                            let at = random(&mut seed, 64) as usize;
                            if known.len() < 64 { known.push((pfn, of)) } else { known[at] = (pfn, of) }
                        }
                        85..98 => misuse(allocator, cpu, &mut seed, known, FRAMES),
                        98 => drop(allocator.tick(cpu)),
                        _ => allocator.drain_all(),
                    }
                }
            });
        }
    });
    allocator
}

#[test]
fn fault_18_tables_are_consistent_after_threads_freed_what_was_not_theirs() {
    let calls = if cfg!(miri) { 200 } else { 8000 };
    {
        for seed in rounds(60) {
            let allocator = run_misuse(seed as u64, calls);
            let told = |when: &str| {
                allocator.validate().unwrap_or_else(|violation| panic!("seed {seed}, {when}: {violation}"))
            };
            allocator.drain_all();
            told("when all threads are done");
            let used: Vec<_> =
                allocator.span().filter(|pfn| allocator.block_in_use(Pfn(*pfn)).is_some()).collect();
            for pfn in used {
                assert_eq!(allocator.free_range(CPU, pfn..pfn + 1), Ok(()), "seed {seed}: {pfn}");
            }
            allocator.drain_all();
            let census = told("when all is freed");
            assert_eq!((census.free, census.allocated), (allocator.span().end, 0), "seed {seed}");
            assert_every_frame_can_be_had_once(&allocator);
        }
    }
}

/// Runs threads that use memory rightly and also make wrong calls. The wrong calls are about their own
/// blocks, about frames that no thread ever has, and about frames that are no memory. Each wrong call is an
/// error, whatever the other threads do.
#[test]
fn right_calls_are_obeyed_and_wrong_ones_refused_whatever_other_threads_do() {
    const THREADS: u32 = 4;
    const FRAMES: u64 = 20 * 512;
    let calls = if cfg!(miri) { 100 } else { 60_000 };
    {
        let allocator = by_default(FRAMES, THREADS as usize);
        // No thread gets a frame of this pageblock.
        allocator.isolate_pageblock(CPU, Pfn(7 * 512)).expect("it is in service");
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let allocator = &allocator;
                scope.spawn(move || Caller::new(allocator, CpuId(thread)).call(calls));
            }
        });
        allocator.unisolate_pageblock(CPU, Pfn(7 * 512), MigrateType::Movable).expect("it is isolated");
        allocator.drain_all();
        assert_eq!(allocator.validate().map(|census| (census.free, census.allocated)), Ok((FRAMES, 0)));
        assert_every_frame_can_be_had_once(&allocator);
    }
}

/// A thread, with the blocks that it has allocated.
struct Caller<'a> {
    allocator: &'a BlockAllocator<'static>,
    cpu: CpuId,
    seed: u64,
    blocks: Vec<(u64, Order)>,
}

impl<'a> Caller<'a> {
    fn new(allocator: &'a BlockAllocator<'static>, cpu: CpuId) -> Self {
        Self { allocator, cpu, seed: u64::from(cpu.0) + 77, blocks: Vec::new() }
    }

    fn random(&mut self, below: u64) -> u64 {
        random(&mut self.seed, below)
    }

    fn call(mut self, calls: u32) {
        for _ in 0..calls {
            match self.random(12) {
                0..4 if self.blocks.len() < 60 => self.alloc(),
                4..8 if !self.blocks.is_empty() => self.free(),
                8 => self.free_what_nobody_has(),
                9 => drop(self.allocator.tick(self.cpu)),
                _ if !self.blocks.is_empty() => self.free_wrongly(),
                _ => {}
            }
        }
        while !self.blocks.is_empty() {
            self.free();
        }
    }

    fn alloc(&mut self) {
        let of = order([0, 0, 1, 2, 3, 5, 7, 9, 10][self.random(9) as usize]);
        let migratetype = MigrateType::ALL[self.random(3) as usize];
        if self.random(3) == 0 {
            let frames = 1 + self.random(300);
            if let Ok(pfn) = self.allocator.alloc_exact(self.cpu, frames, &request(0, migratetype)) {
                // Frees the parts one by one, as the largest aligned blocks that fit.
                let mut at = pfn.0;
                while at < pfn.0 + frames {
                    let most = (pfn.0 + frames - at).ilog2().min(at.trailing_zeros()).min(10) as u8;
                    self.add(at, order(most));
                    at += 1 << most;
                }
            }
        } else if let Ok(pfn) = self.allocator.alloc(self.cpu, &request(of.get(), migratetype)) {
            self.add(pfn.0, of);
        }
    }

    /// Notes a block of this thread. Checks that the allocator reports the block as in use.
    fn add(&mut self, pfn: u64, of: Order) {
        assert_eq!(self.allocator.block_in_use(Pfn(pfn)), Some((Pfn(pfn), of)), "just allocated");
        self.blocks.push((pfn, of));
    }

    fn take_one(&mut self) -> (u64, Order) {
        let at = self.random(self.blocks.len() as u64) as usize;
        self.blocks.swap_remove(at)
    }

    fn free(&mut self) {
        let (pfn, of) = self.take_one();
        let (allocator, cpu, frames) = (self.allocator, self.cpu, u64::from(of.frames()));
        assert_eq!(allocator.block_in_use(Pfn(pfn)), Some((Pfn(pfn), of)), "nobody else changes it");
        let outcome = match self.random(4) {
            0 => retried(pfn..pfn + frames, |rest| allocator.free_range(cpu, rest)),
            1 if frames > 1 => {
                let cut = pfn + 1 + self.random(frames - 1);
                retried(cut..pfn + frames, |rest| allocator.free_range(cpu, rest))
                    .and_then(|()| retried(pfn..cut, |rest| allocator.free_range(cpu, rest)))
            }
            2 if frames <= 64 => {
                retried(pfn..pfn + frames, |_| allocator.split_range(cpu, pfn..pfn + frames)).and_then(|()| {
                    (pfn..pfn + frames).try_for_each(|frame| allocator.free(cpu, Pfn(frame), Order::ZERO))
                })
            }
            _ => allocator.free(cpu, Pfn(pfn), of),
        };
        assert_eq!(outcome, Ok(()), "{of} at {pfn:#x} is ours");
    }

    fn free_wrongly(&mut self) {
        let (pfn, of) = self.take_one();
        self.blocks.push((pfn, of));
        let (frames, given) = (u64::from(of.frames()), self.random(11) as u8);
        let free = |pfn: u64, of: u8| self.allocator.free(self.cpu, Pfn(pfn), order(of));
        if given != of.get() {
            let wrong = FreeError::WrongOrder { pfn: Pfn(pfn), given: order(given), allocated: of };
            assert_eq!(free(pfn, given), Err(wrong));
        }
        if frames > 1 {
            let inside = pfn + 1 + random(&mut self.seed, frames - 1);
            assert_eq!(
                self.allocator.free(self.cpu, Pfn(inside), order(given)),
                Err(FreeError::NotABlock(Pfn(inside)))
            );
        }
        let beyond = 3 * 512 * 512;
        let outcome = self.allocator.free_range(self.cpu, pfn..beyond);
        assert!(
            matches!(outcome, Err(FreeError::DoubleFree(_) | FreeError::Foreign(_) | FreeError::Busy(_))),
            "{outcome:?}"
        );
    }

    fn free_what_nobody_has(&mut self) {
        let pfn = 7 * 512 + self.random(500);
        let refused = Err(FreeError::DoubleFree(Pfn(pfn)));
        let of = order(self.random(3) as u8);
        assert!(self.allocator.free(self.cpu, Pfn(pfn), of).is_err());
        assert_eq!(self.allocator.free_range(self.cpu, pfn..pfn + 5), refused);
        assert_eq!(self.allocator.split_range(self.cpu, pfn..pfn + 5), refused);
        let foreign = Err(FreeError::Foreign(Pfn(20 * 512)));
        assert_eq!(self.allocator.free_range(self.cpu, 20 * 512..20 * 512 + 1), foreign);
    }
}
