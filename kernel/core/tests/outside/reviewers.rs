//! Tests the concerns of the reviewers of the 2016 high-order per-CPU series. The specification numbers the
//! reviewers' concerns from R1 to R15 (§4.5). Each concern except R4 has a test of the `HIGH_ORDER_V5`
//! policies. Concern R4 needs page sets with blocks up to order 5. The page sets of the `HIGH_ORDER_V5`
//! policies hold at most order 3.

use pageset_core::pcp::{DrainFrom, Limits, ListIndex, Pcp, Pressure};
use pageset_core::policy::{
    DrainOrder, FirstList, HIGH_ORDER_V5, HIGH_ORDER_V5_EXCESS, HIGH_ORDER_V5_LAST_LIST,
    HIGH_ORDER_V5_SCALED_REFILL, Policy,
};
use pageset_core::{
    Config, CpuId, FrameCounts, FrameIndex, FrameTables, MigrateType, NodeId, Order, PageAllocator, Platform,
    Request, Tables, ZoneConfig, ZoneKind,
};

const LISTS: usize = 6;
const IN_TURN: DrainOrder = DrainOrder::RoundRobin(FirstList::Zero);

/// A page set without an allocator. The test makes up the blocks of the page set.
struct Set {
    policy: Policy,
    batch: i32,
    pcp: Pcp,
    frames: FrameTables<'static>,
    next: FrameIndex,
    list_of: Vec<ListIndex>,
}

impl Set {
    fn new(policy: Policy, batch: i32) -> Self {
        let span = 1 << 20;
        let counts = FrameCounts::for_span(0..span).unwrap();
        let pcp = Pcp::with_scheme(policy.lists);
        Self {
            policy,
            batch,
            pcp,
            frames: FrameTables::on_heap(counts).expect("memory enough"),
            next: 0,
            list_of: Vec::new(),
        }
    }

    fn high(&self) -> i32 {
        11 * self.batch
    }

    fn limits(&self) -> Limits {
        Limits { batch: self.batch, high_min: self.high(), high_max: self.high() }
    }

    fn order(&self, list: ListIndex) -> Order {
        self.policy.lists.order(list)
    }

    /// Adds blocks to a list, as frees do, but without the drains that frees trigger.
    fn add(&mut self, list: ListIndex, blocks: i32) {
        for _ in 0..blocks {
            let (frame, order) = (self.next, self.order(list));
            self.next += 8;
            self.list_of.push(list);
            self.pcp.push(&self.frames, list, frame, order);
        }
    }

    fn blocks(&self, list: ListIndex) -> usize {
        self.pcp.blocks(&self.frames, list).count()
    }

    /// Drains the page set. Returns the list of each drained block, and the number of pages.
    fn drain(&mut self, pages: i32) -> (Vec<ListIndex>, u32) {
        let (mut visited, order) = (Vec::new(), self.policy.drain_order);
        let list_of = &self.list_of;
        let drained = self.pcp.remove(&self.frames, order, DrainFrom { pages, list: 0 }, |frame, _| {
            visited.push(list_of[frame as usize / 8]);
        });
        (visited, drained)
    }

    /// Frees a block, and runs the drain that this free triggers. Returns `None` if the free triggers no
    /// drain.
    fn free(&mut self, list: ListIndex) -> Option<(Vec<ListIndex>, u32)> {
        self.add(list, 1);
        let (limits, order) = (self.limits(), self.order(list));
        let due = self.pcp.note_free(&self.policy, limits, Pressure::default(), order)?;
        Some(self.drain(due.pages))
    }

    /// Refills a list, and takes one block from the list. Returns the number of blocks that the refill
    /// fetched.
    fn refill_and_take(&mut self, list: ListIndex) -> i32 {
        let (limits, order) = (self.limits(), self.order(list));
        let blocks = self.pcp.refill_size(&self.policy, limits, Pressure::default(), order) as i32;
        self.add(list, blocks);
        self.pcp.pop(&self.frames, list, order).unwrap();
        blocks
    }
}

