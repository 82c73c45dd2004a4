//! Memory that was in use before the recording began: which frames, and where a replay takes pages from when the
//! recording frees something it never saw allocated.
//!
//! The recording knows how many free blocks of each order and type there were, not where. They are laid out from the
//! top of the zone downwards, each with a neighbour in use so that it cannot merge; everything else is in use.

use pageset_core::{CpuId, MigrateType, NR_ORDERS, Order, Pfn, Request, Watermarks, ZoneId};
use pageset_trace::{Snapshot, ZoneDescription};

use super::build::{Allocator, managed_frames};

/// Pages in use that belong to nobody in the recording, by the type of their pageblock.
#[derive(Debug, Default)]
pub(super) struct Resident {
    blocks: [[Vec<u64>; NR_ORDERS]; MigrateType::PCP_COUNT],
}

/// A free block to leave: first frame, order and type.
type FreeBlock = (u64, Order, MigrateType);

const CPU: CpuId = CpuId(0);

impl Resident {
    /// Occupies what was in use when the recording began. All frames of the zone are free before.
    pub(super) fn occupy(
        allocator: &Allocator,
        (zone, id): (&ZoneDescription, ZoneId),
        before: Option<&Snapshot>,
    ) -> Self {
        // Placing blocks is no allocation that a watermark should stop.
        allocator.set_watermarks(id, Watermarks::default()).expect("a zone of this machine");
        let mut resident = Self::default();
        let mut end = managed_frames(zone).end;
        for (pfn, order, migratetype) in lay_out(zone, free_blocks(zone, before)) {
            set_pageblock_types(allocator, pfn, order, migratetype);
            resident.occupy_range(allocator, pfn + u64::from(order.frames()), end);
            end = pfn;
        }
        resident.occupy_range(allocator, managed_frames(zone).start, end);
        resident
    }

    fn occupy_range(&mut self, allocator: &Allocator, start: u64, end: u64) {
        let mut at = start;
        while at < end {
            let order = largest_block(at, end);
            let migratetype = allocator.pageblock_type(Pfn(at)).unwrap_or(MigrateType::Movable);
            let request = Request::new(order).of_type(migratetype);
            if allocator.alloc_at(CPU, Pfn(at), &request).is_ok() {
                self.put(at, order, migratetype);
            }
            at += u64::from(order.frames());
        }
    }

    /// Adds a block in use.
    pub(super) fn put(&mut self, pfn: u64, order: Order, migratetype: MigrateType) {
        let migratetype = if migratetype.is_mergeable() { migratetype } else { MigrateType::Movable };
        self.blocks[migratetype.index()][order.index()].push(pfn);
    }

    /// Takes `2^order` frames in use, the smallest block that has them; what remains of it stays. Most pages in use are
    /// movable, so those are taken first.
    pub(super) fn take(&mut self, order: Order) -> Option<u64> {
        for migratetype in [MigrateType::Movable, MigrateType::Unmovable, MigrateType::Reclaimable] {
            let lists = &mut self.blocks[migratetype.index()];
            let Some((size, pfn)) =
                order.and_above().find_map(|size| Some((size, lists[size.index()].pop()?)))
            else {
                continue;
            };
            let rest = pfn + u64::from(order.frames())..pfn + u64::from(size.frames());
            let mut at = rest.start;
            while at < rest.end {
                let order = largest_block(at, rest.end);
                lists[order.index()].push(at);
                at += u64::from(order.frames());
            }
            return Some(pfn);
        }
        None
    }
}

fn largest_block(at: u64, end: u64) -> Order {
    let order = at.trailing_zeros().min((end - at).ilog2()).min(u32::from(Order::MAX.get()));
    Order::new(order as u8).unwrap_or(Order::ZERO)
}

