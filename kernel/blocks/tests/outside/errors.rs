//! Each kind of misuse has its error.

use pageset_blocks::{BlockAllocator, Tables};
use pageset_core::{
    AllocError, Config, ConfigError, CpuId, FreeError, MigrateType, NodeChoice, NodeId, Order, Pfn,
    RegionFault, Request, RequestTraits, Watermarks, ZoneConfig, ZoneId, ZoneKind,
};

use crate::machine::{self, order, plain, ragged, request};

const CPU: CpuId = CpuId(0);

#[test]
fn requests_that_cannot_be() {
    let allocator = ragged(1);
    let any = request(0, MigrateType::Movable);
    assert_eq!(allocator.alloc(CpuId(1), &any), Err(AllocError::BadCpu(CpuId(1))));
    assert_eq!(
        allocator.alloc(CPU, &any.of_type(MigrateType::Cma)),
        Err(AllocError::BadType(MigrateType::Cma))
    );
    assert_eq!(allocator.alloc(CPU, &any.on(NodeChoice::Only(NodeId(1)))), Err(AllocError::NoEligibleZone));
    assert_eq!(allocator.alloc(CPU, &any.on(NodeChoice::Prefer(NodeId(9)))), Err(AllocError::NoEligibleZone));
    assert_eq!(allocator.alloc(CPU, &any.zones_below(Pfn(2047))), Err(AllocError::NoEligibleZone));
    assert!(allocator.alloc(CPU, &any.zones_below(Pfn(2048))).unwrap() < Pfn(2048));
    assert_eq!(allocator.alloc_exact(CPU, 0, &any), Err(AllocError::BadCount(0)));
    assert_eq!(allocator.alloc_exact(CPU, 1025, &any), Err(AllocError::BadCount(1025)));
    assert_eq!(
        allocator.alloc_bulk(CPU, &request(1, MigrateType::Movable), &mut []),
        Err(AllocError::BulkOrder(order(1)))
    );
    assert_eq!(
        allocator.alloc_at(CPU, Pfn(3), &request(1, MigrateType::Movable)),
        Err(AllocError::Misaligned(Pfn(3), order(1)))
    );
    assert_eq!(allocator.alloc_at(CPU, Pfn(3000), &any), Err(AllocError::Foreign(Pfn(3000))));
    assert_eq!(allocator.alloc_at(CPU, Pfn(u64::MAX), &any), Err(AllocError::Foreign(Pfn(u64::MAX))));
    assert_eq!(allocator.alloc_at(CPU, Pfn(750), &any), Err(AllocError::Foreign(Pfn(750))));
    // The last frame of the block lies outside the zone.
    let end = allocator.alloc_at(CPU, Pfn(7296), &request(3, MigrateType::Movable));
    assert_eq!(end, Err(AllocError::NotFree(Pfn(7296))));
}

#[test]
fn frees_of_what_is_no_block() {
    let allocator = ragged(1);
    let block = allocator.alloc(CPU, &request(3, MigrateType::Movable)).unwrap();
    let free = |pfn: u64, of: u8| allocator.free(CPU, Pfn(pfn), order(of));
    assert_eq!(free(block.0 + 1, 0), Err(FreeError::NotABlock(Pfn(block.0 + 1))));
    let wrong = FreeError::WrongOrder { pfn: block, given: order(2), allocated: order(3) };
    assert_eq!(free(block.0, 2), Err(wrong));
    assert_eq!(free(block.0, 3), Ok(()));
    assert_eq!(free(block.0, 3), Err(FreeError::DoubleFree(block)));
    assert_eq!(free(block.0, 0), Err(FreeError::DoubleFree(block)));
    for foreign in [3000, 750, 7301, u64::MAX] {
        assert_eq!(free(foreign, 0), Err(FreeError::Foreign(Pfn(foreign))), "{foreign}");
    }
    let huge = allocator.alloc(CPU, &request(10, MigrateType::Movable)).unwrap();
    assert_eq!(free(huge.0 + 512, 9), Err(FreeError::NotABlock(Pfn(huge.0 + 512))));
    assert_eq!(free(huge.0 + 1, 0), Err(FreeError::NotABlock(Pfn(huge.0 + 1))));
    let wrong = FreeError::WrongOrder { pfn: huge, given: order(9), allocated: order(10) };
    assert_eq!(free(huge.0, 9), Err(wrong));
    assert_eq!((free(huge.0, 10), free(huge.0, 10)), (Ok(()), Err(FreeError::DoubleFree(huge))));
    assert_eq!(allocator.free_range(CPU, huge.0..huge.0 + 5), Err(FreeError::DoubleFree(huge)));
    assert!(allocator.validate().is_ok());
}

