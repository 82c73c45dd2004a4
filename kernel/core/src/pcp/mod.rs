//! Per-CPU page sets: each CPU keeps a few pages of each zone, so most operations need no zone lock.
//!
//! Files: `pageset` (the lock, and the steps under it), `set` (lists and numbers), `tuning` (decides how much
//! a refill fetches and when a free drains). `refill` and `drain` move blocks under the zone's lock. `visit`
//! decides which lists a drain takes blocks from. `decay` does the work of a tick. `owned` has the refills
//! and drains of CPUs that own pageblocks, and `remote_list` has the blocks that other CPUs freed.
//!
//! Only [`PageAllocator`](crate::PageAllocator) reaches the page sets of an allocator. With the feature
//! `lab`, [`Pcp`] is public for programs that use single page sets, such as a comparison with a real kernel's
//! events, or a model checker. `alone` has methods for programs that use single page sets, and `traffic`
//! plays several operations in one step.

#[cfg(feature = "lab")]
mod alone;
mod decay;
mod drain;
mod owned;
mod pageset;
mod refill;
mod remote_list;
mod set;
#[cfg(feature = "lab")]
mod traffic;
mod tuning;
mod visit;

#[cfg(test)]
mod examples;
#[cfg(test)]
mod golden;

pub use decay::Place;
pub use pageset::{Activity, Pageset};
pub(crate) use pageset::{Claimed, CpuZone, Pagesets};
pub use set::{BlockList, ListIndex, ListScheme, Pcp};
pub(crate) use tuning::scaled;
pub use tuning::{DueDrain, Limits};
pub use visit::DrainFrom;
#[cfg(feature = "lab")]
pub use {
    self::{alone::BlockCount, decay::Decayed, traffic::Traffic},
    crate::{frame::List, zone::Pressure},
};
