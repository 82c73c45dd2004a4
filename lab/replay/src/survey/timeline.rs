//! Counts for intervals of time: how often each CPU visited zones, and how long each CPU waited for zone
//! locks.
//!
//! The recording's whole time is divided into intervals of equal length, so the sums over all intervals equal
//! the counts of the whole recording.

use pageset_trace::{Decision, Decisions, Event, EventKind, LockWaits, TraceError, TraceReader};

use super::Survey;

/// The largest number of intervals of all CPUs together, unless `INTERVALS_MIN` requires more. More intervals
/// would make the report too large, and would not be visible in its picture.
const CELLS_MAX: usize = 80_000;
/// Maximum number of intervals of one CPU. A screen is not wide enough for more intervals.
const INTERVALS_MAX: usize = 1000;
/// Minimum number of intervals of one CPU, for any number of CPUs.
const INTERVALS_MIN: usize = 16;

/// Zone visits and waits of the CPUs over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Time of the first event.
    pub first_ns: u64,
    /// Length of an interval; 0 without events.
    pub interval_ns: u64,
    /// Number of intervals.
    pub intervals: usize,
    /// The timelines, by CPU. A CPU without refills has an empty list of refills. The lists of drains and
    /// waits are also empty for a CPU without drains or waits.
    pub cpus: Vec<CpuTimeline>,
}

/// One CPU's visits and waits in each interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuTimeline {
    /// Number of refills. A refill counts at the time of its last block.
    pub refills: Vec<u64>,
    /// Number of drains. A drain counts at the time of its last block.
    pub drains: Vec<u64>,
    /// Nanoseconds of waits for zone locks. A wait counts at the time of its end.
    pub wait_ns: Vec<u64>,
}

/// Reads a surveyed recording once more, and makes its timeline. After each block of events, `progress`
/// receives the number of events read.
///
/// # Errors
/// An error if the recording is damaged or unreadable.
pub fn timeline(
    reader: &mut dyn TraceReader,
    survey: &Survey,
    mut progress: impl FnMut(u64),
) -> Result<Timeline, TraceError> {
    let mut counter = Counter::new(survey);
    let (mut events, mut read) = (Vec::new(), 0);
    while reader.read_block(&mut events)? > 0 {
        counter.record_all(&events);
        read += events.len() as u64;
        progress(read);
    }
    Ok(counter.finish())
}

struct Counter<'s> {
    timeline: Timeline,
    zone_locks: &'s [u64],
    decisions: Decisions,
    waits: LockWaits,
}

impl<'s> Counter<'s> {
    fn new(survey: &'s Survey) -> Self {
        let (first_ns, last_ns) = survey.time.map_or((0, 0), |time| (time.first_ns, time.last_ns));
        let cpus = survey.cpus.each.len().max(1);
        let intervals = (CELLS_MAX / cpus).clamp(INTERVALS_MIN, INTERVALS_MAX);
        // Add 1 to the length of an interval, so that the last event is inside the last interval.
        let interval_ns = (last_ns.saturating_sub(first_ns) / intervals as u64).saturating_add(1);
        Self {
            timeline: Timeline { first_ns, interval_ns, intervals, cpus: Vec::new() },
            zone_locks: survey.kernel.zone_locks.waits.as_ref().map_or(&[], |waits| &waits.addresses),
            decisions: Decisions::default(),
            waits: LockWaits::default(),
        }
    }

    /// Counts the events of a block. This function is not generic, so that the compiler uses this crate's
    /// optimisation level. For a generic function, the compiler uses the optimisation level of the calling
    /// crate.
    fn record_all(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.record(event));
    }

    fn record(&mut self, event: &Event) {
        if let Some(decision) = self.decisions.record(event) {
            self.decided(event.cpu, decision);
        }
        match event.kind {
            EventKind::ContentionBegin => self.waits.begin(event),
            EventKind::ContentionEnd => {
                let Some(wait) = self.waits.end(event).filter(|wait| wait.is_spin) else { return };
                let is_of_zone = match wait.caller {
                    Some(caller) => caller.is_of_zone(),
                    None => self.zone_locks.binary_search(&event.pfn).is_ok(),
                };
                if is_of_zone {
                    self.timeline.add(event.cpu, event.ts_ns, wait.wait_ns, |cpu| &mut cpu.wait_ns);
                }
            }
            _ => {}
        }
    }

    fn decided(&mut self, cpu: u16, decision: Decision) {
        let is_refill = decision.refill.is_some();
        self.timeline
            .add(cpu, decision.last_ns, 1, |cpu| if is_refill { &mut cpu.refills } else { &mut cpu.drains });
    }

    fn finish(mut self) -> Timeline {
        for (cpu, decision) in std::mem::take(&mut self.decisions).finish() {
            self.decided(cpu, decision);
        }
        self.timeline
    }
}