#[test]
fn a_batch_goes_on_after_a_mistake() {
    let allocator = plain(2048, 1);
    let mut pages = [None; 10];
    allocator.alloc_bulk(CPU, &request(0, MigrateType::Movable), &mut pages).unwrap();
    let pages = pages.map(|page| page.expect("there is memory"));
    let mut batch = pages.map(|pfn| (pfn, Order::ZERO));
    batch[6] = batch[3];
    assert_eq!(allocator.free_batch(CPU, &batch), Err((6, FreeError::DoubleFree(pages[3]))));
    assert_eq!(allocator.validate().unwrap().allocated, 1);
    let unknown = allocator.free_batch(CpuId(1), &[(pages[6], Order::ZERO)]);
    assert_eq!(unknown, Err((0, FreeError::BadCpu(CpuId(1)))));
    assert_eq!(allocator.free_batch(CPU, &[(pages[6], Order::ZERO)]), Ok(()));
}

#[test]
fn configurations_that_contradict_themselves() {
    let zone = |span: std::ops::Range<u64>, regions| ZoneConfig {
        kind: ZoneKind::Normal,
        node: NodeId(0),
        span,
        regions,
    };
    let build = |zones: &[ZoneConfig<'_>]| {
        let config = Config::new(zones, &[NodeId(0)]);
        Tables::on_heap(&config).and_then(|tables| BlockAllocator::new(&config, tables)).map(drop)
    };
    assert_eq!(build(&[]), Err(ConfigError::NoZones));
    assert_eq!(build(&[zone(5..5, &[])]), Err(ConfigError::BadZoneSpan(0)));
    assert_eq!(build(&[zone(0..u64::MAX, &[])]), Err(ConfigError::BadZoneSpan(0)));
    for end in [u64::MAX, u64::MAX - 500, u64::MAX - 1022] {
        assert_eq!(build(&[zone(end - 65_536..end, &[])]), Err(ConfigError::BadZoneSpan(0)), "{end:#x}");
    }
    assert_eq!(build(&[zone(u64::MAX - 65_535..u64::MAX - 1023, &[])]), Ok(()), "no table reaches beyond it");
    let bad_region = |region, why| Err(ConfigError::BadRegion { zone: 0, region, why });
    assert_eq!(build(&[zone(0..100, &[10..10])]), bad_region(0, RegionFault::NoFrames));
    assert_eq!(build(&[zone(0..100, &[0..101])]), bad_region(0, RegionFault::OutsideZone));
    assert_eq!(build(&[zone(0..100, &[10..20, 5..7])]), bad_region(1, RegionFault::OverlapsPrevious));
    assert_eq!(build(&[zone(0..100, &[10..20])]), Ok(()));
    let zones = [zone(0..4096, &[0..4096])];
    let config = Config::new(&zones, &[NodeId(0)]);
    let no_rows = pageset_core::Storage::owned(0, || unreachable!()).unwrap();
    let tables = Tables::with_rows(no_rows, &config).unwrap();
    assert_eq!(BlockAllocator::new(&config, tables).map(drop), Err(ConfigError::TableLength("rows", 8)));
}

/// A PC: memory up to 640 KiB and from 1 MiB on, all of it in one zone of 16 MiB.
#[test]
fn a_hole_costs_no_more_than_the_blocks_that_would_have_it() {
    let allocator = machine::allocator(&[(ZoneKind::Dma, 0..4096, vec![1..160, 256..4096])], 1);
    let at = |pfn, of| allocator.alloc_at(CPU, Pfn(pfn), &request(of, MigrateType::Unmovable));
    assert_eq!(at(128, 6), Err(AllocError::NotFree(Pfn(128))), "the hole is not free");
    assert_eq!(at(0, 9), Err(AllocError::Foreign(Pfn(0))));
    assert_eq!([at(256, 4), at(2, 1), at(128, 5), at(512, 4)], [Ok(()); 4]);
    assert_eq!(at(256, 4), Err(AllocError::NotFree(Pfn(256))));
    allocator.free(CPU, Pfn(128), order(5)).unwrap();
    allocator.add_memory(CPU, 0..1).unwrap();
    allocator.add_memory(CPU, 160..256).unwrap();
    assert_eq!(at(128, 7), Ok(()), "the hole is filled");
    allocator.validate().unwrap();
}

#[test]
fn blocks_beside_a_hole_are_had_and_no_frame_is_lost() {
    let allocator = plain(511, 1);
    let pair = request(1, MigrateType::Movable);
    assert_eq!(std::iter::from_fn(|| allocator.alloc(CPU, &pair).ok()).count(), 255);
    assert_eq!(allocator.alloc(CPU, &pair), Err(AllocError::OutOfMemory { order: order(1) }));
    assert_eq!(allocator.alloc(CPU, &request(0, MigrateType::Movable)), Ok(Pfn(510)));
}

