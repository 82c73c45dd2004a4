//! `validate` inspects every frame: no frame may be lost, be in two blocks or be miscounted.

use core::fmt;

use crate::allocator::PageAllocator;
use crate::frame::{FrameIndex, State};
use crate::pcp::{Pageset, Pcp};
use crate::platform::Platform;
use crate::policy::Fallback;
use crate::zone::{FreeLists, Zone, ZoneBody};
use crate::{CpuId, MigrateType, Order, PAGEBLOCK_FRAMES, Pfn, ZoneId};

/// An invariant that [`PageAllocator::validate`] found violated. The numbers in `rule` refer to the
/// specification's list of invariants (§8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The zone that violates the rule.
    pub zone: ZoneId,
    /// The frame where the rule is violated, if there is such a frame.
    pub pfn: Option<Pfn>,
    /// The rule that is violated.
    pub rule: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "zone {}: ", self.zone.0)?;
        if let Some(pfn) = self.pfn {
            write!(f, "frame {pfn}: ")?;
        }
        f.write_str(self.rule)
    }
}

impl core::error::Error for Violation {}

/// How many frames are free, cached, allocated and leaked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCensus {
    /// Number of frames on free lists, including the isolated lists.
    pub free: u64,
    /// Number of frames in page sets.
    pub cached: u64,
    /// Number of frames in use.
    pub allocated: u64,
    /// Number of frames out of service.
    pub leaked: u64,
}

impl<P: Platform> PageAllocator<'_, P> {
    /// Checks all invariants that can be checked by inspection. Each frame outside holes must be in exactly
    /// one block. Each free or cached block must be on the right list. Each count must be right. O(frames).
    /// The result is exact only if no other CPU uses the allocator during the call.
    ///
    /// # Errors
    /// Returns the first invariant that is violated.
    pub fn validate(&self) -> Result<FrameCensus, Violation> {
        let mut sum = FrameCensus::default();
        for (zone, pagesets) in self.zones_and_pagesets() {
            let census = check_zone(zone, pagesets)?;
            sum.free += census.free;
            sum.cached += census.cached;
            sum.allocated += census.allocated;
            sum.leaked += census.leaked;
        }
        Ok(sum)
    }
}

fn check_zone<P: Platform>(zone: &Zone<'_, P>, pagesets: &[Pageset<P>]) -> Result<FrameCensus, Violation> {
    let body = &zone.body;
    let broken = |rule| Err(Violation { zone: body.id, pfn: None, rule });
    let mut census = count_frames(body)?;
    let listed = zone.inspect(|buddy| check_free_lists(body, buddy))?;
    let mut cached = 0;
    zone.inspect(|_| check_owners(body, pagesets.len() as u32))?;
    for (pageset, cpu) in pagesets.iter().zip(0..) {
        let held = pageset.with(|state| check_pcp(body, CpuId(cpu), &state.pcp))?;
        cached += held.all;
        // A block that was marked bad inside a page set counts as cached until it leaves the page set.
        census.leaked = census.leaked.saturating_sub(held.marked_bad);
        census.cached += held.marked_bad;
        let mut remote = Held::default();
        pageset.remote_blocks(&body.frames, |frame| remote.add(body.frames.state(frame)));
        cached += remote.all;
        census.leaked = census.leaked.saturating_sub(remote.marked_bad);
        census.cached += remote.marked_bad;
    }
    let gauges = &body.gauges;
    let of = |migratetype: MigrateType| listed[migratetype.index()] as i64;
    let all: u64 = listed.iter().sum();
    if all != census.free {
        return broken("every free block is on the free list its state names (2, 3)");
    }
    if gauges.free_pages() + gauges.free_isolated() != all as i64 {
        return broken("the count of free pages equals the free lists (2)");
    }
    for (shown, migratetype) in [
        (gauges.free_isolated(), MigrateType::Isolate),
        (gauges.free_cma(), MigrateType::Cma),
        (gauges.free_highatomic(), MigrateType::HighAtomic),
    ] {
        if shown != of(migratetype) {
            return broken(
                "the free pages of reserved, contiguous and isolated blocks equal their lists (2)",
            );
        }
    }
    if gauges.isolated_pageblocks() != count_isolated(body) {
        return broken("the count of isolated pageblocks equals the pageblocks");
    }
    if cached != census.cached {
        return broken("every cached block is on a list of a page set (7, 8)");
    }
    if census.free + census.cached + census.allocated + census.leaked != body.managed.get() {
        return broken("managed = free + cached + allocated + leaked (1)");
    }
    Ok(census)
}

