//! Splits blocks of a page set without the zone's lock.

use crate::Order;
use crate::event::{Event, FoundAt, emit};
use crate::frame::{FrameIndex, FrameTables, State};
use crate::pcp::CpuZone;
use crate::pcp::pageset::PagesetState;
use crate::platform::Platform;
use crate::request::Wanted;

impl<P: Platform> CpuZone<'_, '_, P> {
    /// Splits the smallest block of the wanted type that is larger than the wanted order. Returns `false` if
    /// the page set has no larger block of this type.
    pub(super) fn split_larger(self, state: &mut PagesetState, wanted: Wanted) -> bool {
        let frames = &self.zone.body.frames;
        let scheme = state.pcp.scheme();
        for from in wanted.order.and_above().skip(1).filter(|order| scheme.holds(*order)) {
            let list = scheme.list_of_held(from, wanted.migratetype);
            while let Some(frame) = state.pcp.pop(frames, list, from) {
                let found = frames.state(frame);
                if !found.is_cached() {
                    self.leak(state, frame, from);
                    continue;
                }
                if !cut(frames, frame, found, from, wanted.order) {
                    state.counters.bad_pages += 1;
                    let pfn = self.zone.body.span.pfn(frame);
                    let found = FoundAt::Alloc;
                    emit(self.platform.events(), self.cpu, || Event::BadPage { pfn, order: from, found });
                    continue;
                }
                for (part, order) in upper_halves(frame, from, wanted.order) {
                    let list = scheme.list_of_held(order, wanted.migratetype);
                    state.pcp.push(frames, list, part, order);
                }
                let list = scheme.list_of_held(wanted.order, wanted.migratetype);
                state.pcp.push(frames, list, frame, wanted.order);
                return true;
            }
        }
        false
    }
}

/// The blocks that remain of a block of order `from` after its lowest block of order `to` is cut out. The
/// largest block comes first.
fn upper_halves(frame: FrameIndex, from: Order, to: Order) -> impl Iterator<Item = (FrameIndex, Order)> {
    let sizes = (to.get()..from.get()).rev();
    sizes.map(move |size| (frame + (1 << size), Order::from_index(usize::from(size))))
}

/// Halves a block, then its lower half, and so on down to order `to`. Returns `false`, and takes all parts
/// out of service, if another CPU marked the block bad meanwhile.
///
/// Race: another CPU calls [`FrameTables::covering_block`] without the lock meanwhile. This CPU writes the
/// upper halves first. So `covering_block` finds either the whole block or one of its parts.
fn cut(frames: &FrameTables<'_>, frame: FrameIndex, found: State, from: Order, to: Order) -> bool {
    let part = |order| match found {
        State::Cached { migratetype, .. } => State::Cached { order, migratetype },
        _ => State::Owned { order },
    };
    for (half, order) in upper_halves(frame, from, to) {
        frames.exchange_state(half, State::Interior, part(order));
    }
    if frames.exchange_state(frame, found, part(to)) {
        return true;
    }
    for (half, order) in upper_halves(frame, from, to) {
        frames.set_state(half, State::Leaked { order });
    }
    frames.set_state(frame, State::Leaked { order: to });
    false
}
