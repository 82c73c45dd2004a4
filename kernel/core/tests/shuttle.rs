//! Tests concurrent use under shuttle, which decides at every lock which thread runs next. In every schedule,
//! no frame may have two users, and at the end no frame may be missing.
//!
//! `SHUTTLE_ITERATIONS` sets the number of schedules. `cargo xtask ci night shuttle` runs many schedules. A
//! failure prints its schedule, which `shuttle::replay` accepts.

use std::sync::atomic::{AtomicBool as Flag, Ordering};

use pageset_core::lock_api::{GuardSend, RawMutex};
use pageset_core::policy::{
    BatchRule, BusyOwner, HighRule, LINUX_6_1, LINUX_6_12, PCP_BUDDY_RFC, PageblockOwnership, RemoteFrees,
};
use pageset_core::{
    BlockUse, Config, CpuId, NodeId, Order, PageAllocator, Pfn, Platform, Policy, Reclaim, Request,
    RequestTraits, Tables, ZoneConfig, ZoneId, ZoneKind,
};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::atomic::AtomicBool;
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;

/// A lock that lets shuttle switch to another thread at each operation.
struct ShuttleLock(AtomicBool);

// SAFETY: between two unlocks, `swap` returns `false` to only one caller, so only one caller holds the lock.
unsafe impl RawMutex for ShuttleLock {
    const INIT: Self = Self(AtomicBool::new(false));
    type Guard = GuardSend;

    fn lock(&self) -> GuardSend {
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            thread::yield_now();
        }
    }

    fn try_lock(&self) -> Option<GuardSend> {
        (!self.0.swap(true, Ordering::Acquire)).then_some(GuardSend::new())
    }

    unsafe fn unlock(&self, _: GuardSend) {
        self.0.store(false, Ordering::Release);
    }

    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

struct Host;

impl Platform for Host {
    type RawLock = ShuttleLock;
    type Events = ();

    fn events(&self) -> &() {
        &()
    }
}

/// The spans of the machine's zones: a small zone with a hole, and a zone with an odd end. For policies with
/// owned pageblocks, the second zone is larger, so that the allocator groups pageblocks by mobility.
fn spans(policy: &Policy) -> [std::ops::Range<u64>; 2] {
    [0..700, 1024..if policy.ownership.is_some() { 5373 } else { 2301 }]
}

/// An allocator, the user of each frame, and blocks that move between CPUs.
struct World {
    allocator: PageAllocator<'static, Host>,
    owned: Vec<Flag>,
    mailbox: Mutex<Vec<(Pfn, Order)>>,
    /// The first frame number after all zones.
    end: u64,
}

impl World {
    fn new(policy: Policy, cpus: u32) -> Self {
        let spans = spans(&policy);
        let end = spans[1].end;
        let regions = [vec![0..300, 310..700], vec![spans[1].clone()]];
        let kinds = [ZoneKind::Dma32, ZoneKind::Normal];
        let zones: Vec<_> = kinds
            .iter()
            .zip(&spans)
            .zip(&regions)
            .map(|((kind, span), regions)| ZoneConfig {
                kind: *kind,
                node: NodeId(0),
                span: span.clone(),
                regions,
            })
            .collect();
        // CPU 1 is on a node without memory. So the page sets of CPU 1 are for zones of another node. Ticks
        // drain such page sets if they are idle.
        let nodes: Vec<_> = (0..cpus).map(|cpu| NodeId(u16::from(cpu == 1))).collect();
        let mut config = Config::new(&zones, &nodes).with_policy(policy);
        config.min_free_kbytes = Some(0);
        let tables = Tables::on_heap(&config).expect("spans of a sensible size");
        let allocator = PageAllocator::new(Host, &config, tables).expect("a sensible configuration");
        let owned = (0..end).map(|_| Flag::new(false)).collect();
        Self { allocator, owned, mailbox: Mutex::new(Vec::new()), end }
    }

    /// Records that a caller got a block. Panics if another caller still has a frame of the block.
    fn own(&self, pfn: Pfn, frames: u64) {
        for frame in pfn.0..pfn.0 + frames {
            let taken = self.owned[frame as usize].swap(true, Ordering::Relaxed);
            assert!(!taken, "frame {frame:#x} has two owners");
        }
    }

