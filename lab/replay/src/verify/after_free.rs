//! Finds whether a freed block reached a page set, and which list the block went to. The next event about the
//! block's frame may show both facts.

use pageset_core::{MigrateType, Order};
use pageset_trace::EventKind;

use super::links::Chunk;

/// The fate of a freed block.
pub(super) enum AfterFree {
    /// The block waits in a batch, and reaches its page set with a later event.
    Batched,
    /// The block's next event takes the block from the zone's free lists, although no drain gave the block
    /// back. The block was therefore freed directly to the zone, because the lock of its page set was busy.
    Diverted,
    /// The next event shows the block's migratetype, and so its list. If the next event is another free, the
    /// list of unmovable blocks is assumed.
    Type(MigrateType),
    /// No later event shows where the block went: for example, no later event is about the block.
    Unknown,
}

/// Finds where a freed block went. The event at `index` frees this block.
pub(super) fn after_free(chunk: &Chunk, index: usize, (order, cpu): (Order, u16)) -> AfterFree {
    let Some(next) = chunk.events.get(chunk.links[index].of_frame as usize) else {
        return AfterFree::Unknown;
    };
    match next.kind {
        EventKind::MmPageFreeBatched => AfterFree::Batched,
        EventKind::MmPageAllocZoneLocked | EventKind::MmPageAllocExtfrag => AfterFree::Diverted,
        EventKind::MmPagePcpuDrain | EventKind::MmPageAlloc if next.order == order.get() => {
            match next.block_type() {
                Some(migratetype) if next.kind == EventKind::MmPagePcpuDrain || next.cpu == cpu => {
                    AfterFree::Type(migratetype)
                }
                _ => AfterFree::Unknown,
            }
        }
        // The block is freed again, so the block was allocated without an event, for example in bulk. Assume
        // that the block's pageblock is unmovable.
        EventKind::MmPageFree if order == Order::ZERO => AfterFree::Type(MigrateType::Unmovable),
        _ => AfterFree::Unknown,
    }
}
