//! What the pool asks of the operating system: mappings, advice, nodes, CPUs, fork handlers, barriers.
//!
//! With `rseq/` and the type `Pages`, the only place of this crate with unsafe code. Two folders answer: `kernel`, and `miri`,
//! which stands in for it where programs are interpreted. Everything else here is written once over them.

pub(crate) mod advice;
pub(crate) mod cpu;
#[cfg(not(miri))]
mod kernel;
pub(crate) mod lines;
pub(crate) mod link;
pub(crate) mod membarrier;
#[cfg(miri)]
mod miri;
pub(crate) mod node;
pub(crate) mod smaps;
pub(crate) mod thread;
pub(crate) mod zero;
#[cfg_attr(any(loom, shuttle), path = "zeros_of_checkers.rs")]
pub(crate) mod zeros;

#[cfg(not(miri))]
use kernel as host;
#[cfg(miri)]
use miri as host;

pub(crate) use host::Mapping;
#[cfg(test)]
pub(crate) use host::TEST_ROUNDS;

/// Bytes of a base page.
pub(crate) const PAGE_BYTES: usize = 4096;
/// Binary logarithm of [`PAGE_BYTES`].
pub(crate) const PAGE_SHIFT: u32 = 12;
/// Bytes of a pageblock: the unit in which memory goes back to the system.
pub(crate) const BLOCK_BYTES: usize = 2 << 20;
/// What the start of a pool is aligned to: the largest block.
pub(crate) const POOL_ALIGN: usize = 4 << 20;

/// What the pool changed about its memory, and undoes when it gives a region back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Children do not see it.
    Hidden,
    /// It cannot leave memory.
    Locked,
    /// Its pages come from certain nodes.
    Bound,
}