fn one_of_each(policy: Policy, batch: i32) -> Set {
    let mut set = Set::new(policy, batch);
    (0..LISTS).for_each(|list| set.add(list, 1));
    set
}

#[test]
fn r1_batch_7_never_reaches_order_3() {
    let mut set = one_of_each(HIGH_ORDER_V5, 7);
    for _ in 0..100 {
        let (visited, pages) = set.drain(7);
        assert_eq!((visited, pages), (vec![0, 1, 2, 3, 4], 9));
        (0..5).for_each(|list| set.add(list, 1));
    }
    let mut set = one_of_each(HIGH_ORDER_V5, 7);
    assert!(set.drain(10).0.contains(&5), "a drain of ten pages reaches list 5 at once");
}

#[test]
fn r2_remembering_the_last_list_reaches_it_in_the_second_drain() {
    let mut set = one_of_each(HIGH_ORDER_V5_LAST_LIST, 7);
    // In a new page set, the last drain counts as stopped at list 0, so the first drain begins with list 1.
    let (first, _) = set.drain(7);
    (0..5).for_each(|list| set.add(list, 1));
    let (second, _) = set.drain(7);
    assert!(!first.contains(&5) && second.contains(&5), "{first:?} then {second:?}");
}

#[test]
fn r3_batch_31_reaches_every_list_each_time() {
    let mut set = Set::new(HIGH_ORDER_V5, 31);
    for _ in 0..20 {
        (0..LISTS).for_each(|list| set.add(list, 40));
        let (visited, _) = set.drain(31);
        assert!((0..LISTS).all(|list| visited.contains(&list)), "{visited:?}");
    }
}

#[test]
fn r5_a_visit_frees_one_block_whatever_its_size() {
    let mut set = Set::new(HIGH_ORDER_V5, 31);
    set.add(0, 1);
    set.add(5, 1);
    let (visited, pages) = set.drain(9);
    assert_eq!((visited, pages), (vec![0, 5], 9), "one page of order 0, eight of order 3");
}

#[test]
fn r6_order_0_frees_empty_the_high_order_lists() {
    let mut set = one_of_each(HIGH_ORDER_V5, 31);
    (3..LISTS).for_each(|list| set.add(list, 5));
    (0..5000).for_each(|_| drop(set.free(1)));
    assert!((3..LISTS).all(|list| set.blocks(list) == 0));
}

#[test]
fn r7_a_refill_takes_no_notice_of_the_count() {
    let mut set = Set::new(HIGH_ORDER_V5, 31);
    set.add(0, 340);
    set.refill_and_take(5);
    assert_eq!(set.pcp.count, 580);
    let mut scaled = Set::new(HIGH_ORDER_V5_SCALED_REFILL, 31);
    scaled.add(0, 340);
    scaled.refill_and_take(5);
    assert_eq!(scaled.pcp.count, 340 + 3 * 8 - 8, "the reviewers' answer: about batch pages");
}

#[test]
fn r8_high_does_not_bound_what_is_held() {
    let mut set = Set::new(HIGH_ORDER_V5, 31);
    set.add(0, set.high() - 1);
    for list in 1..LISTS {
        set.refill_and_take(list);
    }
    assert_eq!(set.pcp.count, 820);
    assert_eq!(set.pcp.count, set.high() - 1 + 16 * (31 - 1));
}

#[test]
fn r9_one_refill_of_an_empty_set_stays_below_high() {
    for batch in [1, 3, 7, 15, 31, 63] {
        let mut set = Set::new(HIGH_ORDER_V5, batch);
        set.refill_and_take(5);
        assert_eq!(set.free(5), None, "batch {batch}: {} of {}", set.pcp.count, set.high());
    }
    let mut set = Set::new(HIGH_ORDER_V5, 31);
    set.add(0, 200);
    set.refill_and_take(5);
    assert!(set.free(5).is_some(), "but on top of 200 pages it does not");
}

