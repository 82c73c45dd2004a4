//! What the pool asks of the operating system: mappings, advice, nodes, CPUs, fork handlers, barriers.
//!
//! With `rseq/` and the type `Pages`, the only place of this crate with unsafe code. Under miri, which knows no advice,
//! memory comes from the heap (`heap`).

pub(crate) mod advice;
pub(crate) mod cpu;
#[cfg(miri)]
mod heap;
#[cfg(not(miri))]
mod map;
pub(crate) mod membarrier;
pub(crate) mod node;
pub(crate) mod smaps;
pub(crate) mod tables;
pub(crate) mod zero;

#[cfg(miri)]
pub(crate) use heap::Mapping;
#[cfg(not(miri))]
pub(crate) use map::Mapping;

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
