//! Tests what becomes of a block whose surplus frames cannot all be freed.

use std::cell::Cell;
use std::ops::Range;

use pageset_core::{
    AllocError, Config, ConfigError, CpuId, FrameAllocator, FrameCensus, FrameUsage, FreeError, NodeId,
    Order, Pfn, Request, TickOutcome, Violation, ZoneConfig, ZoneKind,
};

use crate::host::{Allocator, build};

const CPU: CpuId = CpuId(0);
const OTHER: CpuId = CpuId(1);

/// An act of another CPU on a frame, while the first `free_range` runs.
type Act = fn(&Allocator, Pfn);

/// An allocator whose first `free_range` frees one frame. Then another CPU acts on the next frame.
struct Disturbed {
    allocator: Allocator,
    act: Cell<Option<Act>>,
}

impl Disturbed {
    fn new(act: Act) -> Self {
        let frames = [0..4096];
        let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..4096, regions: &frames }];
        Self { allocator: build(&Config::new(&zones, &[NodeId(0); 2])), act: Cell::new(Some(act)) }
    }
}

impl FrameAllocator for Disturbed {
    fn alloc(&self, cpu: CpuId, request: &Request) -> Result<Pfn, AllocError> {
        self.allocator.alloc(cpu, request)
    }

    fn free(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        self.allocator.free(cpu, pfn, order)
    }

    fn alloc_at(&self, cpu: CpuId, pfn: Pfn, request: &Request) -> Result<(), AllocError> {
        self.allocator.alloc_at(cpu, pfn, request)
    }

    fn free_range(&self, cpu: CpuId, mut pfns: Range<u64>) -> Result<(), FreeError> {
        if let Some(act) = self.act.take() {
            self.allocator.free_range(cpu, pfns.start..pfns.start + 1)?;
            pfns.start += 1;
            act(&self.allocator, Pfn(pfns.start));
        }
        self.allocator.free_range(cpu, pfns)
    }

    fn tick(&self, cpu: CpuId) -> Result<TickOutcome, ConfigError> {
        self.allocator.tick(cpu)
    }

    fn span(&self) -> Range<u64> {
        self.allocator.span()
    }

    fn usage(&self) -> FrameUsage {
        self.allocator.usage()
    }

    fn validate(&self) -> Result<FrameCensus, Violation> {
        self.allocator.validate()
    }
}

#[track_caller]
fn check(act: Act, allocated: u64, leaked: u64) {
    let disturbed = Disturbed::new(act);
    let request = Request::new(Order::ZERO);
    let refused = disturbed.alloc_exact(CPU, 77, &request).expect_err("a frame of the block was lost");
    assert!(matches!(refused, AllocError::NotFree(_)), "{refused:?}");
    let census = disturbed.validate().expect("everything in its place");
    assert_eq!((census.allocated, census.leaked), (allocated, leaked));
}

/// A reader found this bug: the frames of the block that stayed in service were in use for ever.
#[test]
fn if_a_surplus_frame_is_marked_bad_meanwhile_the_rest_of_the_block_is_freed() {
    // The frames 77, 78 and 79 of the block are a frame and a block of two frames.
    check(|allocator, pfn| allocator.mark_bad(OTHER, pfn).expect("it is in use"), 0, 2);
}

#[test]
fn if_another_caller_frees_a_surplus_frame_by_mistake_no_other_frame_of_the_block_is_freed() {
    check(|allocator, pfn| allocator.free_range(OTHER, pfn.0..pfn.0 + 1).expect("it is in use"), 126, 0);
}
