//! Changes that wait for another CPU's change of the same pageblock.

use pageset_core::{FreeError, Pfn};

use super::BlockAllocator;
use crate::access::Access;
use crate::atomic::relax;

/// How often to try again while another CPU is changing the pageblock. A change takes a few exchanges, so
/// 1000 attempts usually fail only if a CPU stopped in the middle. The number is chosen, not measured.
pub(super) const ATTEMPTS: usize = 1000;

/// The outcome of one attempt at a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    Done,
    /// Another CPU is changing the pageblock, or this attempt has changed its phase: try again.
    Again,
}

impl<A: Access> BlockAllocator<'_, A> {
    /// Repeats an attempt until it is done or refused. Gives up after `ATTEMPTS` attempts, because another
    /// CPU may have stopped in the middle of a change.
    pub(super) fn until_done(
        &self,
        pfn: Pfn,
        mut attempt: impl FnMut() -> Result<Attempt, FreeError>,
    ) -> Result<(), FreeError> {
        for _ in 0..ATTEMPTS {
            if attempt()? == Attempt::Done {
                return Ok(());
            }
            relax();
        }
        Err(FreeError::Busy(pfn))
    }
}

#[cfg(all(test, feature = "alloc", not(any(loom, shuttle))))]
mod tests {
    use pageset_core::{Config, CpuId, NodeId, Order, Request, ZoneConfig, ZoneKind};

    use super::*;
    use crate::Tables;
    use crate::ids::FrameId;
    use crate::state::{Phase, State};

    /// A person who read the code found this fault. CPU A sees that all frames of a pageblock are free. CPU B
    /// takes some frames of the pageblock. CPU A begins to make the pageblock whole, and stops. CPU B could
    /// not free its frames until CPU A went on, so requests for odd counts lost the frames that they did not
    /// need.
    #[test]
    fn frames_are_freed_although_a_cpu_stopped_while_it_made_their_pageblock_whole() {
        let regions = [0..2048];
        let zones =
            [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..2048, regions: &regions }];
        let config = Config::new(&zones, &[NodeId(0); 2]);
        let (cpu, movable) = (CpuId(0), |order| Request::new(order).movable());
        for order in [0, 3, 5, 6, 8].map(|order| Order::new(order).unwrap()) {
            let allocator = <BlockAllocator<'_>>::new(&config, Tables::on_heap(&config).unwrap()).unwrap();
            let pfn = allocator.alloc(cpu, &movable(order)).unwrap();
            let block = FrameId(pfn.0 as usize).block();
            let state = allocator.state(block);
            allocator.drain_all();
            let stop = |state: State| Some(state.in_phase(Phase::Changing));
            state.update::<crate::access::Shared>(stop).unwrap();
            let end = pfn.0 + u64::from(order.frames());
            let half = (pfn.0 + end).div_ceil(2);
            assert_eq!(allocator.free_range(CpuId(1), half - 1..end), Ok(()), "{order:?}");
            if half - 1 > pfn.0 {
                assert_eq!(allocator.free_range(cpu, pfn.0..half - 1), Ok(()), "{order:?}");
            }
            // The first CPU goes on: it finds that all frames are free.
            state.update::<crate::access::Shared>(|now| Some(now.in_phase(Phase::Open))).unwrap();
            allocator.settle(block);
            assert_eq!(allocator.validate().unwrap().free, 2048);
        }
    }
}
