//! A zone: a range of frames with its own lock, free lists, watermarks and reserves.

mod assertions;
mod body;
mod gauges;
mod locked;
mod marks;
mod watermark;

use core::fmt;

pub(crate) use body::{Identity, ZoneBody};
pub use gauges::Pressure;
pub(crate) use gauges::{Gauges, ZoneFlag};
pub(crate) use locked::{End, FreeLists, ListId, LockedZone};
pub use marks::{Watermark, Watermarks, default_min_free_kbytes};
pub(crate) use marks::{WatermarkInputs, WatermarkSettings};

use crate::CpuId;
use crate::event::Event;
use crate::frame::FrameTables;
use crate::platform::{Lock, Platform};

/// A zone, or an empty place for one.
///
/// `const`-constructible, so that a kernel can keep its zones in a static.
pub struct Zone<'a, P: Platform> {
    pub(crate) body: ZoneBody<'a>,
    buddy: Lock<P, FreeLists>,
}

impl<'a, P: Platform> Zone<'a, P> {
    /// A zone without frames, to be filled when the allocator is built; `frames` must be as large as
    /// [`FrameCounts`](crate::FrameCounts) says.
    #[must_use]
    pub const fn new(frames: FrameTables<'a>) -> Self {
        Self { body: ZoneBody::new(frames), buddy: Lock::<P, _>::new(FreeLists::EMPTY) }
    }

    /// Runs `work` with the zone's lock held by `cpu`.
    #[inline]
    pub(crate) fn with_lock<T>(
        &self,
        platform: &P,
        cpu: CpuId,
        work: impl FnOnce(&mut LockedZone<'_, P::Events>) -> T,
    ) -> T {
        let events = platform.events();
        let mut buddy = self.buddy.lock();
        buddy.stats.zone_lock_acquisitions += 1;
        crate::event::emit(events, cpu, || Event::ZoneLock { zone: self.body.id });
        let mut locked = LockedZone::new(&mut buddy, &self.body, events, cpu);
        let outcome = work(&mut locked);
        locked.assert_consistent();
        outcome
    }

    /// Looks at the free lists without counting as an acquisition: for statistics and `validate`.
    pub(crate) fn inspect<T>(&self, look: impl FnOnce(&FreeLists) -> T) -> T {
        look(&self.buddy.lock())
    }

    pub(crate) fn body_and_buddy_mut(&mut self) -> (&mut ZoneBody<'a>, &mut FreeLists) {
        (&mut self.body, self.buddy.get_mut())
    }
}

impl<P: Platform> fmt::Debug for Zone<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zone")
            .field("kind", &self.body.kind)
            .field("span", &self.body.span)
            .finish_non_exhaustive()
    }
}
