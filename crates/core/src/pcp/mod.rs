//! Per-CPU page sets: a few pages of each zone, kept by each CPU so that most operations need no zone lock.
//!
//! Files: `pageset` (the lock, and what happens while it is held), `set` (lists and numbers), `tuning` (what they decide:
//! how much a refill fetches, when a free drains), `refill` and `drain` (blocks move, under the zone's lock), `visit`
//! (which lists give), `decay` (what a tick does); `owned` (the same for CPUs that own pageblocks).
//!
//! An allocator's page sets are reached through [`PageAllocator`](crate::PageAllocator) only. [`Pcp`] is public for
//! those who drive one page set by itself: a comparison with a real kernel's events, a model checker, an experiment.

mod decay;
mod drain;
mod owned;
mod pageset;
mod refill;
mod set;
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
pub(crate) use tuning::scaled;
pub use tuning::{DueDrain, Limits};
pub use visit::DrainFrom;

pub use crate::frame::List;
pub use crate::zone::Pressure;