fn count_isolated(body: &ZoneBody<'_>) -> u64 {
    let starts = (0..body.span.counts().frames as FrameIndex).step_by(PAGEBLOCK_FRAMES as usize);
    starts.filter(|start| body.frames.pageblock_type(*start) == MigrateType::Isolate).count() as u64
}

/// Visits all blocks of a zone, and counts their frames by state.
fn count_frames(body: &ZoneBody<'_>) -> Result<FrameCensus, Violation> {
    let mut census = FrameCensus::default();
    let mut frame: FrameIndex = 0;
    // The frame tables may have more entries than the zone has frames.
    while frame < body.span.counts().frames as FrameIndex {
        let broken = |rule| Err(Violation { zone: body.id, pfn: Some(body.span.pfn(frame)), rule });
        let state = body.frames.state(frame);
        let Some(order) = state.order() else {
            if state == State::Interior {
                return broken("every frame belongs to a block (4)");
            }
            frame += 1;
            continue;
        };
        if frame & (order.frames() - 1) != 0 {
            return broken("a block is aligned to its size (4)");
        }
        if !body.span.contains(frame) || !body.span.contains(frame + order.frames() - 1) {
            return broken("a block lies inside its zone (4)");
        }
        if !body.frames.are_interior(frame + 1..frame + order.frames()) {
            return broken("blocks do not overlap (4)");
        }
        let pages = u64::from(order.frames());
        match state {
            State::Free { migratetype, .. } => {
                check_free_block(body, frame, order, migratetype)?;
                census.free += pages;
            }
            State::Cached { .. } | State::Owned { .. } => census.cached += pages,
            State::Allocated { .. } => census.allocated += pages,
            State::Leaked { .. } => census.leaked += pages,
            State::Interior | State::Hole => {}
        }
        frame += order.frames();
    }
    Ok(census)
}

fn check_free_block(
    body: &ZoneBody<'_>,
    frame: FrameIndex,
    order: Order,
    migratetype: MigrateType,
) -> Result<(), Violation> {
    let broken = |rule| Err(Violation { zone: body.id, pfn: Some(body.span.pfn(frame)), rule });
    if order < Order::PAGEBLOCK {
        let buddy = body.frames.state(frame ^ order.frames());
        if matches!(buddy, State::Free { order: other, .. } if other == order) {
            return broken("free buddies are merged (5)");
        }
    }
    let strict = body.rules.fallback == Fallback::ClaimOrTakeOne;
    let is_isolated = |migratetype| migratetype == MigrateType::Isolate;
    for start in (0..order.frames()).step_by(PAGEBLOCK_FRAMES as usize) {
        let of_pageblock = body.frames.pageblock_type(frame + start);
        if strict && of_pageblock != migratetype {
            return broken("a free block's list is its pageblock's type (6)");
        }
        if is_isolated(of_pageblock) != is_isolated(migratetype) {
            return broken("free blocks of isolated pageblocks, and only those, are on the isolated lists");
        }
    }
    Ok(())
}

