//! Counts how often a CPU changes rows of a pageblock after another CPU changed some of its rows last.
//! Simulations and measurements use the counts.

use pageset_core::CpuId;

use super::BlockAllocator;
use crate::access::Access;
use crate::ids::BlockId;

/// A cache-line transfer counts as contended if the other CPU changed the line less than this many ns ago.
/// Chosen: about the time of one operation on a slow CPU.
#[cfg(feature = "line-counts")]
pub const CONTENDED_NS: u64 = 10_000;

impl<A: Access> BlockAllocator<'_, A> {
    /// Sets the clock that decides whether a line transfer was contended, in ns from any start. Without a
    /// clock, all operations happen at time 0.
    #[cfg(feature = "line-counts")]
    #[must_use]
    pub fn with_clock(mut self, now_ns: fn() -> u64) -> Self {
        self.now_ns = now_ns;
        self
    }

    /// Notes that a CPU changes which frames of a pageblock are free.
    #[inline]
    #[cfg_attr(not(feature = "line-counts"), expect(clippy::unused_self, reason = "nothing is counted"))]
    pub(super) fn note_line(&self, block: BlockId, cpu: CpuId) {
        #[cfg(feature = "line-counts")]
        {
            let now_ns = (self.now_ns)() as usize;
            if let Some(passed_ns) = self.rows(block).last_change.note(cpu, now_ns)
                && self.is_known(cpu)
            {
                let counters = &self.share_at(self.zone_of_block(block), cpu).counters;
                crate::cpu_share::count::<A>(&counters.line_transfers);
                if passed_ns < CONTENDED_NS as usize {
                    crate::cpu_share::count::<A>(&counters.contended_lines);
                }
            }
        }
        #[cfg(not(feature = "line-counts"))]
        let _ = (block, cpu);
    }
}
