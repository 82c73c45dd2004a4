//! A small tracing instance that is read continuously. The instance has only the events that the caller waits
//! for.

use std::io;

use pageset_trace::{CallSites, Event, EventKind, raw::RingCounts};

use crate::clock::now_ns;
use crate::cpus::CpuList;
use crate::error::RecordError;
use crate::instance::Instance;
use crate::losses::counts_of;
use crate::merge::Merger;
use crate::ring::Ring;
use crate::setup::{EventChoice, Setup, set_up};
use crate::tracefs::Tracefs;

/// Size of the buffer per CPU. A small buffer suffices, because the watched events are rarer than page
/// events.
const BUFFER_BYTES: u64 = 1 << 20;

/// The events and their options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched<'a> {
    pub(crate) kinds: &'a [EventKind],
    pub(crate) with_call_chains: bool,
}

/// Reads events as they happen.
pub(crate) struct Watch {
    merger: Merger,
    events: Vec<Event>,
    /// The instance must be removed after the rings are closed.
    instance: Instance,
}

impl Watch {
    /// Makes the instance, with recording switched off.
    ///
    /// # Errors
    /// An error of the system, or an error if the kernel does not have the events.
    pub(crate) fn prepare(
        tracefs: &Tracefs,
        cpus: &CpuList,
        watched: Watched<'_>,
    ) -> Result<Self, RecordError> {
        let (instance, _) = Instance::create(tracefs, "-watch")?;
        let Watched { kinds, with_call_chains } = watched;
        let wanted = EventChoice { only: Some(kinds), with_faults: false, with_call_chains };
        let Setup { layout, decoder, .. } = set_up(tracefs, &instance, cpus, BUFFER_BYTES, wanted)?;
        let since_ns = now_ns();
        let rings = cpus.iter().map(|cpu| Ring::open(&instance, cpu, &layout, since_ns));
        let merger = Merger::new(rings.collect::<Result<_, _>>()?, layout, decoder);
        Ok(Self { merger, events: Vec::new(), instance })
    }

    /// Switches recording on.
    pub(crate) fn begin(&self) -> Result<(), RecordError> {
        self.instance.set("tracing_on", "1")
    }

    /// Returns the events since the previous reading, by time.
    pub(crate) fn read(&mut self) -> Result<&[Event], RecordError> {
        self.events.clear();
        let read: io::Result<_> = self.merger.round(&mut self.events);
        read.map_err(|error| RecordError::io(self.instance.path("per_cpu"), "read", error))?;
        Ok(&self.events)
    }

    /// Names of the call sites, and of the locks that are variables, in the events that were read. `None` if
    /// no call chains were recorded.
    pub(crate) fn call_sites(&self) -> Option<CallSites> {
        self.merger.call_sites()
    }

    /// Number of events missed so far.
    pub(crate) fn lost(&self) -> u64 {
        let (mut kernel, mut taken) = (RingCounts::default(), 0_u64);
        for (cpu, records) in self.merger.records() {
            let Some(counts) = counts_of(&self.instance, cpu) else { continue };
            kernel = kernel.plus(counts);
            // Do not count the ring's remaining entries as missed, because the kernel may have written these
            // entries after the last reading.
            taken = taken.saturating_add(counts.read.unwrap_or(0).saturating_sub(records));
        }
        self.merger.losses.total(&kernel).missing().saturating_add(taken)
    }
}
