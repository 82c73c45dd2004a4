//! Calls of the operating system: mappings, advice, nodes, CPUs, fork handlers, barriers.
//!
//! Nearly all unsafe code is in this module, in `rseq/`, `tables` and `pages/`. Some functions of other
//! modules are `unsafe` for their callers. The folder `kernel` makes the system calls. Under miri, the folder
//! `miri` replaces `kernel`. The other files of `sys` work with both folders.

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
pub(crate) mod process;
pub(crate) mod share;
pub(crate) mod smaps;
pub(crate) mod thread;
mod valgrind;
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

/// Keeps the pool's code loaded until the process ends, even if the process closes the library that has the
/// code.
pub(crate) fn stay_loaded() {
    host::stay_loaded();
}

/// Bytes of a base page.
pub(crate) const PAGE_BYTES: usize = 4096;
/// Binary logarithm of [`PAGE_BYTES`].
pub(crate) const PAGE_SHIFT: u32 = 12;
/// Bytes of a pageblock.
pub(crate) const BLOCK_BYTES: usize = 2 << 20;
/// Alignment of the start of a pool: the size of the largest block.
pub(crate) const POOL_ALIGN: usize = 4 << 20;

/// A step of making a mapping. A [`MapError`] names the step that the system refused.
#[cfg_attr(miri, expect(dead_code, reason = "the heap has one step"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapStep {
    /// Making the file behind the mapping.
    File,
    /// Reserving address space.
    Reserve,
    /// Mapping memory into the address space that was reserved.
    Map,
    /// Making the mapping read as zero in children.
    Wipe,
}

impl MapStep {
    /// Makes the error for a step that the system refused.
    pub(crate) fn refused(self, source: impl Into<io::Error>) -> MapError {
        MapError { step: self, source: source.into() }
    }
}

/// Why the memory could not be mapped.
#[derive(Debug)]
pub(crate) struct MapError {
    pub(crate) step: MapStep,
    /// The system's error.
    pub(crate) source: io::Error,
}

/// A change that the pool made to its memory. If the memory is a caller's region, the pool undoes the change
/// before the caller gets the region back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The memory is hidden from children.
    Hidden,
    /// The memory is locked.
    Locked,
    /// The memory is bound to nodes.
    Bound,
}

impl Change {
    /// All changes. A change's number is its index in `ALL`.
    #[cfg_attr(miri, expect(dead_code, reason = "there is no kernel that a change would be undone in"))]
    pub(in crate::sys) const ALL: [Self; 3] = [Self::Hidden, Self::Locked, Self::Bound];
}
