//! Per-CPU page sets: each CPU keeps a few pages of each zone, so most operations need no zone lock.
//!
//! Files: `pageset` (the lock, and the steps under it), `set` (lists and numbers), `tuning` (decides how much
//! a refill fetches and when a free drains). `refill` and `drain` move blocks under the zone's lock. `visit`
//! decides which lists a drain takes blocks from. `decay` does the work of a tick. `traffic` plays several
//! operations in one step. `owned` has the refills and drains of CPUs that own pageblocks, and `remote_list`
//! has the blocks that other CPUs freed.
//!
//! Only [`PageAllocator`](crate::PageAllocator) reaches the page sets of an allocator. [`Pcp`] is public for
//! programs that use a single page set: a comparison with a real kernel's events, a model checker, an
//! experiment.

mod decay;
mod drain;
mod owned;
mod pageset;
mod refill;
mod remote_list;
mod set;
mod traffic;
mod tuning;
mod visit;

#[cfg(test)]
mod examples;
#[cfg(test)]
mod golden;

pub use decay::{Decayed, Place};
pub use pageset::{Activity, Pageset};
pub(crate) use pageset::{Claimed, CpuZone, Pagesets};
pub use set::{BlockCount, BlockList, ListIndex, ListScheme, Pcp};
pub use traffic::Traffic;
pub(crate) use tuning::scaled;
pub use tuning::{DueDrain, Limits};
pub use visit::DrainFrom;

pub use crate::frame::List;
pub use crate::zone::Pressure;
