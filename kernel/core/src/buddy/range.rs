//! Takes a free block at a given place.

use crate::Order;
use crate::event::EventSink;
use crate::frame::{FrameIndex, State};
use crate::zone::{End, LockedZone};

impl<E: EventSink> LockedZone<'_, E> {
    /// Takes the block of `order` at `frame` out of the free block that contains the wanted block, and leaves
    /// the rest of that free block free. Returns `false` if no free block contains the wanted block.
    pub(crate) fn take_at(&mut self, frame: FrameIndex, order: Order) -> bool {
        let Some((head, State::Free { order: mut size, migratetype })) =
            self.body.frames.covering_block(frame)
        else {
            return false;
        };
        if size < order {
            return false;
        }
        self.remove(head, size, migratetype);
        self.body.frames.set_state(head, State::Interior);
        let mut start = head;
        while size > order {
            size = size.down();
            let upper = start + size.frames();
            if frame >= upper {
                self.insert(start, size, migratetype, End::Head);
                start = upper;
            } else {
                self.insert(upper, size, migratetype, End::Head);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MigrateType;
    use crate::buddy::tests::Bench;
    use crate::policy::BuddyRules;

    #[test]
    fn the_rest_of_the_block_stays_free() {
        let mut bench = Bench::new(1024, BuddyRules::LINUX_6_12);
        assert!(bench.zone().take_at(514, Order::new(1).unwrap()));
        assert_eq!(bench.body.gauges.free_pages(), 1022);
        assert_eq!(bench.list(1, MigrateType::Movable), [512]);
        assert_eq!(bench.list(9, MigrateType::Movable), [0]);
        bench.body.frames.set_state(514, State::Allocated { order: Order::new(1).unwrap(), movable: false });
        assert!(!bench.zone().take_at(515, Order::ZERO), "allocated");
        assert!(!bench.zone().take_at(512, Order::new(2).unwrap()), "partly allocated");
    }
}
