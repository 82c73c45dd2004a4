//! Users of memory, and the work of a user in one step of the day.

use super::slots::Chain;

/// Number of pages that a user of memory allocates, or of blocks that the user frees, before another user of
/// memory continues. The users alternate, because on a real machine they run at the same time.
pub(super) const TURN_PAGES: u64 = 64;

/// A process. When a process ends, all of its memory is freed at once.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) cpu: u32,
    pub(super) kind: Kind,
    /// Number of the process's own pages that are not allocated yet. `huge_left` counts the huge pages that
    /// are not allocated yet. `unmovable_left` counts kernel pages for the process that are not allocated
    /// yet.
    pub(super) pages_left: u64,
    pub(super) huge_left: u64,
    pub(super) unmovable_left: u64,
    /// Number of pages that the process allocates in one step.
    pub(super) pace: u64,
    /// Number of kernel pages for each thousand of the process's own pages.
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

/// The work that one user of memory still has to do in this step.
#[derive(Debug)]
pub(super) enum Turn {
    /// A process has `pages` pages to allocate.
    Grow { process: usize, pages: u64 },
    /// The kernel reads pages of files into memory.
    Read { pages: u64 },
    /// The kernel reads inodes into memory.
    Scan { inodes: u64 },
    /// The kernel allocates pages of slabs. `life_steps` is the mean life of the slabs.
    Slabs { pages: u64, life_steps: u32 },
    /// The kernel allocates network buffers, and frees the same number of older buffers.
    Buffers { pages: u64 },
    /// A process or another user of memory frees blocks.
    Free { cpu: u32, blocks: Chain, remote_permille: u32 },
}
