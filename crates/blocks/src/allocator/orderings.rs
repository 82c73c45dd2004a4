//! The orderings of memory operations under loom, which tries every outcome that the language allows: who frees and who changes
//! a pageblock at the same time do not overlook each other.
//!
//! Needs `RUSTFLAGS="--cfg loom"`; `ci/loom.sh` runs it.

use std::sync::Arc;
use std::vec::Vec;

use loom::thread;
use pageset_core::{
    Config, CpuId, MigrateType, NodeId, Order, Pfn, Request, RequestTraits, ZoneConfig, ZoneId, ZoneKind,
};

use super::refill::Needy;
use super::reserve::Reserve;
use super::{BlockAllocator, FRAMES, Part, RemoteFrees, Tables};
use crate::atomic::Relaxed;
use crate::cpu_lists::Wanted;
use crate::orderings::{begin, check};
use crate::state::Phase;

const CPU: CpuId = CpuId(0);
const OTHER: CpuId = CpuId(1);
const ZONE: ZoneId = ZoneId(0);

fn order(order: u8) -> Order {
    Order::new(order).expect("small")
}

fn request(of: u8) -> Request {
    Request::new(order(of)).movable().with(RequestTraits::NO_WATERMARKS)
}

fn wanted(of: u8) -> Wanted {
    Wanted { order: order(of), migratetype: MigrateType::Movable }
}

/// Two pageblocks, and two CPUs that give back at once and whose orders do not share pageblocks.
fn allocator() -> Arc<BlockAllocator<'static>> {
    let regions = [0..2 * FRAMES as u64];
    let span = 0..2 * FRAMES as u64;
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span, regions: &regions }];
    let nodes = [NodeId(0); 2];
    let mut config = Config::new(&zones, &nodes);
    config.min_free_kbytes = Some(0);
    let tables = Tables::on_heap(&config).expect("the zone is possible");
    let allocator = BlockAllocator::new(&config, tables).expect("the zone is possible");
    Arc::new(allocator.with_remote_frees(RemoteFrees::AtOnce).without(Part::MixedPageblocks))
}

impl BlockAllocator<'_> {
    /// Blocks of one pageblock, all of them, in use. Their owner is idle from then on.
    fn fill(&self, of: u8) -> Vec<Pfn> {
        let blocks: Vec<Pfn> =
            (0..FRAMES >> of).map(|_| self.alloc(CPU, &request(of)).expect("there is memory")).collect();
        self.lists_at(ZONE, CPU).activity.forget();
        blocks
    }

    fn give(&self, cpu: CpuId, pfn: Pfn, of: u8) {
        self.free(cpu, pfn, order(of)).expect("it is in use");
    }

    fn phase_of(&self, pfn: Pfn) -> Phase {
        self.states[pfn.0 as usize / FRAMES].get().phase()
    }
}

