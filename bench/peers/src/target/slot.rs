//! A place where one thread leaves a block for another thread.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Room for one block. One thread leaves blocks, another thread takes them.
#[derive(Debug)]
pub(crate) struct Slot<B> {
    is_full: AtomicBool,
    block: UnsafeCell<Option<B>>,
}

// SAFETY: `is_full` says which of the two threads may look at the block; its release and acquire hand it
// over.
unsafe impl<B: Send> Sync for Slot<B> {}

impl<B> Slot<B> {
    /// An empty slot.
    pub(crate) fn new() -> Self {
        Self { is_full: AtomicBool::new(false), block: UnsafeCell::new(None) }
    }

    /// Whether the slot has a block.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Acquire)
    }

    /// Leaves a block. Only one thread may call it, after it saw the slot empty.
    #[inline]
    pub(crate) fn leave(&self, block: B) {
        // SAFETY: the slot is empty, so the other thread does not look at it.
        unsafe { *self.block.get() = Some(block) };
        self.is_full.store(true, Ordering::Release);
    }

    /// Takes the block if there is one. Only one thread may call it.
    #[inline]
    pub(crate) fn take(&self) -> Option<B> {
        if !self.is_full() {
            return None;
        }
        // SAFETY: the slot is full, so the other thread does not look at it.
        let block = unsafe { (*self.block.get()).take() };
        self.is_full.store(false, Ordering::Release);
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_taken_once() {
        let slot = Slot::new();
        slot.leave(7);
        assert!(slot.is_full());
        assert_eq!((slot.take(), slot.take()), (Some(7), None));
    }
}
