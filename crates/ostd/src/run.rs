//! More contiguous memory than the largest block holds: several of them, side by side.

use core::ops::Range;

use pageset_core::{CpuId, FrameAllocator, MAX_ORDER, Order, Pfn, Request};

use crate::place::retry;
use crate::zones::Zones;

/// Allocates `frames` frames at a multiple of `align`. O(frames of the machine / 1024), each with a zone's lock.
pub(crate) fn alloc(
    engine: &impl FrameAllocator,
    zones: &Zones,
    cpu: CpuId,
    frames: u64,
    align: u64,
    request: Request,
) -> Option<Pfn> {
    let largest = Order::new(MAX_ORDER as u8)?;
    let step = u64::from(largest.frames());
    let mut request = request;
    request.order = largest;
    let whole = frames.next_multiple_of(step);
    for span in zones.spans().rev() {
        let mut start = span.start.next_multiple_of(align.max(step));
        while start.checked_add(whole).is_some_and(|end| end <= span.end) {
            match take(engine, cpu, start..start + whole, step, &request) {
                Ok(()) => {
                    let surplus = start + frames..start + whole;
                    retry(|| engine.free_range(cpu, surplus.clone())).ok()?;
                    return Some(Pfn(start));
                }
                Err(busy) => start = (busy + step).next_multiple_of(align.max(step)),
            }
        }
    }
    None
}

/// Takes each block of a range. The error is the first that is not free; then none is taken.
fn take(
    engine: &impl FrameAllocator,
    cpu: CpuId,
    frames: Range<u64>,
    step: u64,
    request: &Request,
) -> Result<(), u64> {
    for block in frames.clone().step_by(step as usize) {
        if engine.alloc_at(cpu, Pfn(block), request).is_err() {
            // Each was taken above, so nothing is refused.
            for taken in (frames.start..block).step_by(step as usize) {
                retry(|| engine.free(cpu, Pfn(taken), request.order)).expect("the block was taken above");
            }
            return Err(block);
        }
    }
    Ok(())
}
