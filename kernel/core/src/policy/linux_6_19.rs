//! Linux 6.19.

use super::*;

/// Linux 6.19: frees drain in slices of `batch`. Between two slices other CPUs can take the page set's lock.
/// If another CPU holds the lock, the drain ends and the remaining pages stay in the page set.
///
/// The dates of the mailing-list posts (v5, October 2025) imply that Linux 6.19 is the first release whose
/// frees drain in slices.
pub const LINUX_6_19: Policy = Policy {
    name: "linux-6.19",
    kernel: "6.19 to 7.1",
    summary: "as 6.18; a drain of a free takes the lock anew for each batch",
    source: "mailing-list post v5 3/3, October 2025; the release is inferred; recordings of 7.1.3",
    free_drain: FreeDrain::Slices(NextSlice::WhileDue),
    ..LINUX_6_18
};
