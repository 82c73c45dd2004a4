//! A CPU's pageblocks that have free frames, the last one on top: a list without a lock.

use pageset_core::Storage;

use crate::atomic::{AcqRel, Acquire, AtomicUsize, Relaxed, constant};
use crate::state::BlockState;

/// The number of a pageblock, over all zones.
pub(crate) type BlockIndex = usize;

const INDEX_BITS: u32 = usize::BITS / 2;
const INDEX: usize = (1 << INDEX_BITS) - 1;

/// Most pageblocks that there can be: their numbers, and one for none, take half a word.
pub(crate) const MAX_BLOCKS: usize = INDEX - 1;

/// The number of the top one plus 1, and in the upper half how often the stack changed: so one who read the top, and comes
/// too late, notices.
#[derive(Debug)]
pub(crate) struct Stack(AtomicUsize);

impl Stack {
    constant! {
        pub(crate) fn new() -> Self {
            Self(AtomicUsize::new(0))
        }
    }

    /// Puts a pageblock on top. It must be in no stack.
    pub(crate) fn push(&self, states: &Storage<'_, BlockState>, block: BlockIndex) {
        let mut top = self.0.load(Relaxed);
        loop {
            states[block].next.store((top & INDEX) as u32, Relaxed);
            let new = next_tag(top) | (block + 1);
            match self.0.compare_exchange_weak(top, new, AcqRel, Relaxed) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// Whether there is none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Relaxed) & INDEX == 0
    }

    /// Takes the top one.
    pub(crate) fn pop(&self, states: &Storage<'_, BlockState>) -> Option<BlockIndex> {
        let mut top = self.0.load(Acquire);
        loop {
            let block = (top & INDEX).checked_sub(1)?;
            // If somebody took it meanwhile, this reads another list's link, and the exchange fails. A number that no pageblock has
            // is damage, and ends the list.
            let next = states.get(block)?.next.load(Relaxed) as usize;
            match self.0.compare_exchange_weak(top, next_tag(top) | next, AcqRel, Acquire) {
                Ok(_) => return Some(block),
                Err(now) => top = now,
            }
        }
    }

    /// All of them, from the top on; one more than there are pageblocks at most, which shows that there is no end. Exact only while nobody else is here.
    pub(crate) fn iter(&self, states: &Storage<'_, BlockState>) -> impl Iterator<Item = BlockIndex> {
        let number = |word: usize| (word & INDEX).checked_sub(1);
        let next = move |block: &BlockIndex| number(states.get(*block)?.next.load(Relaxed) as usize);
        core::iter::successors(number(self.0.load(Acquire)), next).take(states.len() + 1)
    }
}

#[inline]
const fn next_tag(top: usize) -> usize {
    (top & !INDEX).wrapping_add(1 << INDEX_BITS)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn the_last_comes_first() {
        let states: Vec<_> = (0..4).map(|_| BlockState::new()).collect();
        let states = Storage::Owned(states.into_boxed_slice());
        let (one, other) = (Stack::new(), Stack::new());
        for block in [2, 0, 3] {
            one.push(&states, block);
        }
        other.push(&states, 1);
        assert_eq!(core::array::from_fn(|_| one.pop(&states)), [Some(3), Some(0), Some(2), None]);
        assert_eq!((one.pop(&states), other.pop(&states)), (None, Some(1)));
    }
}
