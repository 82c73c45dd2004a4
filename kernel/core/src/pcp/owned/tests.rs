//! Tests each phase of a refill, the destination of freed pages, and the blocks of a drain.

use std::sync::Mutex;
use std::vec::Vec;

use crate::event::{Event, EventSink};
use crate::policy::{ClaimLimit, PCP_BUDDY_RFC, Policy, RemoteFrees};
use crate::{
    BlockUse, Config, CpuId, NodeId, Order, PageAllocator, Pfn, Platform, Request, RequestTraits, Tables,
    ZoneConfig, ZoneId, ZoneKind,
};

#[derive(Default)]
struct Host(Drained);

/// An event sink that records the orders of drained blocks.
#[derive(Default)]
struct Drained(Mutex<Vec<u8>>);

impl EventSink for Drained {
    fn emit(&self, _: CpuId, event: Event) {
        if let Event::MmPagePcpuDrain { order, .. } = event {
            self.0.lock().unwrap().push(order.get());
        }
    }
}

impl Platform for Host {
    type RawLock = parking_lot::RawMutex;
    type Events = Drained;

    fn events(&self) -> &Drained {
        &self.0
    }
}

type Allocator = PageAllocator<'static, Host>;

const OWNER: CpuId = CpuId(0);
const OTHER: CpuId = CpuId(1);
const ZONE: ZoneId = ZoneId(0);

fn allocator(policy: Policy, frames: u64) -> Allocator {
    let regions = [0..frames];
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..frames, regions: &regions }];
    let mut config = Config::new(&zones, &[NodeId(0), NodeId(0)]).with_policy(policy);
    config.min_free_kbytes = Some(0);
    PageAllocator::new(Host::default(), &config, Tables::on_heap(&config).unwrap()).unwrap()
}

fn pages(allocator: &Allocator, cpu: CpuId, count: usize) -> Vec<Pfn> {
    let one = Request::new(Order::ZERO).movable();
    (0..count).map(|_| allocator.alloc(cpu, &one).unwrap()).collect()
}

fn free(allocator: &Allocator, cpu: CpuId, pages: &[Pfn]) {
    pages.iter().for_each(|page| allocator.free(cpu, *page, Order::ZERO).unwrap());
}