#[test]
fn r10_refills_count_blocks_and_drains_count_pages() {
    let mut set = Set::new(HIGH_ORDER_V5, 31);
    assert_eq!(set.refill_and_take(5), 31);
    let (visited, pages) = set.drain(31);
    assert_eq!((visited.len(), pages), (4, 32));
}

#[test]
fn r11_batch_1_drains_one_page_for_eight_added() {
    let mut set = Set::new(HIGH_ORDER_V5, 1);
    (0..3).for_each(|list| set.add(list, 3));
    let mut counts = Vec::new();
    for _ in 0..9 {
        set.free(5);
        counts.push(set.pcp.count);
    }
    assert!(
        counts.is_sorted() && counts[8] > set.high(),
        "it grows while order-0 pages are left: {counts:?}"
    );
    assert!((0..3).all(|list| set.blocks(list) <= 1));
}

#[test]
fn r12_all_orders_share_one_count() {
    let mut set = one_of_each(HIGH_ORDER_V5, 31);
    assert_eq!(set.pcp.count, 1 + 1 + 1 + 2 + 4 + 8);
    set.add(0, 341 - 17 - 1);
    assert!(set.free(3).is_some(), "the limit counts pages of all orders");
}

#[test]
fn r13_a_drain_overshoots_by_at_most_seven_pages() {
    for batch in 1..64 {
        let mut set = Set::new(HIGH_ORDER_V5, batch);
        (0..LISTS).for_each(|list| set.add(list, 70));
        let (_, pages) = set.drain(batch);
        assert!((batch..=batch + 7).contains(&(pages as i32)), "{pages} of {batch}");
        while set.pcp.count > 0 {
            set.drain(batch);
        }
        assert_eq!(set.pcp.count, 0);
    }
}

struct Host;

impl Platform for Host {
    type RawLock = parking_lot::RawMutex;
    type Events = ();

    fn events(&self) -> &() {
        &()
    }
}

#[test]
fn r14_cached_blocks_do_not_merge_until_they_are_drained() {
    let frames = [0..1 << 15];
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..1 << 15, regions: &frames }];
    let mut config = Config::new(&zones, &[NodeId(0)]).with_policy(HIGH_ORDER_V5);
    config.min_free_kbytes = Some(0);
    let allocator = PageAllocator::new(Host, &config, Tables::on_heap(&config).unwrap()).unwrap();
    let cpu = CpuId(0);
    let at_once = Request::new(Order::new(3).unwrap()).atomic();
    let order_4 = Request::new(Order::new(4).unwrap()).atomic();
    let blocks: Vec<_> = std::iter::from_fn(|| allocator.alloc(cpu, &at_once).ok()).collect();
    // Two adjacent blocks are free, but each block is in a page set.
    let pair = blocks.iter().copied().filter(|pfn| pfn.0 / 16 == blocks[100].0 / 16);
    pair.for_each(|pfn| allocator.free(cpu, pfn, at_once.order).unwrap());
    assert!(allocator.alloc(cpu, &order_4).is_err());
    allocator.drain_all(cpu).expect("it exists");
    assert!(allocator.alloc(cpu, &order_4).is_ok());
}

#[test]
fn r15_the_order_in_excess_pays() {
    let held = |policy| {
        let mut set = Set::new(policy, 31);
        (3..LISTS).for_each(|list| set.add(list, 2));
        set.add(1, 400);
        set.pcp.high = set.high();
        set.drain(31).0
    };
    assert!(held(HIGH_ORDER_V5).iter().any(|list| *list >= 3), "in turn, everybody pays");
    assert!(held(HIGH_ORDER_V5_EXCESS).iter().all(|list| *list == 1));
    assert_eq!(HIGH_ORDER_V5.drain_order, IN_TURN);
    assert_eq!(HIGH_ORDER_V5.lists.list(Order::ZERO, MigrateType::Movable), Some(1));
}
