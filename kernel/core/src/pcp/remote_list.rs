//! A list of blocks that other CPUs freed. The blocks wait on this list until the CPU that owns their
//! pageblocks moves the blocks to its page set.

use core::mem;
use core::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crate::frame::{FrameIndex, FrameTables, List};
use crate::platform::{Lock, Platform};
use crate::policy::HAS_LAB;

/// A list of blocks that CPUs other than the owner freed.
///
/// In the RFC "superpageblocks" the list has no lock, and a CPU adds a block by one atomic exchange. In this
/// crate each list has its own lock, because a list without a lock would need unsafe code. A CPU takes the
/// lock to add a block or to take the whole list. The lock also costs one atomic exchange.
pub(super) struct RemoteList<P: Platform> {
    blocks: Lock<P, List>,
    has_any: AtomicBool,
}

impl<P: Platform> RemoteList<P> {
    pub(super) const fn new() -> Self {
        Self { blocks: Lock::<P, _>::new(List::UNUSED), has_any: AtomicBool::new(false) }
    }

    pub(super) fn begin(&mut self) {
        *self.blocks.get_mut() = List::EMPTY;
    }

    pub(super) fn add(&self, frames: &FrameTables<'_>, frame: FrameIndex) {
        let mut blocks = self.blocks.lock();
        blocks.push_head(frames, frame);
        self.has_any.store(true, SeqCst);
    }

    pub(super) fn take(&self) -> List {
        if !HAS_LAB || !self.has_any.load(SeqCst) {
            return List::EMPTY;
        }
        let mut blocks = self.blocks.lock();
        self.has_any.store(false, SeqCst);
        mem::replace(&mut *blocks, List::EMPTY)
    }

    /// Calls `visit` for the first frame of each block.
    pub(super) fn for_each(&self, frames: &FrameTables<'_>, visit: impl FnMut(FrameIndex)) {
        if HAS_LAB && self.has_any.load(SeqCst) {
            self.blocks.lock().iter(frames).for_each(visit);
        }
    }
}
