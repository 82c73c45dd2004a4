//! The memory of a message: its description, its head, and the payload that does not fit into the head (spec
//! fault.md §4.3).

use pageset_core::{AllocError, MigrateType};

use crate::load::plan::Plan;
use crate::load::setup::{Generation, Setup};
use crate::slab::{CacheId, Slabs};
use crate::target::{Message, Target};

/// Size of the structure that describes a message of a socket. Source: spec fault.md §4.3.
pub(super) const SKB_BYTES: u32 = 256;
/// Number of bytes of a head in addition to its payload: room for headers before the payload, and shared
/// information after the payload. Guess that agrees with spec fault.md §4.3: 4 KiB of payload need
/// kmalloc-8k, and 8 KiB need a block of order 2.
pub(super) const OVERHEAD_BYTES: u32 = 384;
/// Size of the slab objects for small heads since Linux 6.3. Source: spec fault.md §4.3.
const SMALL_HEAD_BYTES: u32 = 704;

/// The slab caches that a message's parts are allocated from.
#[derive(Debug)]
pub(in crate::load) struct Skbs {
    slabs: Slabs,
    skb: CacheId,
    small_head: Option<CacheId>,
}

impl Skbs {
    /// Makes the slab caches for messages whose payloads have the sizes in `bytes`.
    pub(in crate::load) fn new(plan: &mut Plan, setup: &Setup<'_>, bytes: &[u32]) -> Self {
        let mut slabs = Slabs::new(setup);
        let skb = slabs.cache(plan, SKB_BYTES, MigrateType::Unmovable);
        let small_head = (setup.generation >= Generation::V6_6)
            .then(|| slabs.cache(plan, SMALL_HEAD_BYTES, MigrateType::Unmovable));
        bytes.iter().for_each(|bytes| slabs.kmalloc_cache(plan, bytes + OVERHEAD_BYTES));
        Self { slabs, skb, small_head }
    }

    /// Sets the number of workers that use the slab caches. Each worker that uses the caches calls `leave`
    /// once.
    pub(in crate::load) fn used_by(self, workers: usize) -> Self {
        Self { slabs: self.slabs.used_by(workers), ..self }
    }

    pub(in crate::load) fn leave(&self, target: &mut dyn Target) {
        self.slabs.leave(target);
    }

    /// Frees all parts of a message.
    pub(in crate::load) fn release(&self, target: &mut dyn Target, message: Message) {
        self.slabs.release(target, message);
    }

    /// Allocates the description and the head of a message. The head has room for the headers and for `bytes`
    /// bytes of payload.
    pub(in crate::load) fn head(
        &self,
        target: &mut dyn Target,
        bytes: u32,
        message: &mut Message,
    ) -> Result<(), AllocError> {
        message.objects.push(self.slabs.take(target, self.skb)?);
        let bytes = bytes + OVERHEAD_BYTES;
        match self.small_head {
            Some(small_head) if bytes <= SMALL_HEAD_BYTES => {
                message.objects.push(self.slabs.take(target, small_head)?);
                Ok(())
            }
            _ => self.slabs.kmalloc(target, bytes, message),
        }
    }
}
