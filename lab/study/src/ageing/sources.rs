//! Those who allocate, and what they do at one turn.

use super::slots::Chain;

/// Blocks that a source allocates or frees before it is another's turn: CPUs work side by side.
pub(super) const TURN_PAGES: u64 = 64;

/// A process: memory that dies at one moment.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) cpu: u32,
    pub(super) kind: Kind,
    /// Pages that it has yet to get of its own, how many of them as huge pages, and of the kernel's for it.
    pub(super) pages_left: u64,
    pub(super) huge_left: u64,
    pub(super) unmovable_left: u64,
    /// Pages that it gets in a step.
    pub(super) pace: u64,
    /// What a thousand pages of its own need of the kernel's.
    pub(super) unmovable_permille: u32,
    pub(super) blocks: Chain,
    /// All of its own pages.
    pub(super) pages: u64,
}

/// What a process is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Service,
    Build,
    Job,
}

/// What is still to be done in this step.
#[derive(Debug)]
pub(super) enum Turn {
    /// A process grows by so many pages.
    Grow { process: usize, pages: u64 },
    /// So many pages of files are read.
    Read { pages: u64 },
    /// So many inodes are read.
    Scan { inodes: u64 },
    /// So many pages of slabs that live so long on average.
    Slabs { pages: u64, life_steps: u32 },
    /// So many pages of buffers come, and as many go.
    Buffers { pages: u64 },
    /// Blocks die.
    Free { cpu: u32, blocks: Chain, remote_permille: u32 },
}
