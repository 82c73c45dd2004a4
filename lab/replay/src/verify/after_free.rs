//! The fate of a free, from the next event about its frame: whether the block reached a page set, and which
//! list.

use pageset_core::{MigrateType, Order};
use pageset_trace::EventKind;

use super::links::Chunk;

/// The fate of a freed frame.
pub(super) enum AfterFree {
    /// The block reaches its page set with a later event.
    Batched,
    /// The block leaves the free lists although no drain returned it: its page set's lock was busy.
    Diverted,
    /// The next event shows the block's migratetype, and so its list.
    Type(MigrateType),
    /// No later event says: the block does not occur again, or was taken without an event.
    Unknown,
}

/// The fate of the block that is freed at `index`.
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
        // The block is freed again, so it was allocated without an event. That is how bulk allocations look,
        // and they take unmovable pages.
        EventKind::MmPageFree if order == Order::ZERO => AfterFree::Type(MigrateType::Unmovable),
        _ => AfterFree::Unknown,
    }
}
