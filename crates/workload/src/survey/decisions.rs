//! The recorded kernel's events, put together to its decisions: a refill is a run of fetched blocks, a drain one of
//! blocks that were given back.

use pageset_trace::{Event, EventKind, PFN_NONE};

/// A refill or drain of the recorded kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Blocks of one order and type that a page set fetched.
    Refill {
        /// Size class.
        order: u8,
        /// The kernel's number of the type.
        migratetype: i8,
        /// All of them.
        pages: u64,
        /// The first block's frame.
        pfn: u64,
    },
    /// Blocks that a page set gave back.
    Drain {
        /// All of them.
        pages: u64,
        /// The first block's frame.
        pfn: u64,
    },
}

/// Puts events together, CPU by CPU.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    open: Vec<Option<Decision>>,
}

impl Decisions {
    /// Adds an event. Returns the run that it ends on its CPU.
    #[inline]
    pub(crate) fn record(&mut self, event: &Event) -> Option<Decision> {
        let pages = pages_of(event);
        match event.kind {
            EventKind::MmPageAllocZoneLocked if event.pfn == PFN_NONE || pages == 0 => None,
            EventKind::MmPageAllocZoneLocked if event.is_pcp_refill() => self.refilled(event, pages),
            EventKind::MmPagePcpuDrain => self.drained(event, pages),
            // Neither ends a run: a fallback is a part of a refill, and a wait for the zone lock comes before each slice.
            EventKind::MmPageAllocExtfrag | EventKind::ContentionBegin | EventKind::ContentionEnd => None,
            _ => self.open.get_mut(usize::from(event.cpu))?.take(),
        }
    }

    fn refilled(&mut self, event: &Event, more: u64) -> Option<Decision> {
        let open = self.open(event.cpu);
        if let Some(Decision::Refill { order, migratetype, pages, .. }) = open
            && (*order, *migratetype) == (event.order, event.migratetype)
        {
            *pages += more;
            return None;
        }
        let Event { order, migratetype, pfn, .. } = *event;
        open.replace(Decision::Refill { order, migratetype, pages: more, pfn })
    }

    fn drained(&mut self, event: &Event, more: u64) -> Option<Decision> {
        let open = self.open(event.cpu);
        if let Some(Decision::Drain { pages, .. }) = open {
            *pages += more;
            return None;
        }
        open.replace(Decision::Drain { pages: more, pfn: event.pfn })
    }

    /// The runs that no event ended, with their CPUs.
    pub(crate) fn finish(self) -> impl Iterator<Item = (u16, Decision)> {
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

/// Frames of the block the event is about; 0 if no block has its order.
pub(super) fn pages_of(event: &Event) -> u64 {
    event.block_order().map_or(0, |order| u64::from(order.frames()))
}
