//! Linux 7.2.

use super::*;

/// Linux 7.2: if the pages of a split block are freed at once, they enter the page set as that block, with an
/// event per page.
///
/// 7.1.3 decides as 6.19 does. Source: recordings of 7.1.3, 7.2.13 and 7.3.4. Tasks end there and free their
/// stacks. The pages of a stack were allocated again as a block of order 2 in 0 of 217 cases on 7.1.3, in
/// all 212 on 7.2.13, and in all 157 on 7.3.4.
pub const LINUX_7_2: Policy = Policy {
    name: "linux-7.2",
    kernel: "7.2.13, 7.3.4",
    summary: "as 6.19; the pages of a split block that are freed at once stay one block",
    source: "recordings of 7.2.13 and 7.3.4",
    split_frees: SplitFrees::Joined,
    ..LINUX_6_19
};
