//! A CPU's orders share a pageblock for each type, until it needs many of one.

use pageset_blocks::{BlockAllocator, Part, RemoteFrees};
use pageset_core::{CpuId, FreeError, MigrateType, Order, Pfn};

use crate::machine::{mixing, order, request};

const CPU: CpuId = CpuId(0);
/// It shares mixed pageblocks with the first.
const NEIGHBOUR: CpuId = CpuId(1);
/// It does not.
const OTHER: CpuId = CpuId(8);
const CPUS: usize = 9;
const MOVABLE: MigrateType = MigrateType::Movable;
const PAGEBLOCK: u64 = 512;

fn alloc(allocator: &BlockAllocator<'_>, cpu: CpuId, of: u8) -> Pfn {
    allocator.alloc(cpu, &request(of, MOVABLE)).expect("there is memory")
}

fn whole(allocator: &BlockAllocator<'_>) -> u64 {
    allocator.zones().map(|zone| zone.whole_pageblocks).sum()
}

fn held(allocator: &BlockAllocator<'_>) -> u64 {
    allocator.zones().map(|zone| zone.held).sum()
}

fn pageblock(pfn: Pfn) -> u64 {
    pfn.0 / PAGEBLOCK
}

#[test]
fn orders_share_a_pageblock_and_types_do_not() {
    let allocator = mixing(8192, 1).with_remote_frees(RemoteFrees::AtOnce);
    let blocks = [0, 3, 1, 6, 0, 2, 7].map(|of| (alloc(&allocator, CPU, of), order(of)));
    assert!(blocks.iter().all(|(pfn, _)| pageblock(*pfn) == pageblock(blocks[0].0)), "{blocks:?}");
    assert_eq!(whole(&allocator), 15);
    let of_another_type = allocator.alloc(CPU, &request(0, MigrateType::Unmovable)).unwrap();
    assert_ne!(pageblock(of_another_type), pageblock(blocks[0].0));
    for (pfn, of) in blocks {
        assert!(matches!(allocator.free(CPU, pfn, order(8)), Err(FreeError::WrongOrder { .. })));
        assert_eq!(allocator.free(CPU, pfn, of), Ok(()));
        assert_eq!(allocator.free(CPU, pfn, of), Err(FreeError::DoubleFree(pfn)));
    }
    allocator.drain_all();
    assert_eq!(allocator.validate().unwrap().allocated, 1);
    assert_eq!(whole(&allocator), 15);
}

#[test]
fn without_this_part_each_order_has_a_pageblock() {
    let allocator = mixing(8192, 1).without(Part::MixedPageblocks);
    let [page, block] = [0, 3].map(|of| alloc(&allocator, CPU, of));
    assert_ne!(pageblock(page), pageblock(block));
}

#[test]
fn a_cpu_that_needs_many_gets_a_pageblock_for_them_alone() {
    let allocator = mixing(8192, 1);
    let block = alloc(&allocator, CPU, 3);
    let pages: Vec<Pfn> = (0..1000).map(|_| alloc(&allocator, CPU, 0)).collect();
    let last = pageblock(pages[999]);
    assert_ne!(last, pageblock(block));
    assert!(pages[pages.len() - 400..].iter().all(|pfn| pageblock(*pfn) == last), "one after the other");
    assert_ne!(pageblock(alloc(&allocator, CPU, 1)), last, "of others it needs few");
    let word = allocator.alloc_word(CPU, &request(2, MOVABLE), 8).unwrap();
    assert_eq!(word.len(), 8, "who asks for many at once needs many");
}

#[test]
fn where_many_cpus_meet_and_none_lacks_memory_each_takes_more_at_once() {
    let taken = |frames: u64, cpus: usize| {
        let allocator = mixing(frames, cpus);
        allocator.alloc(CPU, &request(0, MigrateType::Unmovable)).expect("there is memory");
        1 + held(&allocator)
    };
    let ample = |cpus: usize| 256 * PAGEBLOCK * cpus as u64;
    assert_eq!(taken(ample(CPUS), CPUS), 16);
    assert_eq!(taken(ample(CPUS) / 2, CPUS), 4, "memory is not ample");
    assert_eq!(taken(ample(CPUS - 1), CPUS - 1), 4, "few CPUs meet");
}

