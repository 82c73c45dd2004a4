//! The list of recorded events, and of the places where their fields are stored.
//!
//! [`EventKind`] documents the meaning of each kind's fields.

use crate::EventKind;

/// The place where the value of a kernel's field is stored: a field of [`Event`](crate::Event), or a part of
/// such a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// [`Event::pfn`](crate::Event::pfn).
    Pfn,
    /// [`Event::gfp`](crate::Event::gfp).
    Gfp,
    /// [`Event::order`](crate::Event::order).
    Order,
    /// [`Event::migratetype`](crate::Event::migratetype).
    Migratetype,
    /// [`Event::refill`](crate::Event::refill).
    Refill,
    /// The migratetype whose memory a fallback took.
    FallbackType,
    /// Whether a fallback took the whole pageblock.
    Ownership,
    /// The function of a work item. The function's address is stored, and whether the work item touches page
    /// sets.
    Function,
}

/// How much a recording needs an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Without the event, a recording is useless.
    Required,
    /// Without the event, a recording is less useful.
    Useful,
    /// A recording without the event is as useful as a recording with the event, so the event is recorded
    /// only on request.
    Asked,
}

/// The occurrences of an event that are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All occurrences.
    All,
    /// Occurrences that satisfy this expression in the kernel's filter language.
    Where(&'static str),
    /// Starts and ends of the two kinds of work items that touch page sets, if their addresses are known.
    PageSetWork,
}

/// An event of the kernel that can be recorded.
#[derive(Clone, Copy, Debug)]
pub struct Tracepoint {
    /// Directory below `events`. The text is empty for the group of this project's own probes.
    pub system: &'static str,
    /// Name of the event: its directory below `system`.
    pub name: &'static str,
    /// The event's kind in a trace.
    pub kind: EventKind,
    /// The kernel's fields.
    pub fields: &'static [(&'static str, Slot)],
    /// How much a recording needs the event.
    pub need: Need,
    /// The occurrences that are recorded.
    pub filter: Filter,
}

const fn useful(
    system: &'static str,
    kind: EventKind,
    fields: &'static [(&'static str, Slot)],
) -> Tracepoint {
    Tracepoint { system, name: kind.name(), kind, fields, need: Need::Useful, filter: Filter::All }
}

const fn required(tracepoint: Tracepoint) -> Tracepoint {
    Tracepoint { need: Need::Required, ..tracepoint }
}

const fn filtered(filter: Filter, tracepoint: Tracepoint) -> Tracepoint {
    Tracepoint { filter, ..tracepoint }
}

/// An expression in the kernel's filter language that selects waits with the flag `SPIN`, alone or with
/// `READ` or `WRITE`, and waits without a flag. In recordings of Linux 6.18, waits for spinlocks have only
/// the flag `SPIN`. A mutex that spins has the flags `MUTEX` and `SPIN`, and is not selected. Source: the
/// flags in `lock/contention_begin/format`, and recordings.
pub const SPINNING: &str = "flags == 0 || flags == 1 || flags == 3 || flags == 5";
const KSWAPD: Filter = Filter::Where("prev_comm ~ \"kswapd*\"");

/// All events of the kernel that can be recorded, except the probes in [`PROBES`].
pub const TRACEPOINTS: [Tracepoint; 20] = {
    use EventKind::*;
    use Slot::{FallbackType, Function, Gfp, Migratetype, Order, Ownership, Pfn, Refill};
    let page = &[("pfn", Pfn), ("order", Order), ("migratetype", Migratetype)];
    [
        required(useful(
            "kmem",
            MmPageAlloc,
            &[("pfn", Pfn), ("order", Order), ("gfp_flags", Gfp), ("migratetype", Migratetype)],
        )),
        required(useful("kmem", MmPageFree, &[("pfn", Pfn), ("order", Order)])),
        useful("kmem", MmPageFreeBatched, &[("pfn", Pfn)]),
        useful("kmem", MmPagePcpuDrain, page),
        useful(
            "kmem",
            MmPageAllocZoneLocked,
            &[("pfn", Pfn), ("order", Order), ("migratetype", Migratetype), ("percpu_refill", Refill)],
        ),
        useful(
            "kmem",
            MmPageAllocExtfrag,
            &[
                ("pfn", Pfn),
                ("alloc_order", Order),
                ("fallback_order", Refill),
                ("alloc_migratetype", Migratetype),
                ("fallback_migratetype", FallbackType),
                ("change_ownership", Ownership),
            ],
        ),
        useful("kmem", MmPagePcpuRefill, page),
        filtered(
            Filter::Where(SPINNING),
            useful("lock", ContentionBegin, &[("lock_addr", Pfn), ("flags", Gfp)]),
        ),
        useful("lock", ContentionEnd, &[("lock_addr", Pfn), ("ret", Gfp)]),
        useful("lock", ContendedRelease, &[("lock_addr", Pfn)]),
        filtered(Filter::PageSetWork, useful("workqueue", WorkqueueExecuteStart, &[("function", Function)])),
        filtered(Filter::PageSetWork, useful("workqueue", WorkqueueExecuteEnd, &[("function", Function)])),
        Tracepoint { need: Need::Asked, ..useful("exceptions", PageFaultUser, &[("address", Pfn)]) },
        useful("vmscan", KswapdWake, &[("nid", Pfn), ("order", Order)]),
        useful("vmscan", KswapdSleep, &[("nid", Pfn)]),
        useful("vmscan", DirectReclaimBegin, &[("order", Order), ("gfp_flags", Gfp)]),
        useful("vmscan", DirectReclaimEnd, &[("nr_reclaimed", Pfn)]),
        useful("sched", SchedProcessFork, &[("child_pid", Pfn)]),
        filtered(KSWAPD, useful("sched", KswapdSwitchedOut, &[("prev_state", Pfn)])),
        // The event of the marks around samples. The kernel always records `raw_data`, the event of marks.
        Tracepoint { name: "raw_data", ..useful("ftrace", Marker, &[("id", Pfn)]) },
    ]
};

/// The probes on the bulk allocator, in the group of this project's probes.
pub const PROBES: [Tracepoint; 2] = [
    useful("", EventKind::BulkAllocEntry, &[("nr_pages", Slot::Pfn), ("gfp_flags", Slot::Gfp)]),
    useful("", EventKind::BulkAllocReturn, &[("ret", Slot::Pfn)]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_recorded_once() {
        let mut kinds: Vec<_> = TRACEPOINTS.iter().chain(&PROBES).map(|event| event.kind).collect();
        kinds.sort();
        assert_eq!(kinds, EventKind::ALL);
    }
}