/// Checks each pageblock's owner, and the owners' lists.
fn check_owners(body: &ZoneBody<'_>, cpus: u32) -> Result<(), Violation> {
    let owners = &body.owners;
    let broken = |frame, rule| Err(Violation { zone: body.id, pfn: Some(body.span.pfn(frame)), rule });
    for start in (0..body.span.counts().frames as FrameIndex).step_by(PAGEBLOCK_FRAMES as usize) {
        let Some(owner) = owners.owner(start) else { continue };
        if owner.0 >= cpus || !owners.may_own(owner) {
            return broken(start, "the owner of a pageblock is an online CPU");
        }
        if body.frames.pageblock_type(start) == MigrateType::Isolate {
            return broken(start, "an isolated pageblock has no owner");
        }
        if matches!(body.frames.covering_block(start), Some((_, State::Free { order, .. })) if order >= Order::PAGEBLOCK)
        {
            return broken(start, "a completely free pageblock has no owner");
        }
    }
    for cpu in (0..cpus).map(CpuId).filter(|_| !owners.is_empty()) {
        for pageblock in owners.listed(cpu) {
            let start = pageblock * PAGEBLOCK_FRAMES;
            if owners.owner(start) != Some(cpu) {
                return broken(start, "a pageblock is on its owner's list, or on none");
            }
        }
    }
    Ok(())
}

/// Visits all blocks on the free lists. Returns the number of frames of each type.
fn check_free_lists(body: &ZoneBody<'_>, buddy: &FreeLists) -> Result<[u64; MigrateType::COUNT], Violation> {
    let mut frames = [0; MigrateType::COUNT];
    for order in Order::ZERO.and_above() {
        let mut blocks = 0;
        for migratetype in MigrateType::ALL {
            let list = buddy.list(order, migratetype);
            for frame in list.iter(&body.frames) {
                if body.frames.state(frame) != (State::Free { order, migratetype }) {
                    let pfn = Some(body.span.pfn(frame));
                    let rule = "a block on a free list has the list's order and type (3, 4)";
                    return Err(Violation { zone: body.id, pfn, rule });
                }
                blocks += 1;
                frames[migratetype.index()] += u64::from(order.frames());
            }
            let shown = body.gauges.smallest(order, migratetype) == Some(order);
            if shown == list.is_empty() {
                let rule = "the gauge of non-empty lists is true";
                return Err(Violation { zone: body.id, pfn: None, rule });
            }
        }
        if blocks != buddy.nr_free(order) {
            let rule = "the number of free blocks of an order equals its lists (3)";
            return Err(Violation { zone: body.id, pfn: None, rule });
        }
    }
    Ok(frames)
}

/// Counts of the frames of one page set.
#[derive(Default)]
struct Held {
    all: u64,
    /// Frames of blocks that were marked bad while the page set held them.
    marked_bad: u64,
}

impl Held {
    fn add(&mut self, state: State) {
        let pages = state.order().map_or(0, |order| u64::from(order.frames()));
        self.all += pages;
        self.marked_bad += if let State::Leaked { .. } = state { pages } else { 0 };
    }
}

/// Visits all blocks on one page set's lists. Returns the number of frames.
fn check_pcp(body: &ZoneBody<'_>, cpu: CpuId, pcp: &Pcp) -> Result<Held, Violation> {
    let mut held = Held::default();
    for list in 0..pcp.scheme().lists() {
        let order = pcp.scheme().order(list);
        for frame in pcp.list(list).iter(&body.frames) {
            let state = body.frames.state(frame);
            match state {
                State::Cached { order: cached, .. } | State::Leaked { order: cached } if cached == order => {}
                State::Owned { order: cached } if cached == order => {
                    // The pageblock of an owned block belongs to this CPU, or to no CPU: after the CPU went
                    // offline, or while the pageblock is isolated. The pageblock never belongs to another
                    // CPU.
                    if body.owners.owner(frame).is_some_and(|owner| owner != cpu) {
                        let rule = "an owned block is in its owner's page set";
                        return Err(Violation { zone: body.id, pfn: Some(body.span.pfn(frame)), rule });
                    }
                }
                _ => {
                    let rule = "a block in a page set has its list's order (8)";
                    return Err(Violation { zone: body.id, pfn: Some(body.span.pfn(frame)), rule });
                }
            }
            held.add(state);
        }
    }
    if i64::from(pcp.count) != held.all as i64 {
        let rule = "a page set's count equals its lists (7)";
        return Err(Violation { zone: body.id, pfn: None, rule });
    }
    Ok(held)
}
