//! Policies of two RFCs: page sets of whole pageblocks, and units of 1 GiB.

use crate::policy::*;

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

/// The RFC "superpageblocks": page sets of whole pageblocks, and units of 1 GiB.
pub const SUPERPAGEBLOCK_RFC: Policy = Policy {
    name: "superpageblock-rfc",
    kernel: "RFC of May 2026",
    summary: "as pcp-buddy-rfc; what cannot be moved is kept to as few units of 1 GiB as possible",
    source: "mailing-list posts (RFC, superpageblocks, April and May 2026); what is inferred stands at its rule",
    buddy: BuddyRules { steering: Some(UnitSteering::RFC), ..PCP_BUDDY_RFC.buddy },
    ..PCP_BUDDY_RFC
};
