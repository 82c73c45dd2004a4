//! Counts events that a replay leaves out, and work that a replay adds although it has no event.

/// Events of the recording that were not replayed, by reason. The counts are the same under every policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Unreplayed {
    /// Number of allocations that failed in the recording.
    pub failed_in_recording: u64,
    /// Number of allocations and frees of frames outside the machine's zones.
    pub foreign_frames: u64,
    /// Number of events with an impossible order, CPU, node or number of pages.
    pub impossible: u64,
    /// Number of allocations of frames that were in use according to earlier events. The event of an earlier
    /// free was lost for each such allocation.
    pub allocated_twice: u64,
}

/// Work that a replay adds although it has no event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Unseen {
    /// Number of frees of pages whose allocation the recording does not show.
    pub unmatched_frees: u64,
    /// Number of frees among `unmatched_frees` that free a page for the second time in a row. Before such a
    /// free, the page was allocated without an event, for example in bulk.
    pub allocations: u64,
    /// Number of pages for the stacks of forked tasks, if the recording has no events of bulk allocations.
    pub stack_pages: u64,
    /// Number of frees that went past a page set whose lock was busy, as later events show.
    pub diverted_frees: u64,
}
