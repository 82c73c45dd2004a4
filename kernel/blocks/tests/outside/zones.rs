//! Several zones of a kind on one node.

use pageset_blocks::{BlockAllocator, TableCounts, Tables};
use pageset_core::{Config, CpuId, NodeId, Order, Pfn, Request, ZoneConfig, ZoneKind};

/// Frames of 256 MiB and of 1 TiB.
const PART: u64 = 1 << 16;
const FAR: u64 = 1 << 28;

fn zone(span: &std::ops::Range<u64>) -> ZoneConfig<'_> {
    let regions = std::slice::from_ref(span);
    ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: span.clone(), regions }
}

/// If one zone went from 0 to 1 TiB, its 512 MiB of memory would need more than 71 MiB of tables.
#[test]
fn a_hole_between_two_zones_of_a_kind_needs_no_tables() {
    let spans = [0..PART, FAR..FAR + PART];
    let zones = [zone(&spans[0]), zone(&spans[1])];
    let mut config = Config::new(&zones, &[NodeId(0); 2]);
    config.min_free_kbytes = Some(0);
    let bytes = TableCounts::for_config(&config).unwrap().bytes();
    assert!(bytes < 80 << 10, "{bytes} bytes of tables");
    let allocator = BlockAllocator::new(&config, Tables::on_heap(&config).unwrap()).unwrap();
    let huge = Request::new(Order::PAGEBLOCK).movable();
    let blocks: Vec<Pfn> = std::iter::from_fn(|| allocator.alloc(CpuId(1), &huge).ok()).collect();
    assert_eq!(blocks.len() as u64, 2 * PART / 512, "both zones serve the request");
    assert_eq!(blocks.iter().filter(|pfn| pfn.0 >= FAR).count(), blocks.len() / 2);
    blocks.iter().for_each(|pfn| allocator.free(CpuId(0), *pfn, Order::PAGEBLOCK).unwrap());
    assert_eq!(allocator.free_frames(), 2 * PART);
    let far = allocator.alloc_at(CpuId(0), Pfn(FAR + 77), &Request::new(Order::ZERO));
    assert_eq!(far, Ok(()));
    assert!(allocator.alloc_at(CpuId(0), Pfn(FAR / 2), &Request::new(Order::ZERO)).is_err(), "no memory");
    assert_eq!(allocator.validate().unwrap().allocated, 1);
}