#[test]
fn what_an_idle_cpu_leaves_is_used_before_a_whole_pageblock() {
    let allocator = mixing(8192, CPUS);
    let left = alloc(&allocator, CPU, 3);
    assert!((0..3).all(|_| allocator.tick(CPU).is_ok()));
    let next = alloc(&allocator, OTHER, 0);
    assert_eq!((pageblock(next), allocator.owner_of(left)), (pageblock(left), Some(OTHER)));
    assert_eq!(allocator.counters().adopted, 1);
    // One that has no room is passed over, and is there for others all the same.
    allocator.drain_all();
    let large = alloc(&allocator, OTHER, 8);
    assert_eq!(pageblock(large), pageblock(left));
    allocator.drain_all();
    assert_ne!(pageblock(alloc(&allocator, CPU, 8)), pageblock(left));
    assert_eq!(pageblock(alloc(&allocator, OTHER, 2)), pageblock(left));
}

#[test]
fn what_other_cpus_free_is_kept_with_its_order() {
    let allocator = mixing(8192, CPUS);
    let blocks: Vec<Pfn> = (0..6).map(|_| alloc(&allocator, CPU, 2)).collect();
    let page = alloc(&allocator, CPU, 0);
    let before = held(&allocator);
    blocks.iter().for_each(|pfn| allocator.free(OTHER, *pfn, order(2)).unwrap());
    allocator.free(OTHER, page, Order::ZERO).unwrap();
    assert_eq!(held(&allocator), before + 25);
    assert_eq!(alloc(&allocator, OTHER, 2), blocks[5], "the last one first");
    assert_eq!(alloc(&allocator, OTHER, 0), page);
    // It goes back as a block, and single pages can lie there then.
    allocator.drain_all();
    assert_eq!(held(&allocator), 0);
    let inside = Pfn(blocks[0].0 + 1);
    assert_eq!(allocator.alloc_at(CPU, inside, &request(0, MOVABLE)), Ok(()));
    assert_eq!(allocator.block_in_use(inside), Some((inside, Order::ZERO)));
    assert_eq!(allocator.validate().unwrap().allocated, 4 + 1 + 1);
}

/// Found when this was built: each page was searched for, among all pageblocks.
#[test]
fn the_last_mixed_pageblock_of_another_is_taken_over() {
    let allocator = mixing(2048, CPUS);
    let theirs = alloc(&allocator, CPU, 0);
    let more = || allocator.alloc(OTHER, &request(0, MOVABLE)).ok();
    let pages: Vec<Pfn> = core::iter::from_fn(more).collect();
    assert_eq!(pages.len(), 2047);
    assert_eq!(allocator.owner_of(theirs), Some(OTHER));
    let rescued = allocator.counters().rescued;
    assert!(rescued < 40, "{rescued} pages were searched for");
}

#[test]
fn neighbours_share_a_mixed_pageblock_and_others_do_not() {
    let allocator = mixing(8192, CPUS);
    let [ours, same, other] = [CPU, NEIGHBOUR, OTHER].map(|cpu| pageblock(alloc(&allocator, cpu, 0)));
    assert_eq!(ours, same);
    assert_ne!(ours, other);
    assert_eq!(allocator.validate().unwrap().allocated, 3);
    assert_eq!(whole(&allocator), 14);
}

#[test]
fn where_memory_is_ample_nobody_shares_movable_memory() {
    let ample = mixing(256 * PAGEBLOCK * CPUS as u64, CPUS);
    let pageblocks = |allocator: &BlockAllocator<'_>, migratetype| {
        let take = |cpu| allocator.alloc(cpu, &request(0, migratetype)).expect("there is memory");
        [CPU, NEIGHBOUR].map(|cpu| pageblock(take(cpu)))
    };
    let [ours, theirs] = pageblocks(&ample, MOVABLE);
    assert_ne!(ours, theirs);
    let [ours, theirs] = pageblocks(&ample, MigrateType::Unmovable);
    assert_eq!(ours, theirs);
    assert_eq!(ample.validate().unwrap().allocated, 4);
    // A zone ends with a block of the largest order: one less, and memory is not ample.
    let [ours, theirs] = pageblocks(&mixing((256 * CPUS as u64 - 2) * PAGEBLOCK, CPUS), MOVABLE);
    assert_eq!(ours, theirs);
}

#[test]
fn a_movable_pageblock_that_nobody_shares_is_given_up_by_its_cpu_alone() {
    let allocator = mixing(256 * PAGEBLOCK * CPUS as u64, CPUS);
    let [ours, theirs] = [CPU, NEIGHBOUR].map(|cpu| pageblock(alloc(&allocator, cpu, 0)));
    assert!((0..3).all(|_| allocator.tick(NEIGHBOUR).is_ok()));
    assert_eq!(pageblock(alloc(&allocator, OTHER, 0)), theirs, "it is idle");
    assert_eq!(pageblock(alloc(&allocator, CPU, 0)), ours);
}

