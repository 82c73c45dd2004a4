//! Linux 7.2.

use super::*;

/// Linux 7.2: if a block was split and all of its pages are freed at once, the pages enter the page set as
/// one block. The kernel still emits an event per page.
///
/// Linux 7.1.3 makes the same decisions as Linux 6.19. Source: recordings of 7.1.3, 7.2.13 and 7.3.4, where
/// tasks end and free their stacks. On 7.1.3, 0 of 217 freed stacks were allocated again as one block of
/// order 2. On 7.2.13, all 212 freed stacks were allocated again as one block of order 2, and on 7.3.4, all
/// 157.
pub const LINUX_7_2: Policy = Policy {
    name: "linux-7.2",
    kernel: "7.2.13, 7.3.4",
    summary: "as 6.19; the pages of a split block that are freed at once stay one block",
    source: "recordings of 7.2.13 and 7.3.4",
    split_frees: SplitFrees::Joined,
    ..LINUX_6_19
};
