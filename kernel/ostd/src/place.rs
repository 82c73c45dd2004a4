//! Turns layouts of any size and alignment into frames.

use core::alloc::Layout;
use core::ops::Range;

use ostd::mm::PAGE_SIZE;
use pageset_core::{CpuId, FreeError, Pfn, Request};

use crate::engine::Engine;
use crate::frames::Ready;

impl<E: Engine> Ready<E> {
    /// Allocates memory for `layout`. Returns `None` if there is no such memory, or if the layout is empty.
    #[inline]
    pub(crate) fn alloc(&self, cpu: CpuId, layout: Layout, request: Request) -> Option<Pfn> {
        if layout.size() == PAGE_SIZE && layout.align() <= PAGE_SIZE {
            return self.engine.alloc(cpu, &request).ok();
        }
        let (frames, align) = in_frames(layout);
        let pfn = self.engine.alloc_contiguous(cpu, frames, align, &request).ok()?;
        // OSTD frees frames one by one. A block that cannot be split now is split when a part of it is freed.
        let _ = self.engine.split_range(cpu, pfn.0..pfn.0 + frames);
        Some(pfn)
    }
}

/// Frees these frames, if there are any. Race: another CPU is changing the same pageblock. This free loses:
/// it gets an error, and tries again with the remaining frames. The loser does not try for long, because
/// interrupts are off on the other CPU, too.
pub(crate) fn free_range<E: Engine>(engine: &E, cpu: CpuId, frames: Range<u64>) -> Result<(), FreeError> {
    let mut rest = frames;
    while !rest.is_empty() {
        match engine.free_range(cpu, rest.clone()) {
            Err(FreeError::Busy(pfn)) => rest.start = pfn.0,
            freed => return freed,
        }
        core::hint::spin_loop();
    }
    Ok(())
}

/// Size and alignment of a layout, in frames.
pub(crate) fn in_frames(layout: Layout) -> (u64, u64) {
    let frames = layout.size().div_ceil(PAGE_SIZE) as u64;
    (frames, layout.align().div_ceil(PAGE_SIZE) as u64)
}
