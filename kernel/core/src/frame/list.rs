//! Doubly linked lists of blocks. The links are in the metadata of the blocks' first frames. An allocation
//! takes the block at the head.

use core::sync::atomic::Ordering::Relaxed;

use super::{FrameIndex, FrameTables};
use crate::pcp::BlockList;

const NIL: FrameIndex = FrameIndex::MAX;

/// A list of frames. The list stores its two ends, and each frame stores links to the frames before and after
/// it.
///
/// The first element's `prev` and the last element's `next` are never read. When an end element is removed,
/// its neighbour keeps the link to the removed element, so the removal writes to no other element.
#[derive(Clone, Copy, Debug)]
pub struct List {
    head: FrameIndex,
    tail: FrameIndex,
}

impl List {
    pub(crate) const EMPTY: Self = Self { head: NIL, tail: NIL };
    /// A placeholder of all zeros. A page set has this placeholder until an allocator is built, which
    /// replaces it by `EMPTY`.
    pub(crate) const UNUSED: Self = Self { head: 0, tail: 0 };

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == NIL
    }

    #[inline]
    pub(crate) fn head(&self) -> Option<FrameIndex> {
        (self.head != NIL).then_some(self.head)
    }

    /// Whether `frame` is the first or last element. The removal of the first or last element changes the
    /// ends that the list stores.
    pub(crate) fn ends_with(&self, frame: FrameIndex) -> bool {
        frame == self.head || frame == self.tail
    }

    #[inline]
    pub(crate) fn push_head(&mut self, frames: &FrameTables<'_>, frame: FrameIndex) {
        debug_assert!(frame != self.head && frame != self.tail, "frame {frame} is on this list already");
        if self.head == NIL {
            self.tail = frame;
        } else {
            frames.links[frame as usize].next.store(self.head, Relaxed);
            frames.links[self.head as usize].prev.store(frame, Relaxed);
        }
        self.head = frame;
    }

    #[inline]
    pub(crate) fn push_tail(&mut self, frames: &FrameTables<'_>, frame: FrameIndex) {
        debug_assert!(frame != self.head && frame != self.tail, "frame {frame} is on this list already");
        if self.tail == NIL {
            self.head = frame;
        } else {
            frames.links[frame as usize].prev.store(self.tail, Relaxed);
            frames.links[self.tail as usize].next.store(frame, Relaxed);
        }
        self.tail = frame;
    }

    #[inline]
    pub(crate) fn pop_head(&mut self, frames: &FrameTables<'_>) -> Option<FrameIndex> {
        let frame = self.head()?;
        if frame == self.tail {
            *self = Self::EMPTY;
        } else {
            self.head = frames.links[frame as usize].next.load(Relaxed);
            debug_assert!(are_neighbours(frames, frame, self.head));
        }
        Some(frame)
    }

    #[inline]
    pub(crate) fn pop_tail(&mut self, frames: &FrameTables<'_>) -> Option<FrameIndex> {
        let frame = (self.tail != NIL).then_some(self.tail)?;
        if frame == self.head {
            *self = Self::EMPTY;
        } else {
            self.tail = frames.links[frame as usize].prev.load(Relaxed);
            debug_assert!(are_neighbours(frames, self.tail, frame));
        }
        Some(frame)
    }

    /// Unlinks `frame`, which must be on this list.
    #[inline]
    pub(crate) fn remove(&mut self, frames: &FrameTables<'_>, frame: FrameIndex) {
        let links = &frames.links[frame as usize];
        debug_assert!(
            frame == self.head || are_neighbours(frames, links.prev.load(Relaxed), frame),
            "frame {frame} is not on this list"
        );
        debug_assert!(
            frame == self.tail || are_neighbours(frames, frame, links.next.load(Relaxed)),
            "frame {frame} is not on this list"
        );
        match (frame == self.head, frame == self.tail) {
            (true, true) => *self = Self::EMPTY,
            (true, false) => self.head = links.next.load(Relaxed),
            (false, true) => self.tail = links.prev.load(Relaxed),
            (false, false) => {
                let (prev, next) = (links.prev.load(Relaxed), links.next.load(Relaxed));
                frames.links[prev as usize].next.store(next, Relaxed);
                frames.links[next as usize].prev.store(prev, Relaxed);
            }
        }
    }

    /// The elements from head to tail. The iterator stops after as many steps as the zone has frames, so a
    /// corrupted list cannot cause an endless loop.
    pub(crate) fn iter<'f>(&self, frames: &'f FrameTables<'_>) -> impl Iterator<Item = FrameIndex> + 'f {
        let (mut at, tail) = (self.head, self.tail);
        (0..frames.len()).map_while(move |_| {
            let frame = (at != NIL).then_some(at)?;
            at = if frame == tail { NIL } else { frames.links[frame as usize].next.load(Relaxed) };
            (frame < frames.len()).then_some(frame)
        })
    }
}

impl BlockList for List {
    type Block = FrameIndex;
    type Frames<'f> = FrameTables<'f>;
    const EMPTY: Self = Self::EMPTY;

    #[inline]
    fn is_empty(&self) -> bool {
        Self::is_empty(self)
    }

    /// Number of blocks on the list. O(blocks).
    fn len(&self, frames: &FrameTables<'_>) -> u32 {
        self.iter(frames).count() as u32
    }

    #[inline]
    fn push_head(&mut self, frames: &FrameTables<'_>, frame: FrameIndex) {
        Self::push_head(self, frames, frame);
    }

    #[inline]
    fn push_tail(&mut self, frames: &FrameTables<'_>, frame: FrameIndex) {
        Self::push_tail(self, frames, frame);
    }

    #[inline]
    fn pop_head(&mut self, frames: &FrameTables<'_>) -> Option<FrameIndex> {
        Self::pop_head(self, frames)
    }

    #[inline]
    fn pop_tail(&mut self, frames: &FrameTables<'_>) -> Option<FrameIndex> {
        Self::pop_tail(self, frames)
    }
}

/// Whether two frames link to each other. The check `are_neighbours` can detect a frame that is on two lists
/// by mistake.
fn are_neighbours(frames: &FrameTables<'_>, first: FrameIndex, second: FrameIndex) -> bool {
    let of = |frame: FrameIndex| frames.links.get(frame as usize);
    of(first).zip(of(second)).is_some_and(|(first_links, second_links)| {
        first_links.next.load(Relaxed) == second && second_links.prev.load(Relaxed) == first
    })
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::frame::tests::owned;

    proptest! {
        #[test]
        fn behaves_as_a_deque(steps in prop::collection::vec((0..5_u8, 0..64_u32), 0..200)) {
            let frames = owned(64);
            let (mut list, mut model) = (List::EMPTY, VecDeque::new());
            for (action, frame) in steps {
                match action {
                    0 if !model.contains(&frame) => { list.push_head(&frames, frame); model.push_front(frame); }
                    1 if !model.contains(&frame) => { list.push_tail(&frames, frame); model.push_back(frame); }
                    2 => prop_assert_eq!(list.pop_head(&frames), model.pop_front()),
                    3 => prop_assert_eq!(list.pop_tail(&frames), model.pop_back()),
                    4 if model.contains(&frame) => { list.remove(&frames, frame); model.retain(|f| *f != frame); }
                    _ => {}
                }
                prop_assert_eq!(list.iter(&frames).collect::<Vec<_>>(), Vec::from(model.clone()));
                prop_assert_eq!(list.is_empty(), model.is_empty());
            }
        }
    }
}
