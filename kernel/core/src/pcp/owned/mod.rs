//! Page sets of CPUs that own pageblocks (policies with [`ownership`](field@crate::Policy::ownership)).
//!
//! The allocation and the free of a block use the files as follows. `refill` takes a whole pageblock from the
//! zone if possible, and `split` splits the pageblock to the wanted order. `give_back` gives a freed block to
//! its owner, and `merge` merges the blocks of a drain. With
//! [`RemoteFrees::OwnersList`](crate::policy::RemoteFrees), a block that another CPU freed waits on a list
//! until the owner's page set takes in the list. Neither `split` nor `merge` takes the zone's lock.
//!
//! A block is `Owned` while it is in its owner's page set, and `Cached` in any other page set or on its way
//! there. Only a completely free pageblock can get an owner. So all `Owned` blocks of a pageblock are in one
//! page set, and this page set's lock protects these blocks.

mod give_back;
mod merge;
mod refill;
mod split;
#[cfg(test)]
mod tests;
