//! Combines the recorded kernel's events into refills and drains. A refill is a run of blocks that a page set
//! fetched. A drain is a run of blocks that a page set gave back.

use crate::{Event, EventKind, PFN_NONE};

/// A refill or drain of the recorded kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// For a refill, the order of its blocks, and the number of their migratetype. `None` for a drain.
    pub refill: Option<(u8, i8)>,
    /// The number of pages in all blocks of the decision.
    pub pages: u64,
    /// The first block's frame.
    pub pfn: u64,
    /// Time of the first block, in nanoseconds of the recording's clock.
    pub first_ns: u64,
    /// Time of the last block.
    pub last_ns: u64,
    /// The task that ran when the first block moved.
    pub pid: u32,
    /// Whether an interrupt moved the first block. `pid` is then the interrupted task.
    pub in_interrupt: bool,
}

/// Combines the events of each CPU into decisions.
#[derive(Debug, Default)]
pub struct Decisions {
    open: Vec<Option<Decision>>,
}

impl Decisions {
    /// Adds an event. If the event ends the CPU's current run, returns this run as a decision.
    #[inline]
    pub fn record(&mut self, event: &Event) -> Option<Decision> {
        let pages = event.block_pages();
        let refill = match event.kind {
            EventKind::MmPageAllocZoneLocked if event.pfn == PFN_NONE || pages == 0 => return None,
            EventKind::MmPageAllocZoneLocked if event.is_pcp_refill() => {
                Some((event.order, event.migratetype))
            }
            EventKind::MmPagePcpuDrain => None,
            // Fallbacks and waits do not end a run. A fallback is part of a refill, and a wait for the zone
            // lock may come before each slice of a drain.
            EventKind::MmPageAllocExtfrag | EventKind::ContentionBegin | EventKind::ContentionEnd => {
                return None;
            }
            _ => return self.open.get_mut(usize::from(event.cpu))?.take(),
        };
        let open = self.open(event.cpu);
        if let Some(decision) = open
            && decision.refill == refill
        {
            decision.pages += pages;
            decision.last_ns = event.ts_ns;
            return None;
        }
        let (first_ns, last_ns) = (event.ts_ns, event.ts_ns);
        let (pid, in_interrupt) = (event.pid, event.in_interrupt());
        open.replace(Decision { refill, pages, pfn: event.pfn, first_ns, last_ns, pid, in_interrupt })
    }

    /// Returns the runs that no event has ended, each with its CPU.
    pub fn finish(self) -> impl Iterator<Item = (u16, Decision)> {
        self.open.into_iter().enumerate().filter_map(|(cpu, run)| Some((cpu as u16, run?)))
    }

    #[inline]
    fn open(&mut self, cpu: u16) -> &mut Option<Decision> {
        let cpu = usize::from(cpu);
        if self.open.len() <= cpu {
            self.open.resize(cpu + 1, None);
        }
        &mut self.open[cpu]
    }
}