    fn disown(&self, pfn: Pfn, frames: u64) {
        for frame in pfn.0..pfn.0 + frames {
            assert!(
                self.owned[frame as usize].swap(false, Ordering::Relaxed),
                "frame {frame:#x} has no owner"
            );
        }
    }

    fn free(&self, cpu: CpuId, (pfn, order): (Pfn, Order)) {
        self.disown(pfn, u64::from(order.frames()));
        self.allocator.free(cpu, pfn, order).expect("an owner may free");
    }

    /// Does the work of one CPU: allocations of many kinds, and frees of this CPU's and other CPUs' blocks.
    fn work(&self, cpu: CpuId, steps: usize) {
        let mut rng = thread_rng();
        let mut held: Vec<(Pfn, Order)> = Vec::new();
        for _ in 0..steps {
            let order = Order::new([0, 0, 0, 1, 2, 3, 5, 9][rng.gen_range(0..8)]).expect("an order");
            let mut request = Request::new(order);
            if rng.gen_range(0..3) > 0 {
                request = request.movable();
            }
            match rng.gen_range(0..10) {
                0..=3 => {
                    if rng.gen_range(0..5) == 0 {
                        request = request.atomic();
                    }
                    if let Ok(pfn) = self.allocator.alloc(cpu, &request) {
                        self.own(pfn, u64::from(order.frames()));
                        held.push((pfn, order));
                    }
                }
                4 => {
                    let mut slots = [None; 5];
                    let mut pages = request;
                    pages.order = Order::ZERO;
                    let _ = self.allocator.alloc_bulk(cpu, &pages, &mut slots);
                    for pfn in slots.into_iter().flatten() {
                        self.own(pfn, 1);
                        held.push((pfn, Order::ZERO));
                    }
                }
                5 => {
                    let frames = rng.gen_range(1..40);
                    if let Ok(pfn) = self.allocator.alloc_exact(cpu, frames, &request) {
                        self.own(pfn, frames);
                        self.disown(pfn, frames);
                        self.allocator.free_range(cpu, pfn.0..pfn.0 + frames).expect("an owner may free");
                    }
                }
                6 => {
                    let pfn = Pfn(rng.gen_range(0..self.end) & !u64::from(order.frames() - 1));
                    if self.allocator.alloc_at(cpu, pfn, &request).is_ok() {
                        self.own(pfn, u64::from(order.frames()));
                        held.push((pfn, order));
                    }
                }
                7 => self.mailbox.lock().expect("no panic").append(&mut held),
                8 => {
                    let foreign = self.mailbox.lock().expect("no panic").pop();
                    foreign.into_iter().for_each(|block| self.free(cpu, block));
                }
                _ => held.pop().into_iter().for_each(|block| self.free(cpu, block)),
            }
        }
        self.mailbox.lock().expect("no panic").append(&mut held);
    }

    /// Does the work of an administrator: ticks, drains, CPUs that go offline and online, settings,
    /// isolation.
    fn administer(&self, cpus: u32, steps: usize) {
        let mut rng = thread_rng();
        for _ in 0..steps {
            let cpu = CpuId(rng.gen_range(0..cpus));
            let pfn = Pfn(rng.gen_range(0..self.end));
            let allocator = &self.allocator;
            match rng.gen_range(0..9) {
                0 | 1 => drop(allocator.tick(cpu)),
                2 => drop(allocator.drain_cpu(CpuId(0), cpu)),
                3 => drop(allocator.drain_all(cpu)),
                4 => {
                    allocator.cpu_offline(cpu).expect("a CPU of the machine");
                    allocator.cpu_online(cpu).expect("a CPU of the machine");
                }
                5 => drop(allocator.isolate_pageblock(cpu, pfn)),
                6 => drop(allocator.unisolate_pageblock(cpu, pfn, pageset_core::MigrateType::Movable)),
                7 => allocator.set_min_free_kbytes(rng.gen_range(0..64)),
                _ => drop(allocator.set_reclaim_active(ZoneId(1), Reclaim::Active)),
            }
        }
    }

    /// Frees all blocks, and checks that no frame is missing.
    fn finish(&self) {
        let mut mailbox = self.mailbox.lock().expect("no panic");
        mailbox.drain(..).for_each(|block| self.free(CpuId(0), block));
        self.allocator.validate().expect("no frame is lost or doubled");
        self.allocator.drain_all(CpuId(0)).expect("it exists");
        let census = self.allocator.validate().expect("no frame is lost or doubled");
        assert_eq!((census.cached, census.allocated, census.leaked), (0, 0, 0));
        let counters = self.allocator.counters();
        if self.allocator.policy().buddy == LINUX_6_12.buddy {
            assert_eq!(counters.pgalloc, counters.pgfree);
        }
    }
}

