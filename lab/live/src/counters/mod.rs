//! Tracepoints, counted by the kernel on each CPU. At each hit, the kernel increments a number, and records
//! nothing.

use std::collections::BTreeSet;

#[cfg(not(feature = "perf"))]
mod absent;
#[cfg(feature = "perf")]
mod perf;

#[cfg(not(feature = "perf"))]
pub use absent::Counters;
#[cfg(feature = "perf")]
pub use perf::Counters;

/// A counted tracepoint.
///
/// The variants have the names of `/sys/kernel/tracing/events`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tracepoint {
    /// A block leaves a zone's free lists, in a refill or in a request that bypasses the page sets.
    MmPageAllocZoneLocked,
    /// A block leaves a page set for the free lists.
    MmPagePcpuDrain,
    /// A page set is refilled. A patch with this tracepoint was posted in 2026; Linux 7.3.4 does not have the
    /// tracepoint.
    MmPagePcpuRefill,
    /// A CPU finds a spin lock taken and begins to wait. The lock may be any spin lock of the kernel, because
    /// a counter does not see which lock it is.
    ContentionBegin,
}

impl Tracepoint {
    /// Number of tracepoints.
    pub const COUNT: usize = 4;
    /// All tracepoints, in the order of the counts.
    pub const ALL: [Self; Self::COUNT] =
        [Self::MmPageAllocZoneLocked, Self::MmPagePcpuDrain, Self::MmPagePcpuRefill, Self::ContentionBegin];

    /// Position in [`ALL`](Self::ALL).
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Group and name, as a path below tracefs' `events`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MmPageAllocZoneLocked => "kmem/mm_page_alloc_zone_locked",
            Self::MmPagePcpuDrain => "kmem/mm_page_pcpu_drain",
            Self::MmPagePcpuRefill => "kmem/mm_page_pcpu_refill",
            Self::ContentionBegin => "lock/contention_begin",
        }
    }
}

/// Counts of one CPU since its counters began. A count is `None` if the kernel does not have the tracepoint,
/// or if the CPU is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuCounts {
    /// The CPU.
    pub cpu: u32,
    /// The counts in the order of [`Tracepoint::ALL`].
    pub counts: [Option<u64>; Tracepoint::COUNT],
}

/// The CPUs whose tracepoints are counted.
pub(crate) type Cpus = BTreeSet<u32>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_the_list() {
        assert_eq!(Tracepoint::ALL.map(Tracepoint::index), [0, 1, 2, 3]);
    }

    /// Tests that some counter has a value if the process has privileges. Without privileges, `open` must
    /// fail with a reason.
    #[test]
    fn counters_count_or_say_why_not() {
        let cpus = Cpus::from([0]);
        match Counters::open(&cpus) {
            Ok(mut counters) => {
                let read = counters.read(&cpus);
                assert_eq!(read.len(), 1);
                assert_eq!(read[0].cpu, 0);
                assert!(read[0].counts.iter().any(Option::is_some));
                // A CPU that does not exist has no counts, and the call does not fail.
                let none = counters.read(&Cpus::from([u32::MAX]));
                assert_eq!(none, [CpuCounts { cpu: u32::MAX, counts: [None; Tracepoint::COUNT] }]);
            }
            Err(reason) => assert!(reason.len() > 20, "{reason}"),
        }
    }
}