impl Timeline {
    fn add(
        &mut self,
        cpu: u16,
        ts_ns: u64,
        amount: u64,
        list: impl FnOnce(&mut CpuTimeline) -> &mut Vec<u64>,
    ) {
        // If the clock went backwards, the event counts in the first interval.
        let interval = ts_ns.saturating_sub(self.first_ns) / self.interval_ns.max(1);
        let interval = usize::try_from(interval).unwrap_or(usize::MAX).min(self.intervals.saturating_sub(1));
        let list = list(at(&mut self.cpus, cpu));
        if list.is_empty() {
            list.resize(self.intervals, 0);
        }
        list[interval] = list[interval].saturating_add(amount);
    }
}

fn at<T: Clone + Default>(list: &mut Vec<T>, cpu: u16) -> &mut T {
    let cpu = usize::from(cpu);
    if list.len() <= cpu {
        list.resize(cpu + 1, T::default());
    }
    &mut list[cpu]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CpuTotals, RecordedTime, ZoneLockWaits};

    fn event(kind: EventKind, ts_ns: u64, cpu: u16) -> Event {
        Event { pid: 1, pfn: 64, refill: 1, ..Event::new(kind, ts_ns, cpu) }
    }

    fn survey() -> Survey {
        let mut counter = super::super::Counter::new(
            &super::super::SurveyOptions::default(),
            &pageset_trace::TraceInfo::default(),
        );
        counter
            .record_all(&[event(EventKind::MmPageAlloc, 1_000, 0), event(EventKind::MmPageAlloc, 11_000, 3)]);
        counter.finish(&pageset_trace::TraceInfo::default())
    }

    #[test]
    fn what_happened_is_counted_where_it_happened() {
        let mut survey = survey();
        let waits = ZoneLockWaits { addresses: vec![0x77], ..ZoneLockWaits::default() };
        survey.kernel.zone_locks.waits = Some(waits);
        let mut counter = Counter::new(&survey);
        let wait = |kind, ts_ns, lock| Event { pfn: lock, gfp: 1, ..event(kind, ts_ns, 3) };
        for event in [
            event(EventKind::MmPageAllocZoneLocked, 1_000, 0),
            event(EventKind::MmPageAllocZoneLocked, 1_005, 0),
            event(EventKind::MmPageAlloc, 2_000, 0),
            event(EventKind::MmPagePcpuDrain, 11_000, 3),
            wait(EventKind::ContentionBegin, 6_000, 0x77),
            wait(EventKind::ContentionBegin, 6_000, 0x88),
            wait(EventKind::ContentionEnd, 6_300, 0x77),
            wait(EventKind::ContentionEnd, 6_900, 0x88),
        ] {
            counter.record(&event);
        }
        let found = counter.finish();
        assert_eq!(found.intervals, INTERVALS_MAX);
        let place = |list: &[u64]| list.iter().position(|count| *count > 0).zip(list.iter().max().copied());
        assert_eq!(place(&found.cpus[0].refills), Some((0, 1)), "expected one refill of two blocks");
        assert_eq!(place(&found.cpus[3].drains), Some((909, 1)), "10 000 ns in intervals of 11");
        assert_eq!(
            place(&found.cpus[3].wait_ns),
            Some((481, 300)),
            "expected no wait for the second lock, because it is not a zone's lock"
        );
        assert!(found.cpus[1].refills.is_empty());
    }

    #[test]
    fn many_cpus_have_few_intervals_and_the_last_event_is_inside() {
        let mut survey = survey();
        survey.cpus.each = vec![CpuTotals::default(); 512];
        let counter = Counter::new(&survey);
        assert_eq!(counter.timeline.intervals, CELLS_MAX / 512);
        survey.time = survey.time.map(|time| RecordedTime { first_ns: 0, last_ns: u64::MAX, ..time });
        let mut counter = Counter::new(&survey);
        counter.record(&event(EventKind::MmPagePcpuDrain, u64::MAX, 0));
        assert_eq!(counter.finish().cpus[0].drains.iter().sum::<u64>(), 1);
    }
}
