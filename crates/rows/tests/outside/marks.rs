//! The minimum of a zone: ordinary requests leave it to those that cannot wait.

use pageset_core::{
    AllocError, Config, CpuId, MigrateType, NodeId, Order, Pfn, Request, ZoneConfig, ZoneKind,
};
use pageset_rows::{BlockAllocator, Tables};

use crate::machine::order;

const CPU: CpuId = CpuId(0);

/// One zone with the watermarks of Linux.
fn machine(frames: u64, cpus: usize) -> (BlockAllocator<'static>, u64) {
    let regions = [0..frames];
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..frames, regions: &regions }];
    let nodes = vec![NodeId(0); cpus];
    let config = Config::new(&zones, &nodes);
    let tables = Tables::on_heap(&config).expect("the zone is possible");
    let allocator = BlockAllocator::new(&config, tables).expect("the zone is possible");
    (allocator, config.watermarks(0).min)
}

fn taken(allocator: &BlockAllocator<'_>, cpu: CpuId, request: &Request) -> Vec<Pfn> {
    std::iter::from_fn(|| allocator.alloc(cpu, request).ok()).collect()
}

#[test]
fn ordinary_requests_leave_the_minimum_to_those_that_cannot_wait() {
    {
        for (frames, min) in [(1024, 64), (4096, 128), (32_768, 362)] {
            let (allocator, configured) = machine(frames, 1);
            assert_eq!(configured, min);
            let ordinary = Request::new(Order::ZERO);
            let pages = taken(&allocator, CPU, &ordinary);
            assert_eq!(frames - pages.len() as u64, min, "{frames} frames");
            assert_eq!(allocator.alloc(CPU, &ordinary), Err(AllocError::OutOfMemory { order: Order::ZERO }));
            let atomic = taken(&allocator, CPU, &ordinary.atomic());
            assert!(!atomic.is_empty() && (atomic.len() as u64) < min, "{} of {min}", atomic.len());
            // What comes back is for those first whose share it is.
            let (pages, rest) = pages.split_at(2 * min as usize);
            pages.iter().for_each(|pfn| assert_eq!(allocator.free(CPU, *pfn, Order::ZERO), Ok(())));
            let again = taken(&allocator, CPU, &ordinary);
            assert_eq!(again.len(), 2 * min as usize - atomic.len(), "{frames} frames");
            let held = rest.len() + again.len() + atomic.len();
            assert_eq!(allocator.validate().map(|census| census.allocated), Ok(held as u64));
        }
    }
}

#[test]
fn the_minimum_is_left_whatever_orders_types_and_cpus_take_the_rest() {
    {
        let (allocator, min) = machine(8192, 4);
        let mut held = 0;
        for round in 0.. {
            let mut took = 0;
            for cpu in (0..4).map(CpuId) {
                let of = order([3, 0, 2, 9, 1, 5, 0, 10][(round + cpu.0 as usize) % 8]);
                let request = Request::new(of).of_type(MigrateType::ALL[round % 3]);
                if allocator.alloc(cpu, &request).is_ok() {
                    took += u64::from(of.frames());
                }
            }
            held += took;
            assert!(8192 - held >= min, "{} frames are left", 8192 - held);
            // Each order of each CPU's had its turn.
            if took == 0 && round > 5000 {
                break;
            }
        }
        assert_eq!(8192 - held, min, "and no more than that");
        assert!(allocator.alloc(CpuId(3), &Request::new(Order::ZERO).atomic()).is_ok());
        assert_eq!(allocator.validate().map(|census| census.allocated), Ok(held + 1));
    }
}
