//! Per-CPU page sets: a few pages of each zone, kept by each CPU so that most operations need no zone lock.
//!
//! Files: `set` (the lists and the state), `lists` (which list a block belongs to), `refill`, `free`, `limit` (when a
//! free drains, and how much), `drain` and `visit` (which lists give), `decay` (what a tick does), `pageset` (the lock
//! around it).
//!
//! An allocator's page sets are reached through [`PageAllocator`](crate::PageAllocator) only. [`Pcp`] is public for
//! those who drive one page set by itself: a comparison with a real kernel's events, a model checker, an experiment.

mod decay;
mod drain;
mod free;
mod limit;
mod lists;
mod pageset;
mod refill;
mod set;
mod visit;

#[cfg(test)]
mod golden;

pub use decay::Decayed;
pub use free::DueDrain;
pub(crate) use limit::scaled;
pub use limit::{Limits, Pressure};
pub(crate) use lists::MAX_LISTS;
pub use lists::{ListIndex, ListScheme};
pub use pageset::Pageset;
pub(crate) use pageset::PagesetState;
pub use set::Pcp;
