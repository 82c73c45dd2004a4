//! Page sets of CPUs that own pageblocks (policies with [`ownership`](crate::Policy::ownership)).
//!
//! Files in the order in which a block meets them: `refill` (from the zone, a whole pageblock if possible), `split` (down to the
//! wanted order, without the zone's lock), `give_back` (a freed block comes to its owner), `merge` (of what a drain takes),
//! `drain` (under the zone's lock).
//!
//! A block is `Owned` while it is in its owner's page set, and `Cached` in any other or on its way. A pageblock gets another owner
//! only when it was free as a whole in between, so all its `Owned` blocks are in one page set, whose lock protects them.

mod give_back;
mod merge;
mod refill;
mod split;
#[cfg(test)]
mod tests;
