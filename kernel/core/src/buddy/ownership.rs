//! Handles the free blocks of pageblocks that CPUs own.

use crate::event::{Event, EventSink};
use crate::frame::{FrameIndex, State};
use crate::zone::LockedZone;
use crate::{MigrateType, Order};

impl<E: EventSink> LockedZone<'_, E> {
    /// Updates the ownership of the frame's pageblock after a free. A pageblock that is completely free loses
    /// its owner. A pageblock with frames in use goes on its owner's list, so that a later refill of the
    /// owner finds the pageblock.
    pub(crate) fn update_owner(&self, frame: FrameIndex) {
        let (frames, owners) = (&self.body.frames, &self.body.owners);
        if owners.owner(frame).is_none() {
            return;
        }
        match frames.covering_block(Self::pageblock_start(frame)) {
            Some((_, State::Free { order, .. })) if order >= Order::PAGEBLOCK => owners.disown(frame),
            _ => owners.list(frame),
        }
    }

    /// Takes all free blocks of the pageblock that begins at `start`.
    pub(crate) fn take_free_blocks(&mut self, start: FrameIndex, mut take: impl FnMut(FrameIndex, Order)) {
        self.for_each_block(start, |zone, frame, state, order| {
            if let State::Free { migratetype, .. } = state {
                zone.remove(frame, order, migratetype);
                zone.emit_taken(frame, order, migratetype);
                take(frame, order);
            }
        });
    }

    /// Takes the first free block of exactly this order and type.
    pub(crate) fn take_exactly(&mut self, order: Order, migratetype: MigrateType) -> Option<FrameIndex> {
        let frame = self.buddy.list(order, migratetype).head()?;
        self.remove(frame, order, migratetype);
        self.emit_taken(frame, order, migratetype);
        Some(frame)
    }

    fn emit_taken(&self, frame: FrameIndex, order: Order, migratetype: MigrateType) {
        self.emit(|| Event::MmPageAllocZoneLocked {
            pfn: self.pfn(frame),
            order,
            migratetype,
            percpu_refill: true,
        });
    }
}
