//! What the pool asks of the operating system: mappings, advice, nodes, CPUs, fork handlers, barriers.
//!
//! With `rseq/`, `tables` and the type `Pages`, the only place of this crate with unsafe code. Two folders answer: `kernel`, and `miri`,
//! which stands in for it where programs are interpreted. Everything else here is written once over them.

use std::io;

pub(crate) mod advice;
pub(crate) mod checkers;
pub(crate) mod cpu;
pub(crate) mod environment;
pub(crate) mod hugetlb;
#[cfg(not(miri))]
mod kernel;
pub(crate) mod lines;
pub(crate) mod link;
pub(crate) mod membarrier;
#[cfg(miri)]
mod miri;
pub(crate) mod node;
pub(crate) mod share;
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

/// Keeps this code loaded until the process ends, whatever it closes.
pub(crate) fn stay_loaded() {
    host::stay_loaded();
}

/// Bytes of a base page.
pub(crate) const PAGE_BYTES: usize = 4096;
/// Binary logarithm of [`PAGE_BYTES`].
pub(crate) const PAGE_SHIFT: u32 = 12;
/// Bytes of a pageblock: the unit in which memory goes back to the system.
pub(crate) const BLOCK_BYTES: usize = 2 << 20;
/// What the start of a pool is aligned to: the largest block.
pub(crate) const POOL_ALIGN: usize = 4 << 20;

/// Which step of making a mapping the system refused.
#[cfg_attr(miri, expect(dead_code, reason = "the heap has one step"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapStep {
    /// To make the file behind it.
    File,
    /// To reserve address space.
    Reserve,
    /// To map memory there.
    Map,
    /// To have children see zeros there.
    Wipe,
}

impl MapStep {
    /// This step was refused.
    pub(crate) fn refused(self, source: impl Into<io::Error>) -> MapError {
        MapError { step: self, source: source.into() }
    }
}

/// Why there is no mapping.
#[derive(Debug)]
pub(crate) struct MapError {
    pub(crate) step: MapStep,
    /// What the system said.
    pub(crate) source: io::Error,
}

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

impl Change {
    /// All of them, each at the place of its number.
    #[cfg_attr(miri, expect(dead_code, reason = "there is no kernel that a change would be undone in"))]
    pub(in crate::sys) const ALL: [Self; 3] = [Self::Hidden, Self::Locked, Self::Bound];
}
