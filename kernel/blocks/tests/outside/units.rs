//! Tests units of 1 GiB: memory that cannot be moved stays in few units, so that other units can be
//! allocated whole.

use pageset_blocks::{BlockAllocator, EveryCpu, Tables};
use pageset_core::{
    AllocError, Config, CpuId, FrameAllocator, FreeError, MigrateType, NodeId, Order, PAGEBLOCK_FRAMES, Pfn,
    Request, ZoneConfig, ZoneKind,
};

use crate::machine;

/// Frames of 1 GiB.
const GIB: u64 = 1 << 18;

#[test]
fn what_cannot_be_moved_lies_in_few_units_and_what_can_be_moved_elsewhere() {
    let regions = [0..8 * GIB];
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..8 * GIB, regions: &regions }];
    let config = Config::new(&zones, &[NodeId(0); 2]);
    let allocator = BlockAllocator::new(&config, Tables::on_heap(&config).unwrap()).unwrap();
    let cpus = EveryCpu::new(&allocator).unwrap();
    let mut units = [[0_u32; 8]; 2];
    for round in 0..GIB as u32 {
        for (index, request) in
            [Request::new(Order::ZERO).movable(), Request::new(Order::ZERO)].iter().enumerate()
        {
            let cpu = CpuId(round % 2);
            let pfn = cpus.alloc(cpu, request).unwrap();
            units[index][(pfn.0 / GIB) as usize] += 1;
        }
    }
    let both = (0..8).filter(|unit| units[0][*unit] > 0 && units[1][*unit] > 0).count();
    let unmovable = units[1].iter().filter(|pages| **pages > 0).count();
    assert!(both <= 1 && unmovable <= 2, "{units:?}");
}

/// Inodes use what slabs have left, before they taint one more unit.
#[test]
fn the_rest_of_another_type_is_used_before_one_more_unit_is_tainted() {
    let allocator = machine::allocator(&[(ZoneKind::Normal, 0..3 * GIB, vec![0..3 * GIB])], 1);
    let (cpu, unmovable) = (CpuId(0), Request::new(Order::ZERO));
    let inode = unmovable.of_type(MigrateType::Reclaimable);
    let slabs: Vec<_> = (0..GIB).map(|_| allocator.alloc(cpu, &unmovable).unwrap()).collect();
    let unit = slabs[0].0 / GIB;
    assert!(slabs.iter().all(|page| page.0 / GIB == unit), "one unit is full");
    // Every pageblock of the zone stays in part use.
    slabs.iter().step_by(2).for_each(|page| allocator.free(cpu, *page, Order::ZERO).unwrap());
    // The CPU still reserves a pageblock for slabs.
    let at_hand = u64::from(PAGEBLOCK_FRAMES / 2);
    for _ in 0..GIB / 2 - at_hand {
        assert_eq!(allocator.alloc(cpu, &inode).unwrap().0 / GIB, unit);
    }
    assert_ne!(allocator.alloc(cpu, &inode).unwrap().0 / GIB, unit, "the rest of the unit is full again");
    assert!(allocator.validate().is_ok());
}

#[test]
fn a_gib_is_had_while_one_is_whole_and_comes_back() {
    // The zone begins and ends in the middle of a GiB, so its first and last parts are no whole units.
    let span = GIB / 2..3 * GIB + GIB / 2;
    let allocator = machine::allocator(&[(ZoneKind::Normal, span.clone(), vec![span])], 1);
    let (cpu, request) = (CpuId(0), Request::new(Order::ZERO).movable());
    let gib = || allocator.alloc_contiguous(cpu, GIB, GIB, &request);
    let free_gib = |first: Pfn| allocator.free_range(cpu, first.0..first.0 + GIB);
    let first = gib().unwrap();
    assert_eq!(first, Pfn(GIB));
    let page = allocator.alloc_at(cpu, Pfn(2 * GIB + 77), &request);
    assert_eq!(page, Ok(()));
    let none = gib();
    assert_eq!(none, Err(AllocError::OutOfMemory { order: Order::MAX }));
    allocator.free(cpu, Pfn(2 * GIB + 77), Order::ZERO).unwrap();
    assert_eq!(gib(), Ok(Pfn(2 * GIB)));
    assert_eq!(free_gib(first), Ok(()));
    assert_eq!(free_gib(first), Err(FreeError::DoubleFree(first)));
    assert_eq!(gib(), Ok(first));
    assert!(allocator.validate().is_ok());
}

