//! Users of memory, and the work of one turn.

use super::slots::Chain;

/// Blocks that a source allocates or frees in one turn. Turns interleave, because CPUs work side by side.
pub(super) const TURN_PAGES: u64 = 64;

/// A process. All of its memory is freed at one moment.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) cpu: u32,
    pub(super) kind: Kind,
    /// Pages that the process has yet to get: all of its own, the part of them as huge pages, and the
    /// kernel's for it.
    pub(super) pages_left: u64,
    pub(super) huge_left: u64,
    pub(super) unmovable_left: u64,
    /// Pages that the process gets in a step.
    pub(super) pace: u64,
    /// Kernel pages for a thousand of the process's own pages.
    pub(super) unmovable_permille: u32,
    pub(super) blocks: Chain,
    /// Number of the process's own pages.
    pub(super) pages: u64,
}

/// The kind of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Service,
    Build,
    Job,
}

/// The rest of a step's work.
#[derive(Debug)]
pub(super) enum Turn {
    /// A process grows by this many pages.
    Grow { process: usize, pages: u64 },
    /// Pages of files are read.
    Read { pages: u64 },
    /// Inodes are read.
    Scan { inodes: u64 },
    /// Pages of slabs are allocated. `life_steps` is their mean life.
    Slabs { pages: u64, life_steps: u32 },
    /// Buffers are allocated, and as many freed.
    Buffers { pages: u64 },
    /// Blocks are freed.
    Free { cpu: u32, blocks: Chain, remote_permille: u32 },
}
