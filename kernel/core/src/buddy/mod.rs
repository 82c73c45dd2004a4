//! Splits, merges and moves blocks of `2^order` frames on a zone's free lists, while the zone's lock is held.
//!
//! An allocation uses `fallback` (chooses a block and its type) and `split` (splits the block). If the wanted
//! type has no block, `steal` (Linux 6.1) or `claim` (6.12) takes memory of another type. A free uses
//! `merge`. `pageblock` moves and counts the blocks of a pageblock, `range` takes a block at a given place,
//! and `populate` fills a zone. Three files treat special pageblocks: `isolate` (out of service),
//! `highatomic` (reserved) and `ownership` (owned by CPUs). `steering` chooses blocks by their unit of 1 GiB.

mod claim;
mod fallback;
mod highatomic;
mod isolate;
mod merge;
mod ownership;
mod pageblock;
mod populate;
mod range;
mod split;
mod steal;
mod steering;

#[cfg(test)]
mod golden;

pub(crate) use fallback::FallbackMode;
pub(crate) use merge::Placement;
pub(crate) use populate::populate;

#[cfg(test)]
pub(crate) mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::frame;
    use crate::policy::BuddyRules;
    use crate::zone::{FreeLists, Identity, LockedZone, Span, ZoneBody};
    use crate::{CpuId, MigrateType, NodeId, Order, ZoneId, ZoneKind};

    /// Makes a zone of `frames` free movable frames, which begins at frame 0.
    pub(crate) fn populated(frames: u64, rules: BuddyRules) -> (ZoneBody<'static>, FreeLists) {
        let span = Span::covering(0..frames).unwrap();
        let mut body = ZoneBody::new(frame::tests::owned(span.counts().frames));
        let mut buddy = FreeLists::EMPTY;
        let identity = Identity { id: ZoneId(0), kind: ZoneKind::Normal, node: NodeId(0), rules };
        populate(&mut body, &mut buddy, identity, span, &[0..frames]).unwrap();
        (body, buddy)
    }

    /// A zone of free frames that begins at frame 0. A test may change the zone in every way that the holder
    /// of the zone's lock may.
    pub(crate) struct Bench {
        pub(crate) body: ZoneBody<'static>,
        pub(crate) buddy: FreeLists,
    }

    impl Bench {
        pub(crate) fn new(frames: u64, rules: BuddyRules) -> Self {
            let (body, buddy) = populated(frames, rules);
            Self { body, buddy }
        }

        pub(crate) fn zone(&mut self) -> LockedZone<'_, ()> {
            LockedZone::new(&mut self.buddy, &self.body, &(), CpuId(0))
        }

        /// Takes a block from its user and frees it to the list of its pageblock's type.
        pub(crate) fn free(&mut self, frame: u32, order: Order) {
            let migratetype = self.body.frames.claim(frame, order).unwrap();
            self.zone().free_block(frame, order, migratetype, Placement::Likely);
        }

        pub(crate) fn list(&self, order: u8, migratetype: MigrateType) -> Vec<u32> {
            self.buddy.list(Order::new(order).unwrap(), migratetype).iter(&self.body.frames).collect()
        }
    }
}