fn schedules() -> usize {
    std::env::var("SHUTTLE_ITERATIONS").ok().and_then(|number| number.parse().ok()).unwrap_or(150)
}

fn run(policy: Policy, cpus: u32) {
    shuttle::check_random(
        move || {
            let world = Arc::new(World::new(policy, cpus));
            let mut threads: Vec<_> = (0..cpus)
                .map(|cpu| {
                    let world = Arc::clone(&world);
                    thread::spawn(move || world.work(CpuId(cpu), 12))
                })
                .collect();
            let administrator = Arc::clone(&world);
            threads.push(thread::spawn(move || administrator.administer(cpus, 6)));
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
            world.finish();
        },
        schedules(),
    );
}

#[test]
fn two_cpus_under_linux_6_12() {
    run(LINUX_6_12, 2);
}

#[test]
fn four_cpus_under_linux_6_12() {
    run(LINUX_6_12, 4);
}

#[test]
fn three_cpus_under_linux_6_1() {
    run(LINUX_6_1, 3);
}

/// Tests two threads that use one CPU number. A thread that finds the page set's lock taken uses the free
/// lists.
#[test]
fn two_threads_may_name_the_same_cpu() {
    shuttle::check_random(
        || {
            let world = Arc::new(World::new(LINUX_6_12, 1));
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let world = Arc::clone(&world);
                    thread::spawn(move || world.work(CpuId(0), 12))
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
            world.finish();
        },
        schedules(),
    );
}

/// Tests two CPUs that free one block: one CPU succeeds, the other CPU gets an error, and the block is freed
/// once.
#[test]
fn one_of_two_frees_of_a_block_wins() {
    shuttle::check_random(
        || {
            let world = Arc::new(World::new(LINUX_6_12, 2));
            let desperate = RequestTraits::MAY_WAIT | RequestTraits::NO_WATERMARKS;
            for order in [Order::ZERO, Order::new(3).expect("an order"), Order::new(5).expect("an order")] {
                let pfn =
                    world.allocator.alloc(CpuId(0), &Request::new(order).with(desperate)).expect("free");
                let threads: Vec<_> = (0..2)
                    .map(|cpu| {
                        let world = Arc::clone(&world);
                        thread::spawn(move || match cpu {
                            0 => world.allocator.free(CpuId(cpu), pfn, order),
                            _ => {
                                let end = pfn.0 + u64::from(order.frames());
                                world.allocator.free_range(CpuId(cpu), pfn.0..end)
                            }
                        })
                    })
                    .collect();
                let outcomes: Vec<_> =
                    threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
                assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
            }
            world.finish();
        },
        schedules(),
    );
}

/// Tests that a frame stays out of service if it is marked bad while its block is split or freed.
#[test]
fn a_frame_marked_bad_during_a_free_stays_out_of_service() {
    shuttle::check_random(
        || {
            let world = Arc::new(World::new(LINUX_6_12, 2));
            let order = Order::new(5).expect("an order");
            let desperate = Request::new(order).with(RequestTraits::NO_WATERMARKS);
            let pfn = world.allocator.alloc(CpuId(0), &desperate).expect("free");
            let other = Arc::clone(&world);
            let marker = thread::spawn(move || other.allocator.mark_bad(CpuId(1), pfn));
            let _ = world.allocator.free_range(CpuId(0), pfn.0..pfn.0 + 5);
            marker.join().expect("no panic").expect("was in service");
            let _ = world.allocator.free_range(CpuId(0), pfn.0 + 5..pfn.0 + 32);
            world.allocator.drain_all(CpuId(0)).expect("it exists");
            world.allocator.validate().expect("no frame is lost or doubled");
            let block = world.allocator.block_of(pfn).expect("a frame of the machine");
            assert_eq!(block.held_by, BlockUse::Leaked);
        },
        schedules(),
    );
}

