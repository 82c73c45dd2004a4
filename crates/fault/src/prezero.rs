//! Frames that were cleared ahead, when somebody had time (spec §1.9, Jan 2005): a stack per CPU.

use pageset_core::{Order, Pfn};

use crate::engine::Engine;
use crate::frames::{FrameSource, FrameUse};
use crate::local::Local;
use crate::world::{Memory, World};

impl<W: World> Engine<W> {
    /// Clears frames for the task's CPU.
    pub(crate) fn prezero(&self, local: &mut Local, frames: usize) -> usize {
        let pool = &self.prezeroed[local.cpu.index()].0;
        let room = self.prezeroed_max.saturating_sub(pool.lock().len()).min(frames);
        for done in 0..room {
            let Some(pfn) = self.world.frames().alloc(local.cpu, Order::ZERO, FrameUse::Anon) else {
                return done;
            };
            self.world.memory().clear(local.cpu, pfn, Order::ZERO, 0);
            pool.lock().push(pfn);
        }
        room
    }

    /// A frame that is clear already.
    #[inline]
    pub(crate) fn take_prezeroed(&self, local: &mut Local) -> Option<Pfn> {
        if self.prezeroed_max == 0 {
            return None;
        }
        let pfn = self.prezeroed[local.cpu.index()].0.lock().pop()?;
        local.stats.prezeroed += 1;
        Some(pfn)
    }

    /// Frames that wait in the pools.
    pub fn prezeroed_frames(&self) -> u64 {
        self.prezeroed.iter().map(|pool| pool.0.lock().len() as u64).sum()
    }
}