/// Readers found these bugs. A unit stayed clean if the first pageblock in it that could not be moved came
/// from the CPU's stock, was requested at its place, or came back into service.
#[test]
fn a_unit_is_tainted_however_its_first_unmovable_block_is_taken() {
    let (cpu, huge) = (CpuId(0), Request::new(Order::PAGEBLOCK));
    for way in ["the stock", "a whole place", "a part of a place", "a return into service", "any place"] {
        let allocator = machine::allocator(&[(ZoneKind::Normal, 0..2 * GIB, vec![0..2 * GIB])], 1);
        let first = allocator.alloc(cpu, &huge.movable()).unwrap();
        let unmovable = match way {
            "the stock" => {
                allocator.free(cpu, first, Order::PAGEBLOCK).unwrap();
                allocator.alloc(cpu, &huge).unwrap()
            }
            "a whole place" => {
                let at = Pfn(first.0 + 512);
                allocator.alloc_at(cpu, at, &huge).map(|()| at).unwrap()
            }
            "a part of a place" => {
                let at = Pfn(first.0 + 512);
                allocator.alloc_at(cpu, at, &Request::new(Order::ZERO)).map(|()| at).unwrap()
            }
            "a return into service" => {
                let at = Pfn(first.0 + 512);
                allocator.alloc_at(cpu, at, &Request::new(Order::ZERO).movable()).unwrap();
                allocator.isolate_pageblock(cpu, at).unwrap();
                allocator.unisolate_pageblock(cpu, at, MigrateType::Unmovable).unwrap();
                at
            }
            _ => allocator.alloc(cpu, &huge).unwrap(),
        };
        let next = allocator.alloc(cpu, &huge.movable()).unwrap();
        assert_ne!(unmovable.0 / GIB, next.0 / GIB, "{way}: {unmovable}, then {next}");
    }
}

/// Units in part use stay in the set of whole units until a search finds them. Units come back to the set
/// when their last page is freed, whichever call frees that page.
#[test]
fn several_gib_lie_together_wherever_pages_were_in_use_before() {
    let allocator = machine::allocator(&[(ZoneKind::Normal, 0..6 * GIB, vec![0..6 * GIB])], 1);
    let (cpu, request) = (CpuId(0), Request::new(Order::ZERO).movable());
    let gibs = |count: u64| allocator.alloc_contiguous(cpu, count * GIB, GIB, &request);
    for pfn in [GIB - 1, 2 * GIB + 5] {
        assert_eq!(allocator.alloc_at(cpu, Pfn(pfn), &request), Ok(()));
    }
    assert_eq!(gibs(2), Ok(Pfn(3 * GIB)));
    assert!(gibs(2).is_err());
    assert_eq!(gibs(1), Ok(Pfn(GIB)));
    allocator.free(cpu, Pfn(2 * GIB + 5), Order::ZERO).unwrap();
    allocator.free_range(cpu, GIB..2 * GIB).unwrap();
    assert_eq!(gibs(2), Ok(Pfn(GIB)));
    assert_eq!(gibs(1), Ok(Pfn(5 * GIB)));
    assert!(gibs(1).is_err());
    allocator.free(cpu, Pfn(GIB - 1), Order::ZERO).unwrap();
    assert_eq!(gibs(1), Ok(Pfn(0)));
    assert!(allocator.validate().is_ok());
}
