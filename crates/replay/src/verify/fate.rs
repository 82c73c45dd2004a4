//! What a frame's next event says about its free: whether it reached a page set, and on which list.

use pageset_core::{MigrateType, Order};
use pageset_trace::EventKind;

use super::links::Chunk;

/// What happens to a freed frame next.
pub(super) enum Fate {
    /// It reaches its page set with a later event.
    Batched,
    /// It leaves the free lists without having been drained: its page set's lock was busy.
    Diverted,
    /// Its list shows.
    Type(MigrateType),
    /// It is not seen again, or was taken without an event.
    Unknown,
}

/// What happens next to the block that is freed at `index`.
pub(super) fn fate(chunk: &Chunk, index: usize, (order, cpu): (Order, u16)) -> Fate {
    let Some(next) = chunk.events.get(chunk.links[index].of_frame as usize) else { return Fate::Unknown };
    match next.kind {
        EventKind::MmPageFreeBatched => Fate::Batched,
        EventKind::MmPageAllocZoneLocked | EventKind::MmPageAllocExtfrag => Fate::Diverted,
        EventKind::MmPagePcpuDrain | EventKind::MmPageAlloc if next.order == order.get() => {
            match next.block_type() {
                Some(migratetype) if next.kind == EventKind::MmPagePcpuDrain || next.cpu == cpu => {
                    Fate::Type(migratetype)
                }
                _ => Fate::Unknown,
            }
        }
        // It was allocated without an event of its own: in bulk, which is how the kernel takes unmovable pages.
        EventKind::MmPageFree if order == Order::ZERO => Fate::Type(MigrateType::Unmovable),
        _ => Fate::Unknown,
    }
}