#[test]
fn without_this_part_nobody_shares_anything() {
    let allocator = mixing(8192, CPUS).without(Part::SharedPageblocks);
    for migratetype in [MOVABLE, MigrateType::Unmovable] {
        let take = |cpu| allocator.alloc(cpu, &request(0, migratetype)).expect("there is memory");
        assert_ne!(pageblock(take(CPU)), pageblock(take(NEIGHBOUR)), "{migratetype:?}");
    }
}

#[test]
fn a_cpu_takes_more_at_once_the_more_it_takes() {
    let allocator = mixing(8192, CPUS);
    let kept_after = |_| {
        alloc(&allocator, CPU, 0);
        held(&allocator)
    };
    let kept: Vec<u64> = (0..40).map(kept_after).collect();
    // Four, four again, eight, and then sixteen.
    assert_eq!((kept[0], kept[4], kept[8], kept[16], kept[32]), (3, 3, 7, 15, 15));
    let frame = alloc(&allocator, CPU, 3);
    assert_eq!(held(&allocator), kept[39], "one block of order 3 is more than four frames");
    allocator.free(CPU, frame, order(3)).unwrap();
    assert_eq!(held(&allocator), kept[39] + 8, "neighbours take from its pageblock, so it is kept");
    allocator.validate().unwrap();
    assert!((0..3).all(|_| allocator.tick(CPU).is_ok()));
    assert_eq!(held(&allocator), 0);
}

#[test]
fn of_what_a_cpu_needs_few_it_keeps_few() {
    let allocator = mixing(8192, CPUS);
    let pages: Vec<Pfn> = (0..100).map(|_| alloc(&allocator, CPU, 0)).collect();
    let before = held(&allocator);
    let most = pages.into_iter().map(|pfn| {
        allocator.free(CPU, pfn, Order::ZERO).unwrap();
        held(&allocator)
    });
    assert_eq!(most.max(), Some(64), "after {before}");
    assert!(allocator.counters().given_back > 0);
    allocator.validate().unwrap();
}

#[test]
fn a_mixed_pageblock_is_given_up_when_all_neighbours_are_idle() {
    let allocator = mixing(8192, CPUS);
    let [left, theirs] = [CPU, NEIGHBOUR].map(|cpu| alloc(&allocator, cpu, 0));
    assert!((0..3).all(|_| allocator.tick(CPU).is_ok()));
    assert_ne!(pageblock(alloc(&allocator, OTHER, 0)), pageblock(left), "a neighbour uses it");
    allocator.drain_cpu(OTHER).unwrap();
    assert!((0..3).all(|_| allocator.tick(NEIGHBOUR).is_ok()));
    assert!([left, theirs].map(pageblock).contains(&pageblock(alloc(&allocator, OTHER, 0))));
}

#[test]
fn a_cpu_that_asks_often_gets_a_pageblock_of_its_own_although_it_keeps_enough() {
    let allocator = mixing(8192, 1);
    let shared = alloc(&allocator, CPU, 0);
    let mut asked = 0_u32;
    while pageblock(alloc_and_free(&allocator)) == pageblock(shared) {
        asked += 1;
        assert!(asked < 1 << 20, "each of these takes the long way");
    }
    assert!(asked > 10_000, "after {asked} requests the pageblock would lie nearly empty");
    allocator.tick(CPU).unwrap();
    assert_ne!(
        pageblock(alloc_and_free(&allocator)),
        pageblock(shared),
        "it has that pageblock until it is idle"
    );
}

/// The same page again and again.
fn alloc_and_free(allocator: &BlockAllocator<'_>) -> Pfn {
    let page = alloc(allocator, CPU, 0);
    allocator.free(CPU, page, order(0)).unwrap();
    page
}

#[test]
fn a_block_of_a_shared_pageblock_that_its_cpu_frees_twice_is_an_error() {
    let allocator = mixing(8192, CPUS);
    for of in [0, 2] {
        let blocks = [0; 20].map(|_| alloc(&allocator, CPU, of));
        for block in blocks {
            assert_eq!(allocator.free(CPU, block, order(of)), Ok(()));
            assert_eq!(
                allocator.free(CPU, block, order(of)),
                Err(FreeError::DoubleFree(block)),
                "order {of}"
            );
        }
        assert_eq!(allocator.free(CPU, blocks[0], order(of)), Err(FreeError::DoubleFree(blocks[0])));
    }
    allocator.drain_all();
    assert_eq!(allocator.validate().unwrap().allocated, 0);
    assert_eq!(allocator.counters().double_frees, 0, "none was kept");
}