/// `zones_below` chooses zones, not frames. To get a frame below 1 MiB, try the frames one by one.
#[test]
fn zones_below_is_about_whole_zones() {
    let allocator = machine::allocator(&[(ZoneKind::Dma, 0..4096, vec![1..160, 256..4096])], 1);
    let low = request(0, MigrateType::Unmovable).in_zone(ZoneKind::Dma);
    assert_eq!(allocator.alloc(CPU, &low.zones_below(Pfn(256))), Err(AllocError::NoEligibleZone));
    assert!(allocator.alloc(CPU, &low.zones_below(Pfn(4096))).is_ok());
    let found = (1..256).map(Pfn).find(|pfn| allocator.alloc_at(CPU, *pfn, &low).is_ok());
    assert!(found.is_some());
}

#[test]
fn a_given_place_leaves_the_minimum_as_any_other() {
    const MIN: u64 = 700;
    let allocator = plain(4096, 2);
    allocator.set_watermarks(ZoneId(0), Watermarks { min: MIN, low: MIN, high: MIN }).unwrap();
    let page = request(0, MigrateType::Movable).with(RequestTraits::MAY_WAIT);
    let at = |pfn: u64, request: &Request| allocator.alloc_at(CPU, Pfn(pfn), request);
    (0..4096 - MIN).for_each(|pfn| assert_eq!(at(pfn, &page), Ok(())));
    let short = Err(AllocError::OutOfMemory { order: Order::ZERO });
    let urgent = page.with(page.traits | RequestTraits::HIGH_PRIORITY);
    assert_eq!([at(4000, &page), at(4000, &urgent)], [short, short]);
    assert_eq!(at(0, &page), Err(AllocError::NotFree(Pfn(0))), "memory does not matter then");
    let census = allocator.validate().unwrap();
    assert_eq!(census.free + census.cached, MIN, "what was refused is free again");
    assert_eq!(at(4000, &page.with(RequestTraits::NO_WATERMARKS)), Ok(()));
    allocator.free(CPU, Pfn(5), Order::ZERO).unwrap();
    allocator.free(CpuId(1), Pfn(6), Order::ZERO).unwrap();
    assert_eq!([at(4001, &page), at(4002, &page)], [Ok(()), short]);
}

/// The highest possible frame numbers work like all others.
#[test]
fn a_zone_whose_tables_end_with_the_frame_numbers_is_whole() {
    const END: u64 = u64::MAX - 1023;
    let regions = [END - 4096..END];
    let zones =
        [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: END - 4096..END, regions: &regions }];
    let mut config = Config::new(&zones, &[NodeId(0)]);
    config.min_free_kbytes = Some(0);
    let allocator = BlockAllocator::new(&config, Tables::on_heap(&config).unwrap()).unwrap();
    assert_eq!(allocator.validate().map(|census| census.free), Ok(4096));
    let block = allocator.alloc(CPU, &Request::new(Order::PAGEBLOCK)).unwrap();
    assert_eq!(allocator.free_range(CPU, block.0 + 1..block.0 + 512), Ok(()));
    let pages = std::iter::from_fn(|| allocator.alloc(CPU, &Request::new(Order::ZERO)).ok());
    assert_eq!(pages.count(), 4095);
    assert_eq!(allocator.validate().map(|census| census.allocated), Ok(4096));
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "that is the mistake")]
fn ranges_without_frames_are_errors() {
    let allocator = ragged(1);
    let block = allocator.alloc(CPU, &request(5, MigrateType::Movable)).unwrap().0;
    for range in [block..block, block + 9..block + 2, 10..5, 5..5, u64::MAX..0, 3000..3000] {
        let (start, end) = (Pfn(range.start), Pfn(range.end));
        assert_eq!(allocator.free_range(CPU, range.clone()), Err(FreeError::BadRange(start, end)));
        assert_eq!(allocator.split_range(CPU, range.clone()), Err(FreeError::BadRange(start, end)));
        assert_eq!(allocator.add_memory(CPU, range), Err(ConfigError::BadRange(start, end)));
    }
    let told = FreeError::BadRange(Pfn(10), Pfn(5)).to_string();
    assert_eq!(told, "frames 0xa to 0x5 are no range: the end must be above the start");
    assert_eq!(allocator.validate().map(|census| census.allocated), Ok(32));
}

#[test]
fn a_pageblock_of_two_regions_that_touch_is_whole() {
    let allocator = machine::allocator(&[(ZoneKind::Normal, 0..1024, vec![0..100, 100..700, 700..1024])], 1);
    let whole = || allocator.zones().map(|zone| zone.whole_pageblocks).sum::<u64>();
    assert_eq!(whole(), 2);
    assert_eq!(allocator.alloc(CPU, &request(10, MigrateType::Movable)), Ok(Pfn(0)));
    allocator.free(CPU, Pfn(0), order(10)).unwrap();
    allocator.validate().unwrap();
}
