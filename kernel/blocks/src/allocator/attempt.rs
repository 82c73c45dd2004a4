//! Changes that wait for another CPU's change of the same pageblock.

use pageset_core::{FreeError, Pfn};

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