fn count(allocator: &Allocator, cpu: CpuId) -> i32 {
    allocator.pageset_info(ZONE, cpu).unwrap().count
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn a_whole_pageblock_is_claimed_and_split_without_the_zones_lock() {
    let allocator = allocator(PCP_BUDDY_RFC, 65_536);
    let held = pages(&allocator, OWNER, 512);
    assert_eq!(held.iter().map(|page| page.0).collect::<Vec<_>>(), (0..512).collect::<Vec<_>>());
    assert_eq!(allocator.counters().zone_lock_acquisitions, 1, "512 pages, one look into the zone");
    assert!(held.iter().all(|page| allocator.pageblock_owner(*page) == Some(OWNER)));
    assert_eq!(allocator.pageblock_owner(Pfn(512)), None);
    allocator.validate().unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn a_page_goes_to_the_owners_page_set_from_any_cpu() {
    let allocator = allocator(PCP_BUDDY_RFC, 65_536);
    let held = pages(&allocator, OWNER, 512);
    free(&allocator, OTHER, &held[..100]);
    assert_eq!((count(&allocator, OWNER), count(&allocator, OTHER)), (100, 0));
    allocator.validate().unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn a_drain_gives_back_merged_blocks_and_ends_ownership() {
    let allocator = allocator(PCP_BUDDY_RFC, 65_536);
    let held = pages(&allocator, OWNER, 512);
    let drained = || std::mem::take(&mut *allocator.platform().0.0.lock().unwrap());
    // Free all but one page of the lower half. The drain then gives the zone one block of each order from 0
    // to 7, and the CPU still owns the pageblock.
    free(&allocator, OTHER, &held[1..256]);
    drained();
    allocator.drain_cpu(OTHER, OWNER).unwrap();
    let mut orders = drained();
    orders.sort_unstable();
    assert_eq!(orders, (0..8).collect::<Vec<_>>());
    assert_eq!(allocator.pageblock_owner(held[0]), Some(OWNER));
    allocator.validate().unwrap();
    free(&allocator, OTHER, &held[..1]);
    free(&allocator, OTHER, &held[256..]);
    allocator.drain_cpu(OTHER, OWNER).unwrap();
    assert_eq!(allocator.pageblock_owner(held[0]), None, "free as a whole");
    assert_eq!(allocator.validate().unwrap().cached, 0);
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn fragments_of_its_own_pageblocks_come_first() {
    let allocator = allocator(PCP_BUDDY_RFC, 65_536);
    let held = pages(&allocator, OWNER, 512);
    free(&allocator, OWNER, &held[256..]);
    allocator.drain_cpu(OWNER, OWNER).unwrap();
    assert_eq!(count(&allocator, OWNER), 0);
    let again = pages(&allocator, OWNER, 256);
    assert!(again.iter().all(|page| held.contains(page)), "{again:?}");
    allocator.validate().unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn a_page_set_too_small_for_a_pageblock_owns_none() {
    let mut rule = PCP_BUDDY_RFC.ownership.unwrap();
    rule.claims = ClaimLimit::High;
    for (policy, frames) in [(PCP_BUDDY_RFC, 4096), (Policy { ownership: Some(rule), ..PCP_BUDDY_RFC }, 4096)]
    {
        let allocator = allocator(policy, frames);
        let held = pages(&allocator, OWNER, 64);
        assert!(held.iter().all(|page| allocator.pageblock_owner(*page).is_none()));
        free(&allocator, OWNER, &held);
        allocator.validate().unwrap();
    }
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn a_cpu_that_goes_offline_gives_its_pageblocks_back() {
    let allocator = allocator(PCP_BUDDY_RFC, 65_536);
    let held = pages(&allocator, OWNER, 300);
    allocator.cpu_offline(OWNER).unwrap();
    assert_eq!((allocator.pageblock_owner(held[0]), count(&allocator, OWNER)), (None, 0));
    // If no CPU owns a pageblock, its freed pages go to the page set of the freeing CPU.
    free(&allocator, OTHER, &held[..10]);
    assert_eq!((count(&allocator, OWNER), count(&allocator, OTHER)), (0, 10));
    let one = pages(&allocator, OWNER, 1);
    assert_eq!(allocator.pageblock_owner(one[0]), None, "it owns nothing while it is offline");
    allocator.validate().unwrap();
    allocator.cpu_online(OWNER).unwrap();
    allocator.drain_all(OTHER).unwrap();
    let next = pages(&allocator, OWNER, 1000);
    assert!(next.iter().any(|page| allocator.pageblock_owner(*page) == Some(OWNER)));
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn an_isolated_pageblock_has_no_owner() {
    let allocator = allocator(PCP_BUDDY_RFC, 65_536);
    let held = pages(&allocator, OWNER, 512);
    allocator.isolate_pageblock(OTHER, held[0]).unwrap();
    assert_eq!(allocator.pageblock_owner(held[0]), None);
    free(&allocator, OTHER, &held);
    let zone = allocator.zones().next().unwrap();
    assert_eq!((zone.free_isolated, count(&allocator, OWNER)), (512, 0));
    allocator.validate().unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn a_bad_frame_in_an_owners_page_set_is_not_merged_and_never_returns() {
    let allocator = allocator(PCP_BUDDY_RFC, 65_536);
    let held = pages(&allocator, OWNER, 512);
    free(&allocator, OTHER, &held);
    allocator.drain_cpu(OTHER, OTHER).unwrap();
    let bad = held[100];
    let before = allocator.block_of(bad).unwrap();
    allocator.mark_bad(OTHER, bad).unwrap();
    allocator.drain_all(OTHER).unwrap();
    let census = allocator.validate().unwrap();
    let lost = if before.held_by == BlockUse::Pageset { u64::from(before.order.frames()) } else { 1 };
    assert_eq!((census.cached, census.leaked), (0, lost));
    let desperate = Request::new(Order::ZERO).movable().with(RequestTraits::NO_WATERMARKS);
    while let Ok(page) = allocator.alloc(OWNER, &desperate) {
        assert_ne!(page, bad);
    }
}

/// The rule of the RFC "superpageblocks": if another CPU frees a page, the page goes to a list of the owner.
fn with_lists() -> Policy {
    let mut policy = PCP_BUDDY_RFC;
    policy.ownership.iter_mut().for_each(|rule| rule.remote = RemoteFrees::OwnersList);
    policy
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn an_owners_list_is_taken_in_when_a_list_of_its_page_set_is_empty() {
    let allocator = allocator(with_lists(), 65_536);
    let held = pages(&allocator, OWNER, 512);
    free(&allocator, OTHER, &held);
    assert_eq!((count(&allocator, OWNER), count(&allocator, OTHER)), (0, 0), "the page sets are left alone");
    assert_eq!((allocator.cached_pages(), allocator.validate().unwrap().cached), (512, 512));
    assert!(allocator.free(OTHER, held[7], Order::ZERO).is_err(), "it is free already");
    let again = pages(&allocator, OWNER, 512);
    assert!(again.iter().all(|page| held.contains(page)));
    assert_eq!(allocator.counters().zone_lock_acquisitions, 1, "both times from one look into the zone");
    allocator.validate().unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn an_owners_list_is_taken_in_by_its_own_free_and_by_a_drain() {
    let allocator = allocator(with_lists(), 65_536);
    let held = pages(&allocator, OWNER, 512);
    free(&allocator, OTHER, &held[..100]);
    free(&allocator, OWNER, &held[100..101]);
    assert_eq!(count(&allocator, OWNER), 101);
    free(&allocator, OTHER, &held[101..]);
    allocator.drain_cpu(OTHER, OWNER).unwrap();
    assert_eq!(allocator.pageblock_owner(held[0]), None, "free as a whole");
    assert_eq!(allocator.validate().unwrap().cached, 0);
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn no_page_stays_on_the_list_of_an_owner_that_left_or_of_an_isolated_pageblock() {
    let allocator = allocator(with_lists(), 65_536);
    let held = pages(&allocator, OWNER, 300);
    free(&allocator, OTHER, &held[..100]);
    allocator.cpu_offline(OWNER).unwrap();
    free(&allocator, OTHER, &held[100..110]);
    assert_eq!((count(&allocator, OWNER), count(&allocator, OTHER)), (0, 10));
    free(&allocator, OTHER, &held[110..]);
    allocator.drain_all(OTHER).unwrap();
    assert_eq!(allocator.validate().unwrap().cached, 0);
    allocator.cpu_online(OWNER).unwrap();

    let held = pages(&allocator, OWNER, 512);
    free(&allocator, OTHER, &held[..100]);
    allocator.isolate_pageblock(OTHER, held[200]).unwrap();
    allocator.drain_all(OTHER).unwrap();
    free(&allocator, OTHER, &held[100..]);
    allocator.drain_all(OTHER).unwrap();
    assert_eq!(allocator.validate().unwrap().cached, 0);
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn a_bad_frame_on_an_owners_list_never_returns() {
    let allocator = allocator(with_lists(), 65_536);
    let held = pages(&allocator, OWNER, 512);
    free(&allocator, OTHER, &held);
    allocator.mark_bad(OTHER, held[100]).unwrap();
    allocator.validate().unwrap();
    allocator.drain_all(OTHER).unwrap();
    let census = allocator.validate().unwrap();
    assert_eq!((census.cached, census.leaked), (0, 1));
}
