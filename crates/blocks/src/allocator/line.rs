//! Which CPU changed the free frames of a pageblock last: for laboratories, which count how often that is another one.

use pageset_core::CpuId;

use super::BlockAllocator;
use crate::stack::BlockIndex;

impl BlockAllocator<'_> {
    /// A CPU changes which frames of a pageblock are free.
    #[inline]
    #[cfg_attr(not(feature = "line-counts"), expect(clippy::unused_self, reason = "nothing is counted"))]
    pub(super) fn note_line(&self, block: BlockIndex, cpu: CpuId) {
        #[cfg(feature = "line-counts")]
        if self.states[block].note_writer(cpu) && self.is_known(cpu) {
            crate::cpu_lists::count(&self.lists_at(self.zone_of_block(block), cpu).counters.line_transfers);
        }
        #[cfg(not(feature = "line-counts"))]
        let _ = (block, cpu);
    }
}
