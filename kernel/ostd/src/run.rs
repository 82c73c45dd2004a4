//! Contiguous memory larger than the largest block: several largest blocks side by side.

use core::ops::Range;

use pageset_core::{CpuId, Order, Pfn, Request};

use crate::engine::Engine;
use crate::frames::Ready;
use crate::place::free_range;

/// Frames of the largest block.
const STEP: u64 = Order::MAX.frames() as u64;

impl<E: Engine> Ready<E> {
    /// Allocates `frames` frames at a multiple of `align`. O(frames of the machine / 1024); each step takes a
    /// zone's lock.
    pub(crate) fn alloc_run(&self, cpu: CpuId, frames: u64, align: u64, mut request: Request) -> Option<Pfn> {
        request.order = Order::MAX;
        let (whole, align) = (frames.next_multiple_of(STEP), align.max(STEP));
        for span in self.zones.spans().rev() {
            let mut start = span.start.next_multiple_of(align);
            while start.checked_add(whole).is_some_and(|end| end <= span.end) {
                let Err(busy) = self.take(cpu, start..start + whole, &request) else {
                    free_range(&self.engine, cpu, start + frames..start + whole).ok()?;
                    return Some(Pfn(start));
                };
                start = (busy + STEP).next_multiple_of(align);
            }
        }
        None
    }

    /// Takes each block of a range. The error is the first block that is not free. No block is taken then.
    fn take(&self, cpu: CpuId, frames: Range<u64>, request: &Request) -> Result<(), u64> {
        for block in frames.clone().step_by(STEP as usize) {
            if self.engine.alloc_at(cpu, Pfn(block), request).is_err() {
                // The range holds whole blocks that were just taken, so no free is refused.
                let _ = free_range(&self.engine, cpu, frames.start..block);
                return Err(block);
            }
        }
        Ok(())
    }
}