/// Makes a policy under which CPUs own pageblocks. The policy's limits let page sets hold whole pageblocks,
/// although the zones of these tests are small.
fn owned(busy_owner: BusyOwner) -> Policy {
    let mut rule = PageblockOwnership::RFC;
    rule.busy_owner = busy_owner;
    let mut policy = PCP_BUDDY_RFC;
    policy.ownership = Some(rule);
    policy.high = HighRule::Fixed(1100);
    policy.batch = BatchRule::Fixed(7);
    policy
}

/// Makes a policy like `owned`, but a page that another CPU frees goes to the owner's list.
fn owned_with_lists() -> Policy {
    let mut policy = owned(BusyOwner::Zone);
    policy.ownership.iter_mut().for_each(|rule| rule.remote = RemoteFrees::OwnersList);
    policy
}

#[test]
fn three_cpus_that_own_pageblocks() {
    for policy in [owned(BusyOwner::Zone), owned(BusyOwner::FreeingCpu), owned_with_lists()] {
        run(policy, 3);
    }
}

/// Tests CPUs that free pages of an owner, while the owner drains its page set and goes offline. At the end,
/// no page may be in the owner's page set, and no page may be lost.
#[test]
fn frees_by_others_meet_the_drain_of_an_owner_that_leaves() {
    for policy in [owned(BusyOwner::FreeingCpu), owned_with_lists()] {
        frees_by_others_meet_the_drain_of_a_leaving_owner(policy);
    }
}

fn frees_by_others_meet_the_drain_of_a_leaving_owner(policy: Policy) {
    shuttle::check_random(
        move || {
            let world = Arc::new(World::new(policy, 3));
            let owner = CpuId(2);
            let page = || world.allocator.alloc(owner, &Request::new(Order::ZERO).movable()).expect("free");
            let pages: Vec<_> = (0..12).map(|_| page()).collect();
            assert!(pages.iter().all(|page| world.allocator.pageblock_owner(*page) == Some(owner)));
            let mut threads: Vec<_> = (0..2)
                .map(|cpu| {
                    let (world, pages) = (Arc::clone(&world), pages.clone());
                    thread::spawn(move || {
                        for page in pages.iter().skip(cpu as usize).step_by(2) {
                            world.allocator.free(CpuId(cpu), *page, Order::ZERO).expect("an owner may free");
                        }
                    })
                })
                .collect();
            let leaving = Arc::clone(&world);
            threads.push(thread::spawn(move || {
                leaving.allocator.drain_cpu(owner, owner).expect("it exists");
                leaving.allocator.cpu_offline(owner).expect("it exists");
            }));
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
            world.allocator.validate().expect("no frame is lost or doubled");
            for zone in [ZoneId(0), ZoneId(1)] {
                let left = world.allocator.pageset_info(zone, owner).expect("it exists");
                assert_eq!(left.count, 0, "pages are left with a CPU that is offline");
            }
            assert!(pages.iter().all(|page| world.allocator.pageblock_owner(*page).is_none()));
            world.finish();
        },
        schedules(),
    );
}

/// Tests that a frame stays out of service if it is marked bad while the owner's page set splits or merges
/// its block.
#[test]
fn a_frame_marked_bad_while_its_block_is_split_or_merged_stays_out_of_service() {
    shuttle::check_random(
        || {
            let world = Arc::new(World::new(owned(BusyOwner::Zone), 2));
            let one = Request::new(Order::ZERO).movable();
            let first = world.allocator.alloc(CpuId(0), &one).expect("free");
            let bad = Pfn(first.0 ^ 3);
            let other = Arc::clone(&world);
            let marker = thread::spawn(move || other.allocator.mark_bad(CpuId(1), bad));
            let more: Vec<_> = (0..3).filter_map(|_| world.allocator.alloc(CpuId(0), &one).ok()).collect();
            for page in more.into_iter().chain([first]) {
                let _ = world.allocator.free(CpuId(0), page, Order::ZERO);
            }
            world.allocator.drain_all(CpuId(0)).expect("it exists");
            marker.join().expect("no panic").expect("was in service");
            world.allocator.drain_all(CpuId(0)).expect("it exists");
            let census = world.allocator.validate().expect("no frame is lost or doubled");
            assert_eq!(census.cached, 0);
            let block = world.allocator.block_of(bad).expect("a frame of the machine");
            assert!(block.held_by == BlockUse::Leaked || census.allocated > 0, "{block:?}");
        },
        schedules(),
    );
}
