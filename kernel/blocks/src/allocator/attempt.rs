//! Changes that wait for another CPU's change of the same pageblock.

use pageset_core::{AllocError, FreeError, Order, Pfn};

use super::BlockAllocator;
use crate::access::Access;
use crate::atomic::relax;

/// How often to try again while another CPU is changing the pageblock. A change takes a few exchanges, so this
/// many attempts fail only if a CPU stopped in the middle. Chosen.
pub(super) const ATTEMPTS: usize = 1000;

/// The outcome of one attempt at a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    Done,
    /// Another CPU is changing the pageblock, or this attempt has changed its phase: try again.
    Again,
}

impl<A: Access> BlockAllocator<'_, A> {
    /// Repeats an attempt until it is done or refused. Gives up after `ATTEMPTS`, because another CPU may have
    /// stopped in the middle.
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

/// The error of an allocation that could not return frames which it had just taken. Its caller did nothing wrong
/// if another CPU stopped in the middle of a change of the pageblock. In all other cases, another caller has
/// freed frames that it does not own.
pub(super) fn not_returned(error: FreeError, pfn: Pfn, order: Order) -> AllocError {
    match error {
        FreeError::Busy(_) => AllocError::OutOfMemory { order },
        _ => AllocError::NotFree(pfn),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by a reader: a request failed as if its caller had misused the allocator, although another CPU had
    /// only stopped.
    #[test]
    fn a_stopped_cpu_is_no_misuse_by_the_caller() {
        let (pfn, order) = (Pfn(8), Order::ZERO);
        assert_eq!(not_returned(FreeError::Busy(pfn), pfn, order), AllocError::OutOfMemory { order });
        assert_eq!(not_returned(FreeError::DoubleFree(pfn), pfn, order), AllocError::NotFree(pfn));
    }
}
