//! Fills a zone: marks holes and puts its regions on the free lists.

use core::ops::Range;

use super::Placement;
use crate::error::{ConfigError, RegionFault};
use crate::frame::{FrameIndex, State};
use crate::zone::{FreeLists, Identity, LockedZone, Span, ZoneBody};
use crate::{CpuId, MAX_ORDER, MigrateType, Order, Pfn};

/// Fills an empty zone with `regions` (spec §1.2). Every pageblock is movable. Each free block is as large as
/// its alignment and its region allow, and the blocks are added in ascending order. Frames outside the
/// regions are holes. The caller has checked the regions with `Config::check`.
pub(crate) fn populate(
    body: &mut ZoneBody<'_>,
    buddy: &mut FreeLists,
    identity: Identity,
    span: Span,
    regions: &[Range<u64>],
) -> Result<(), ConfigError> {
    let counts = span.counts();
    body.frames.check_len(counts)?;
    (body.id, body.kind, body.node) = (identity.id, identity.kind, identity.node);
    (body.rules, body.span) = (identity.rules, span);
    for pageblock in (0..counts.frames as u32).step_by(crate::PAGEBLOCK_FRAMES as usize) {
        body.frames.set_pageblock_type(pageblock, MigrateType::Movable);
    }
    let mut filled = 0;
    for (index, region) in regions.iter().enumerate() {
        let outside = ConfigError::BadRegion {
            zone: identity.id.index(),
            region: index,
            why: RegionFault::OutsideZone,
        };
        let inside = |pfn| span.index(Pfn(pfn)).ok_or(outside);
        let (start, last) = (inside(region.start)?, inside(region.end - 1)?);
        mark_holes(body, filled..start);
        body.managed.set(body.managed.get() + u64::from(last - start) + 1);
        let mut locked = LockedZone::new(buddy, body, &(), CpuId(0));
        feed(&mut locked, start..last + 1);
        locked.assert_consistent();
        filled = last + 1;
    }
    mark_holes(body, filled..counts.frames as FrameIndex);
    Ok(())
}

fn mark_holes(body: &ZoneBody<'_>, frames: Range<FrameIndex>) {
    frames.for_each(|frame| body.frames.set_state(frame, State::Hole));
}

fn feed(zone: &mut LockedZone<'_, ()>, frames: Range<FrameIndex>) {
    let mut frame = frames.start;
    while frame < frames.end {
        let aligned = (frame.trailing_zeros() as usize).min(MAX_ORDER);
        let fits = (frames.end - frame).ilog2() as usize;
        let order = Order::from_index(aligned.min(fits));
        zone.free_block(frame, order, MigrateType::Movable, Placement::Tail);
        frame += order.frames();
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::frame::tests::owned;
    use crate::policy::BuddyRules;
    use crate::{NodeId, ZoneId, ZoneKind};

    fn fill(span: Range<u64>, regions: &[Range<u64>]) -> Result<(ZoneBody<'static>, FreeLists), ConfigError> {
        let span = Span::covering(span).unwrap();
        let (mut body, mut buddy) = (ZoneBody::new(owned(span.counts().frames)), FreeLists::EMPTY);
        let identity =
            Identity { id: ZoneId(0), kind: ZoneKind::Dma32, node: NodeId(0), rules: BuddyRules::LINUX_6_12 };
        populate(&mut body, &mut buddy, identity, span, regions)?;
        Ok((body, buddy))
    }

    #[test]
    fn holes_separate_regions() {
        let (body, buddy) = fill(0..4096, &[1..1024, 1536..2051]).unwrap();
        assert_eq!(body.managed.get(), 1023 + 515);
        assert_eq!(body.gauges.free_pages(), 1023 + 515);
        let list = |order| {
            buddy.list(Order::from_index(order), MigrateType::Movable).iter(&body.frames).collect::<Vec<_>>()
        };
        assert_eq!(list(0), [1, 2050]);
        assert_eq!(list(9), [512, 1536]);
        assert_eq!(list(1), [2, 2048]);
        assert_eq!(body.frames.state(0), State::Hole);
        assert_eq!(body.frames.state(1100), State::Hole);
        assert_eq!(body.frames.state(4095), State::Hole);
    }
}
