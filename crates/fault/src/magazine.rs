//! A task's own few frames, fetched with one call of the allocator: what is paid per call is paid once for all of them.
//!
//! Nobody else can take them, so a task gives them back when it ends, and before it reports that memory is short.

use pageset_core::{Order, Pfn};

use crate::engine::Engine;
use crate::frames::{FrameAllocator, FrameUse};
use crate::task::Local;
use crate::world::World;

/// Most frames of a magazine. A task that sleeps keeps them, so they are few.
const FRAMES_MAX: usize = 32;

/// Frames of one task, in the order in which the allocator gave them.
#[derive(Default)]
pub(crate) struct Magazine {
    frames: [Option<Pfn>; FRAMES_MAX],
    /// The next to be used; those before are gone.
    next: usize,
    /// Slots that are filled at once; 0: the task has none.
    slots: usize,
}

impl Magazine {
    /// A magazine of so many frames, empty.
    pub(crate) fn new(frames: u32) -> Self {
        Self { slots: (frames as usize).min(FRAMES_MAX), ..Self::default() }
    }

    #[inline]
    fn take(&mut self) -> Option<Pfn> {
        let pfn = self.frames[..self.slots].get_mut(self.next)?.take()?;
        self.next += 1;
        Some(pfn)
    }

    /// The frame that will be used next, if it is there already.
    #[inline]
    pub(crate) fn peek(&self) -> Option<Pfn> {
        *self.frames[..self.slots].get(self.next)?
    }
}

impl<W: World> Engine<W> {
    /// A single frame for a page: from the task's magazine, if it has one.
    #[inline]
    pub(crate) fn take_frame(&self, local: &mut Local) -> Option<Pfn> {
        match local.magazine.take() {
            Some(pfn) => Some(pfn),
            None => self.fetch(local),
        }
    }

    fn fetch(&self, local: &mut Local) -> Option<Pfn> {
        let Magazine { frames, next, slots } = &mut local.magazine;
        if *slots == 0 {
            return self.world.frames().alloc(local.cpu, Order::ZERO, FrameUse::Anon);
        }
        *next = 0;
        self.world.frames().alloc_many(local.cpu, FrameUse::Anon, &mut frames[..*slots]);
        local.magazine.take()
    }

    /// Gives back what the magazine holds. Whether it held anything.
    pub(crate) fn empty_magazine(&self, local: &mut Local) -> bool {
        let mut held = false;
        while let Some(pfn) = local.magazine.take() {
            held = true;
            if self.world.frames().free(local.cpu, pfn, Order::ZERO).is_err() {
                local.stats.refused_frees += 1;
            }
        }
        held
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn frames_come_in_order_and_end() {
        let mut magazine = Magazine::new(2);
        assert_eq!(magazine.take(), None);
        magazine.frames[..2].copy_from_slice(&[Some(Pfn(4)), Some(Pfn(7))]);
        assert_eq!([magazine.take(), magazine.take(), magazine.take()], [Some(Pfn(4)), Some(Pfn(7)), None]);
        assert_eq!(Magazine::new(1000).slots, FRAMES_MAX);
    }
}
