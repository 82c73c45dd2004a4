//! Tests `split_range`: blocks become single frames.

use pageset_core::{CpuId, FreeError, MigrateType, Order, Pfn};

use crate::machine::{order, plain, request};

const CPU: CpuId = CpuId(0);

#[test]
fn each_frame_of_a_split_block_is_freed_by_itself() {
    let allocator = plain(8192, 1);
    for of in [1, 4, 8, 9, 10] {
        let pfn = allocator.alloc(CPU, &request(of, MigrateType::Unmovable)).expect("memory enough");
        let end = pfn.0 + u64::from(order(of).frames());
        assert_eq!(allocator.split_range(CPU, pfn.0..end), Ok(()), "order {of}");
        assert!(allocator.free(CPU, pfn, order(of)).is_err());
        assert_eq!(allocator.validate().expect("everything in its place").allocated, end - pfn.0);
        for frame in (pfn.0..end).rev() {
            assert_eq!(allocator.free(CPU, Pfn(frame), Order::ZERO), Ok(()), "order {of}, {frame:#x}");
        }
        assert_eq!(allocator.validate().expect("everything in its place").allocated, 0);
    }
}

#[test]
fn neighbours_stay_what_they_are() {
    let allocator = plain(8192, 1);
    let alloc = || allocator.alloc(CPU, &request(3, MigrateType::Unmovable)).expect("memory enough");
    let (first, second) = (alloc(), alloc());
    assert_eq!(allocator.split_range(CPU, first.0..first.0 + 8), Ok(()));
    assert_eq!(allocator.free(CPU, second, order(3)), Ok(()));
    assert_eq!(allocator.free(CPU, Pfn(first.0 + 3), Order::ZERO), Ok(()));
    let freed = Pfn(first.0 + 3);
    assert_eq!(allocator.split_range(CPU, first.0..first.0 + 8), Err(FreeError::DoubleFree(freed)));
    assert_eq!(allocator.validate().expect("everything in its place").allocated, 7);
    let pfn = allocator.alloc_exact(CPU, 11, &request(0, MigrateType::Unmovable)).expect("memory enough");
    assert_eq!(allocator.split_range(CPU, pfn.0..pfn.0 + 11), Ok(()));
    for frame in pfn.0..pfn.0 + 11 {
        assert_eq!(allocator.free(CPU, Pfn(frame), Order::ZERO), Ok(()));
    }
    assert_eq!(allocator.validate().expect("everything in its place").allocated, 7);
}