/// Runs `first` on another thread and `second` on this one.
fn both(
    allocator: &Arc<BlockAllocator<'static>>,
    first: impl FnOnce(&BlockAllocator<'static>) + 'static,
    second: impl FnOnce(&BlockAllocator<'static>),
) {
    let theirs = Arc::clone(allocator);
    let thread = thread::spawn(move || first(&theirs));
    begin();
    second(allocator);
    thread.join().expect("no panic");
}

/// The last block comes back while the owner leaves its pageblock: one of the two makes it whole.
fn freed_while_the_owner_leaves(of: u8, preemptions: usize) {
    check(preemptions, move || {
        let allocator = allocator();
        let last = allocator.alloc(CPU, &request(of)).expect("there is memory");
        allocator.lists_at(ZONE, CPU).activity.forget();
        both(
            &allocator,
            move |allocator| allocator.give(OTHER, last, of),
            |allocator| allocator.retire(last.0 as usize / FRAMES, CPU),
        );
        assert_eq!(allocator.phase_of(last), Phase::Whole, "order {of}");
    });
}

#[test]
fn a_page_freed_while_the_owner_leaves_makes_its_pageblock_whole() {
    freed_while_the_owner_leaves(0, 3);
}

#[test]
fn a_block_of_two_words_freed_while_the_owner_leaves_makes_its_pageblock_whole() {
    freed_while_the_owner_leaves(7, 2);
}

/// The last two blocks come back at once: one of the two makes the pageblock whole.
fn last_two(of: u8, preemptions: usize) {
    check(preemptions, move || {
        let allocator = allocator();
        let blocks = allocator.fill(of);
        let (last, others) = blocks.split_last().expect("there are several");
        let (first, others) = others.split_first().expect("there are several");
        others.iter().for_each(|pfn| allocator.give(CPU, *pfn, of));
        allocator.retire(last.0 as usize / FRAMES, CPU);
        let (first, last) = (*first, *last);
        both(
            &allocator,
            move |allocator| allocator.give(OTHER, last, of),
            move |allocator| allocator.give(CPU, first, of),
        );
        assert_eq!(allocator.phase_of(last), Phase::Whole, "order {of}");
    });
}

#[test]
fn the_last_two_words_freed_at_once_make_their_pageblock_whole() {
    last_two(6, 2);
}

#[test]
fn the_last_two_blocks_of_several_words_freed_at_once_make_their_pageblock_whole() {
    last_two(8, 1);
}

/// Enough pages come back while the owner leaves: one of the two puts the pageblock where it is found.
#[test]
fn a_pageblock_with_many_free_frames_is_linked_when_its_owner_leaves() {
    check(3, || {
        let allocator = allocator();
        let pages = allocator.fill(0);
        pages[..5].iter().for_each(|pfn| allocator.give(CPU, *pfn, 0));
        let last = pages[5];
        both(
            &allocator,
            move |allocator| allocator.give(OTHER, last, 0),
            |allocator| allocator.retire(last.0 as usize / FRAMES, CPU),
        );
        assert!(allocator.states[last.0 as usize / FRAMES].get().is_linked());
    });
}

/// A frame goes out of service while another one, freed, makes the pageblock worth finding.
#[test]
fn a_bad_frame_does_not_keep_its_pageblock_from_being_linked() {
    check(2, || {
        let allocator = allocator();
        let pages = allocator.fill(0);
        allocator.retire(pages[0].0 as usize / FRAMES, CPU);
        pages[..5].iter().for_each(|pfn| allocator.give(OTHER, *pfn, 0));
        let (sixth, bad) = (pages[5], pages[100]);
        both(
            &allocator,
            move |allocator| allocator.give(OTHER, sixth, 0),
            |allocator| allocator.mark_bad(CPU, bad).expect("it is in use"),
        );
        assert!(allocator.states[bad.0 as usize / FRAMES].get().is_linked());
    });
}

/// A pageblock is found by a free and adopted by another CPU at once: its frames are not counted as idle in the end.
#[test]
fn a_pageblock_adopted_while_it_is_linked_is_not_counted() {
    check(3, || {
        let allocator = allocator();
        let pages = allocator.fill(0);
        let block = pages[0].0 as usize / FRAMES;
        allocator.retire(block, CPU);
        pages[..5].iter().for_each(|pfn| allocator.give(OTHER, *pfn, 0));
        let sixth = pages[5];
        both(
            &allocator,
            move |allocator| allocator.give(OTHER, sixth, 0),
            |allocator| {
                let needy = Needy {
                    zone: ZONE,
                    cpu: CPU,
                    lists: allocator.lists_at(ZONE, CPU),
                    wanted: wanted(0),
                    reserve: Reserve::Closed,
                };
                allocator.adopt(block, allocator.states[block].get(), needy);
            },
        );
        let state = &allocator.states[block];
        let counted = state.counted.load(Relaxed);
        assert!(state.get().phase() == Phase::Idle || counted == 0);
        assert_eq!(allocator.zones[0].idle_frames() + allocator.surplus_in(ZONE) as i64, i64::from(counted));
    });
}

/// A CPU counts a pageblock and its zone gathers what CPUs counted, while the owner uses the pageblock again: nothing is counted
/// twice, and nothing is left.
#[test]
fn what_is_gathered_while_it_changes_is_counted_once() {
    check(3, || {
        let allocator = allocator();
        allocator.zones[0].recount_idle(&allocator.lists_at(ZONE, CPU).surplus, 0, 6);
        both(
            &allocator,
            |allocator| assert!(!allocator.is_free_at_least(&allocator.zones[0], u64::MAX)),
            |allocator| {
                let surplus = &allocator.lists_at(ZONE, CPU).surplus;
                allocator.zones[0].recount_idle(surplus, 6, 0);
                allocator.zones[0].recount_idle(surplus, 0, 4);
            },
        );
        assert_eq!(allocator.zones[0].idle_frames() + allocator.surplus_in(ZONE) as i64, 4);
    });
}

/// A block of several words is asked for, by its place, while its words come back one after the other.
#[test]
fn a_block_that_was_free_in_part_when_it_was_tried_makes_its_pageblock_whole() {
    check(2, || {
        let allocator = allocator();
        let blocks = allocator.fill(7);
        allocator.retire(blocks[0].0 as usize / FRAMES, CPU);
        blocks[1..].iter().for_each(|pfn| allocator.give(CPU, *pfn, 7));
        let last = blocks[0];
        both(
            &allocator,
            move |allocator| allocator.give(OTHER, last, 7),
            |allocator| {
                if let Some(frame) = allocator.take_bits(last.0 as usize / FRAMES, 0, order(7)) {
                    allocator.give(CPU, Pfn((last.0 as usize / FRAMES * FRAMES + frame) as u64), 7);
                }
            },
        );
        assert_eq!(allocator.phase_of(last), Phase::Whole);
    });
}

/// A pageblock goes out of service while it becomes whole, and comes back.
#[test]
fn a_pageblock_isolated_while_it_becomes_whole_is_nobodys() {
    check(2, || {
        let allocator = allocator();
        let last = allocator.alloc(CPU, &request(0)).expect("there is memory");
        let block = last.0 as usize / FRAMES;
        allocator.lists_at(ZONE, CPU).activity.forget();
        allocator.retire(block, CPU);
        both(
            &allocator,
            move |allocator| allocator.give(OTHER, last, 0),
            |allocator| allocator.isolate_pageblock(CPU, last).expect("it is in service"),
        );
        assert_eq!((allocator.phase_of(last), allocator.whole.has(block)), (Phase::Idle, false));
        assert!(allocator.free[block].is_full() && allocator.states[block].counted.load(Relaxed) == 0);
        allocator.unisolate_pageblock(CPU, last, MigrateType::Movable).expect("it is isolated");
        assert_eq!(allocator.phase_of(last), Phase::Whole);
    });
}

/// A whole pageblock comes back into service while it still goes out.
#[test]
fn a_pageblock_that_comes_back_while_it_goes_is_whole() {
    check(2, || {
        let allocator = allocator();
        both(
            &allocator,
            |allocator| allocator.isolate_pageblock(OTHER, Pfn(0)).expect("it is in service"),
            |allocator| {
                while allocator.unisolate_pageblock(CPU, Pfn(0), MigrateType::Movable).is_err() {
                    thread::yield_now();
                }
            },
        );
        assert_eq!(allocator.phase_of(Pfn(0)), Phase::Whole);
    });
}

/// Two threads that run as one CPU free a pageblock each: both are at hand, where the CPU finds them when it gives up all it has.
#[test]
fn pageblocks_freed_by_one_cpu_at_once_are_both_at_hand() {
    check(3, || {
        let allocator = allocator();
        let first = allocator.alloc(CPU, &request(9)).expect("there is memory");
        allocator.give(CPU, first, 9);
        let pageblocks = [(); 2].map(|()| allocator.alloc(CPU, &request(9)).expect("there is memory"));
        both(
            &allocator,
            move |allocator| allocator.give(CPU, pageblocks[0], 9),
            |allocator| allocator.give(CPU, pageblocks[1], 9),
        );
        for pfn in pageblocks {
            let is_at_hand =
                allocator.lists_at(ZONE, CPU).spares.iter().any(|spare| spare == pfn.0 as usize / FRAMES);
            assert!(is_at_hand || allocator.phase_of(pfn) == Phase::Whole, "{pfn} is lost");
        }
    });
}

/// Two CPUs claim the last pageblock: one has it.
#[test]
fn of_two_cpus_one_claims_the_last_pageblock() {
    check(2, || {
        let allocator = allocator();
        assert!(allocator.alloc(CPU, &request(9)).is_ok());
        let claim = |allocator: &BlockAllocator<'_>, cpu| {
            let lists = allocator.lists_at(ZONE, cpu);
            let taken = allocator.claim(Needy {
                zone: ZONE,
                cpu,
                lists,
                wanted: wanted(0),
                reserve: Reserve::Closed,
            });
            taken.map(|block| assert_eq!(allocator.states[block].get().owner(), cpu));
        };
        both(&allocator, move |allocator| claim(allocator, OTHER), move |allocator| claim(allocator, CPU));
    });
}
