//! A task's own few frames, fetched with one call of the allocator: what is paid per call is paid once for all of them.
//!
//! Nobody else can take them, so a task gives them back when it ends, and before it reports that memory is short.

use pageset_core::{CpuId, Order, Pfn};

use crate::frames::{FrameSource, FrameUse};

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

    /// A single frame for a page; the allocator is called if none is left.
    #[inline]
    pub(crate) fn take(&mut self, frames: &impl FrameSource, cpu: CpuId) -> Option<Pfn> {
        match self.pop() {
            Some(pfn) => Some(pfn),
            None => self.fetch(frames, cpu),
        }
    }

    fn fetch(&mut self, frames: &impl FrameSource, cpu: CpuId) -> Option<Pfn> {
        if self.slots == 0 {
            return frames.alloc(cpu, Order::ZERO, FrameUse::Anon);
        }
        self.next = 0;
        frames.alloc_many(cpu, FrameUse::Anon, &mut self.frames[..self.slots]);
        self.pop()
    }

    /// A frame that is there already, whoever it is for.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Pfn> {
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn frames_come_in_order_and_end() {
        let mut magazine = Magazine::new(2);
        assert_eq!(magazine.pop(), None);
        magazine.frames[..2].copy_from_slice(&[Some(Pfn(4)), Some(Pfn(7))]);
        assert_eq!([magazine.pop(), magazine.pop(), magazine.pop()], [Some(Pfn(4)), Some(Pfn(7)), None]);
        assert_eq!(Magazine::new(1000).slots, FRAMES_MAX);
    }
}
