//! Fetching blocks from the zone when a list is empty.

use super::limit::scaled;
use super::{Limits, ListIndex, Pcp, Pressure};
use crate::buddy::{FallbackMode, LockedZone};
use crate::event::{Event, EventSink, FoundAt};
use crate::frame::State;
use crate::policy::{Policy, RaiseHigh, RefillRule};
use crate::request::AllocFlags;
use crate::stats::Counters;
use crate::{MigrateType, Order};

impl Pcp {
    /// How many blocks of `order` to fetch (spec §2.7.2, §3.5, §3.7). May raise `high` and the alloc factor.
    pub fn refill_size(&mut self, policy: &Policy, limits: Limits, pressure: Pressure, order: Order) -> u32 {
        let Limits { batch, high_min, high_max } = limits;
        let mut size = batch;
        if policy.refill == RefillRule::Doubling {
            let mut high = self.settle_high(policy, limits);
            if high < batch {
                return 1;
            }
            if order == Order::ZERO {
                size = scaled(batch, self.alloc_factor);
            }
            let may_raise = policy.tuning.is_some_and(|tuning| match tuning.raise {
                RaiseHigh::UnlessReclaimActive => !pressure.reclaim_active,
                RaiseHigh::UnlessBelowHigh => !pressure.below_high,
            });
            if may_raise && high_min != high_max {
                high = high.saturating_add(size).min(high_max);
                self.high = high;
            }
            if order == Order::ZERO {
                let room = (high - self.count - batch).max(batch);
                if size <= room && self.alloc_factor < policy.scale_max {
                    self.alloc_factor += 1;
                }
                size = size.min(room);
            }
        }
        if policy.refill == RefillRule::BatchOfBlocks {
            return batch.unsigned_abs();
        }
        // Whole blocks, and at least two: the second is there for whoever asks next.
        if size > 1 { (size >> order.get()).max(2) as u32 } else { 1 }
    }

    /// Fetches up to `blocks` blocks under the zone's lock, behind what the list holds (spec §2.7.2).
    pub(crate) fn refill<E: EventSink>(
        &mut self,
        zone: &mut LockedZone<'_, E>,
        (list, order, migratetype): (ListIndex, Order, MigrateType),
        blocks: u32,
        flags: AllocFlags,
        counters: &mut Counters,
    ) {
        let mut mode = FallbackMode::default();
        let mut got = 0;
        for _ in 0..blocks {
            let Some(frame) = zone.take(order, migratetype, flags, &mut mode) else { break };
            // The count below is of blocks that passed: a bad one is gone from the free lists but never gets here.
            if !zone.is_sound(frame, order, FoundAt::Refill) {
                continue;
            }
            // Where it came from; Linux 6.1 drains it to that type again.
            let came_from = match zone.body.frames.state(frame) {
                State::Free { migratetype, .. } => migratetype,
                _ => migratetype,
            };
            zone.body.frames.set_state(frame, State::Cached { order, migratetype: came_from });
            self.push_cold(&zone.body.frames, list, frame);
            got += 1;
        }
        let pages = got * order.frames();
        self.count += pages as i32;
        counters.refills += 1;
        counters.refilled_blocks += u64::from(got);
        counters.refilled_pages += u64::from(pages);
        zone.emit(|| Event::PcpRefill { zone: zone.body.id, order, migratetype, asked: blocks, got });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{LINUX_6_1, LINUX_6_12};

    const E1: Limits = Limits { batch: 63, high_min: 6862, high_max: 90_112 };

    fn sizes(policy: &Policy, limits: Limits, allocations: u32) -> (std::vec::Vec<u32>, std::vec::Vec<i32>) {
        let mut pcp = Pcp { high: limits.high_min, ..Pcp::with_scheme(policy.lists) };
        let (mut sizes, mut highs) = (std::vec![], std::vec![]);
        for _ in 0..allocations {
            if pcp.count == 0 {
                let size = pcp.refill_size(policy, limits, Pressure::default(), Order::ZERO);
                pcp.count += size as i32;
                sizes.push(size);
                highs.push(pcp.high);
            }
            pcp.count -= 1;
        }
        (sizes, highs)
    }

    /// Worked example E2.
    #[test]
    fn example_e2_refills_of_5000_allocations() {
        let (sizes_6_1, _) = sizes(&LINUX_6_1, E1, 5000);
        assert_eq!(sizes_6_1, [63; 80]);
        let (sizes_6_12, highs) = sizes(&LINUX_6_12, E1, 5000);
        assert_eq!(sizes_6_12, [63, 126, 252, 504, 1008, 2016, 2016]);
        assert_eq!(highs, [6925, 7051, 7303, 7807, 8815, 10_831, 12_847]);
        let (_, highs) = sizes(&LINUX_6_12, E1, 82_594);
        assert_eq!((highs.len(), highs[44] < 90_112, highs[45]), (46, true, 90_112));
    }

    /// Worked example E8: the DMA zone, batch 1.
    #[test]
    fn example_e8_batch_one_doubles_too() {
        let dma = Limits { batch: 1, high_min: 18, high_max: 240 };
        let (sizes, highs) = sizes(&LINUX_6_12, dma, 6);
        assert_eq!(sizes, [1, 2, 4]);
        assert_eq!(highs, [19, 21, 25]);
    }

    /// Worked example E10 and the table of spec §2.7.2.
    #[test]
    fn example_e10_high_orders_fetch_two_at_least() {
        for (batch, blocks) in
            [(1, [1, 1, 1, 1, 1]), (3, [3, 2, 2, 2, 2]), (15, [15, 7, 3, 2, 2]), (63, [63, 31, 15, 7, 2])]
        {
            for (order, blocks) in [0, 1, 2, 3, 9].into_iter().zip(blocks) {
                let mut pcp = Pcp { high: 6862, ..Pcp::with_scheme(LINUX_6_12.lists) };
                let order = Order::new(order).unwrap();
                let limits = Limits { batch, ..E1 };
                let size = pcp.refill_size(&LINUX_6_12, limits, Pressure::default(), order);
                assert_eq!(size, blocks, "batch {batch}, order {order}");
                assert_eq!(pcp.high, 6862 + batch);
            }
        }
    }
}
