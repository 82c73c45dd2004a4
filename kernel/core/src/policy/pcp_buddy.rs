//! Page sets of whole pageblocks, as posted for discussion.

use super::*;

/// The RFC "pcp buddy allocator": Linux 6.18 with CPUs that own pageblocks.
pub const PCP_BUDDY_RFC: Policy = Policy {
    name: "pcp-buddy-rfc",
    kernel: "RFC of April 2026",
    summary: "as 6.18; CPUs own whole pageblocks, and pages go back to the owner's set",
    source: "mailing-list post (RFC, pcp buddy allocator); what it leaves open: decision 0016",
    lists: ListScheme::EveryOrder,
    ownership: Some(PageblockOwnership::RFC),
    ..LINUX_6_18
};
