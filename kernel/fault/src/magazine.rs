//! A magazine is a few frames that a task fetches with one allocator call and keeps for its next faults. So
//! one allocator call serves several faults.
//!
//! Other tasks cannot use the frames in a task's magazine. So a task gives these frames back when it ends,
//! and when it finds no free frame for a table or no free block for a collapse.

use pageset_core::{CpuId, Order, Pfn};

use crate::frames::{FrameSource, FrameUse};

/// The largest number of frames in a magazine. `FRAMES_MAX` is small, because a sleeping task keeps the
/// frames of its magazine.
const FRAMES_MAX: usize = 32;

/// Frames of one task, in the order of the allocator's answer.
#[derive(Default)]
pub(crate) struct Magazine {
    frames: [Option<Pfn>; FRAMES_MAX],
    /// The index of the next frame to use. Slots before index `next` are empty.
    next: usize,
    /// The number of slots that a fetch fills. 0 if the task has no magazine.
    slots: usize,
}

impl Magazine {
    /// Makes an empty magazine for `frames` frames.
    pub(crate) fn new(frames: u32) -> Self {
        Self { slots: (frames as usize).min(FRAMES_MAX), ..Self::default() }
    }

    /// Takes a frame for a page. Calls the allocator if the magazine is empty.
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

    /// Takes a frame from the magazine. Never calls the allocator.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Pfn> {
        let pfn = self.frames[..self.slots].get_mut(self.next)?.take()?;
        self.next += 1;
        Some(pfn)
    }

    /// The frame that the next [`pop`](Self::pop) takes, if the magazine is not empty.
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
