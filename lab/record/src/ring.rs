//! One CPU's ring. The pages of the ring are read and become events, which wait for the events of other CPUs.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
};

use pageset_trace::{Event, EventKind, Gap};
use rustix::fs::OFlags;

use crate::call_sites::Sites;
use crate::error::RecordError;
use crate::instance::Instance;
use crate::losses::Losses;
use pageset_trace::raw::{Decoder, Waits};
use pageset_trace::raw::{Missed, PageLayout, Records};

/// Maximum number of events that an interrupt may have between the beginning of a wait and the call chain of
/// this wait.
const NEAR: usize = 16;

/// A CPU's ring.
pub(crate) struct Ring {
    pub(crate) cpu: u16,
    pipe: File,
    page: Vec<u8>,
    waits: Waits,
    /// Events that were read but not yet delivered.
    pending: Vec<Event>,
    /// Time of the last event that was read.
    pub(crate) last_ns: u64,
    /// Number of records read, of any kind. The kernel's counts of a ring include all these kinds of records,
    /// too.
    pub(crate) records: u64,
}

/// The progress of reading one ring or all rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Number of pages read. If several rings were read, this is the number of pages of the ring with the
    /// most pages.
    pub(crate) pages: usize,
    /// Whether reading stopped at the limit, so that more pages may be left.
    pub(crate) is_cut: bool,
}

impl Ring {
    /// Opens the ring of `cpu`. The events of the ring begin at `since_ns`.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn open(
        instance: &Instance,
        cpu: u32,
        layout: &PageLayout,
        since_ns: u64,
    ) -> Result<Self, RecordError> {
        let path = instance.path(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let pipe = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(&path)
            .map_err(|error| RecordError::io(&path, "open", error))?;
        Ok(Self {
            cpu: cpu as u16,
            pipe,
            page: vec![0; layout.page_bytes],
            waits: Waits::default(),
            pending: Vec::new(),
            last_ns: since_ns,
            records: 0,
        })
    }

    /// Makes a ring of `cpu` that reads pages from a file instead of the kernel.
    #[cfg(test)]
    pub(crate) fn of_file(cpu: u16, pipe: File, page_bytes: usize) -> Self {
        Self {
            cpu,
            pipe,
            page: vec![0; page_bytes],
            waits: Waits::default(),
            pending: Vec::new(),
            last_ns: 0,
            records: 0,
        }
    }

    /// Reads all available pages, but at most `pages_max`.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn read(
        &mut self,
        pages_max: usize,
        layout: &PageLayout,
        decoder: &Decoder,
        losses: &mut Losses,
        sites: &mut Sites,
    ) -> io::Result<Reading> {
        for pages in 0..pages_max {
            match self.pipe.read(&mut self.page) {
                Ok(0) => return Ok(Reading { pages, is_cut: false }),
                Ok(bytes) => self.take_page(bytes, layout, decoder, losses, sites),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Reading { pages, is_cut: false });
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Reading { pages: pages_max, is_cut: true })
    }

    fn take_page(
        &mut self,
        bytes: usize,
        layout: &PageLayout,
        decoder: &Decoder,
        losses: &mut Losses,
        sites: &mut Sites,
    ) {
        let Ok(records) = Records::of(layout, &self.page[..bytes]) else {
            losses.add(Gap { cpu: self.cpu, after_ns: self.last_ns, before_ns: self.last_ns, events: None });
            return;
        };
        let mut missed = records.missed;
        for record in records {
            let Ok(record) = record else {
                missed = Some(Missed { events: None });
                break;
            };
            self.records += 1;
            self.note_gap(&mut missed, record.ts_ns, losses);
            self.last_ns = record.ts_ns;
            if let Some((stack, callers)) = decoder.stack(&record).zip(decoder.callers()) {
                if let Some(begun) = begun(&mut self.pending) {
                    sites.put(begun, stack, callers);
                }
                continue;
            }
            self.pending.extend(decoder.event(&record, self.cpu, &mut self.waits));
        }
        self.note_gap(&mut missed, self.last_ns, losses);
    }

    fn note_gap(&self, missed: &mut Option<Missed>, before_ns: u64, losses: &mut Losses) {
        if let Some(Missed { events }) = missed.take() {
            losses.add(Gap { cpu: self.cpu, after_ns: self.last_ns, before_ns, events });
        }
    }

    /// Moves the events up to the time `until_ns` to the end of `out`.
    pub(crate) fn hand_on(&mut self, until_ns: u64, out: &mut Vec<Event>) {
        let count = self.pending.partition_point(|event| event.ts_ns <= until_ns);
        out.extend(self.pending.drain(..count));
    }

    /// Number of waiting events.
    pub(crate) fn waiting(&self) -> usize {
        self.pending.len()
    }
}

/// Finds the beginning of the wait that a call chain belongs to. The call chain comes after the beginning of
/// its wait. The wait of an interrupt, with its own call chain, may come between the beginning of a wait and
/// this wait's call chain.
fn begun(events: &mut [Event]) -> Option<&mut Event> {
    let mut last = events.iter_mut().rev().take(NEAR);
    last.find(|event| event.kind == EventKind::ContentionBegin && event.caller().is_none())
}

#[cfg(test)]
mod tests {
    use pageset_trace::Caller;
    use pageset_trace::raw::{CallStack, Callers};

    use super::*;

    #[test]
    fn a_call_chain_belongs_to_the_last_wait_without_one() {
        let wait = Event::new(EventKind::ContentionBegin, 1, 0);
        let mut events = [wait, wait, Event::new(EventKind::MmPageFree, 2, 0)];
        let put = |events: &mut [Event], caller: Option<Caller>| {
            let stack = CallStack { caller, site: None };
            begun(events).map(|begun| Sites::default().put(begun, stack, &Callers::default()))
        };
        put(&mut events, Some(Caller::Drain));
        put(&mut events, None);
        assert_eq!(events.map(|event| event.caller()), [None, Some(Caller::Drain), None]);
        put(&mut events, Some(Caller::Refill));
        assert_eq!(events[0].caller(), Some(Caller::Refill));
        assert_eq!(put(&mut events, Some(Caller::Free)), None);
        assert_eq!(events[1].caller(), Some(Caller::Drain));
    }
}