/// How many free blocks of each type and order there were.
fn free_blocks(
    zone: &ZoneDescription,
    before: Option<&Snapshot>,
) -> [[u64; NR_ORDERS]; MigrateType::PCP_COUNT] {
    let mut blocks = [[0; NR_ORDERS]; MigrateType::PCP_COUNT];
    let typed = before.and_then(|before| before.pagetypeinfo.as_ref());
    let untyped = before.and_then(|before| before.buddyinfo.zone(zone.node, zone.kind));
    if let Some(info) = typed {
        for (index, blocks) in blocks.iter_mut().enumerate() {
            let migratetype = MigrateType::ALL[index];
            *blocks = info.free(zone.node, zone.kind, migratetype).copied().unwrap_or_default();
        }
    } else if let Some(free) = untyped {
        blocks[MigrateType::Movable.index()] = free.blocks;
    } else {
        let mut left = zone.free.min(zone.managed);
        for order in (0..NR_ORDERS).rev() {
            blocks[MigrateType::Movable.index()][order] = left >> order;
            left &= (1 << order) - 1;
        }
    }
    blocks
}

/// Places for the free blocks, from the top of the zone downwards: largest first, and no two types in one pageblock.
/// Blocks that find no place stay in use.
fn lay_out(zone: &ZoneDescription, blocks: [[u64; NR_ORDERS]; MigrateType::PCP_COUNT]) -> Vec<FreeBlock> {
    let frames = managed_frames(zone);
    let mut places = Vec::new();
    let mut at = frames.end & !u64::from(Order::MAX.frames() - 1);
    let mut place = |order: Order, migratetype, at: &mut u64| {
        // A block below the largest size needs its buddy in use.
        let slot = u64::from(order.frames()) << u32::from(order < Order::MAX);
        match at.checked_sub(slot).filter(|start| *start >= frames.start) {
            Some(start) => {
                *at = start;
                places.push((start, order, migratetype));
                true
            }
            None => false,
        }
    };
    let types = || MigrateType::ALL.into_iter().take(MigrateType::PCP_COUNT);
    for large in [Order::MAX, Order::PAGEBLOCK] {
        for migratetype in types() {
            for _ in 0..blocks[migratetype.index()][large.index()] {
                if !place(large, migratetype, &mut at) {
                    break;
                }
            }
        }
    }
    for migratetype in types() {
        at &= !u64::from(Order::PAGEBLOCK.frames() - 1);
        for order in Order::ZERO.and_above().rev().filter(|order| *order < Order::PAGEBLOCK) {
            for _ in 0..blocks[migratetype.index()][order.index()] {
                if !place(order, migratetype, &mut at) {
                    break;
                }
            }
        }
    }
    places
}

/// Gives the pageblocks of a block that is still free to `migratetype`.
fn set_pageblock_types(allocator: &Allocator, pfn: u64, order: Order, migratetype: MigrateType) {
    let pageblock = u64::from(Order::PAGEBLOCK.frames());
    for start in (pfn..pfn + u64::from(order.frames())).step_by(pageblock as usize) {
        let start = Pfn(start & !(pageblock - 1));
        if allocator.pageblock_type(start) != Some(migratetype)
            && allocator.isolate_pageblock(CPU, start).is_ok()
        {
            allocator.unisolate_pageblock(CPU, start, migratetype).expect("isolated just now");
        }
    }
}

#[cfg(test)]
mod tests {
    use pageset_core::POLICIES;

    use super::super::build::{allocator, populated};
    use super::*;
    use crate::replay::tests::{small_layout, small_snapshot};

    #[test]
    fn the_free_lists_are_those_of_the_snapshot() {
        let (machine, snapshot) = (small_layout(), small_snapshot());
        for policy in POLICIES {
            let allocator = allocator(&machine, policy).unwrap();
            for zone in populated(&machine) {
                Resident::occupy(&allocator, zone, Some(&snapshot));
                let info = allocator.zones().nth(zone.1.index()).unwrap();
                let recorded = snapshot.buddyinfo.zone(zone.0.node, zone.0.kind).unwrap();
                assert_eq!(info.nr_free.map(u64::from), recorded.blocks, "{} {}", policy.name, zone.0.kind);
            }
            allocator.validate().unwrap();
        }
    }

    #[test]
    fn what_remains_of_a_block_can_be_taken_too() {
        let mut resident = Resident::default();
        resident.put(1024, Order::new(3).unwrap(), MigrateType::Movable);
        assert_eq!(resident.take(Order::ZERO), Some(1024));
        assert_eq!(resident.take(Order::new(2).unwrap()), Some(1028));
        assert_eq!(resident.take(Order::ZERO), Some(1025));
        assert_eq!(resident.take(Order::new(1).unwrap()), Some(1026));
        assert_eq!(resident.take(Order::ZERO), None);
    }
}
