//! Frames that idle CPUs cleared in advance (spec §1.9, Jan 2005). Each CPU has a stack of cleared frames.

use pageset_core::{CpuId, Order, Pfn};

use crate::engine::Engine;
use crate::frames::{FrameSource, FrameUse};
use crate::local::Local;
use crate::world::{Memory, World};

impl<W: World> Engine<W> {
    /// Clears up to `frames` frames for the task's CPU. Returns the number of cleared frames.
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

    /// Takes a cleared frame from the stack of the task's CPU.
    #[inline]
    pub(crate) fn take_prezeroed(&self, local: &mut Local) -> Option<Pfn> {
        if self.prezeroed_max == 0 {
            return None;
        }
        let pfn = self.prezeroed[local.cpu.index()].0.lock().pop()?;
        local.stats.prezeroed += 1;
        Some(pfn)
    }

    /// Frees the cleared frames of a CPU. Call this function if the CPU will handle no more faults. Returns
    /// the number of freed frames.
    pub fn empty_prezeroed(&self, cpu: CpuId) -> usize {
        let frames = core::mem::take(&mut *self.prezeroed[cpu.index()].0.lock());
        for pfn in &frames {
            let freed = self.world.frames().free(cpu, *pfn, Order::ZERO);
            debug_assert!(freed.is_ok(), "{pfn:?} of the pool: {freed:?}");
        }
        frames.len()
    }

    /// The number of cleared frames in the stacks of all CPUs.
    pub fn prezeroed_frames(&self) -> u64 {
        self.prezeroed.iter().map(|pool| pool.0.lock().len() as u64).sum()
    }
}
