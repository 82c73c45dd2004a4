//! Per-CPU page sets: a few pages of each zone, kept by each CPU so that most operations need no zone lock.
//!
//! Files: `set` (the lists and the state), `lists` (which list a block belongs to), `refill`, `free`, `limit` (when a
//! free drains, and how much), `drain` and `visit` (which lists give), `decay` (what a tick does), `pageset` (the lock around it).

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

pub(crate) use free::DueDrain;
pub(crate) use limit::{Limits, Pressure, scaled};
pub use lists::ListScheme;
pub(crate) use lists::{ListIndex, MAX_LISTS};
pub use pageset::Pageset;
pub(crate) use pageset::PagesetState;
pub(crate) use set::Pcp;
