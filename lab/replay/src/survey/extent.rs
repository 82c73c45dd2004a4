//! Finds whether a recording has the events of the whole machine or only of a part.

use pageset_trace::{Event, EventKind, SourceFormat, TraceInfo};

/// If a recording of a whole machine has this number of events, more than one thread caused the events.
const EVENTS_MIN: u64 = 100;

/// The first words of a recorder's note that only some CPUs were recorded.
const OTHER_CPUS: &str = "other CPUs than ";

/// Counts that show whether a recording has the events of the whole machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    events: u64,
    pid: Option<u32>,
    has_several_threads: bool,
    allocations: u64,
    has_single_pages: bool,
}

impl Extent {
    #[inline]
    pub(super) fn record(&mut self, event: &Event) {
        self.events += 1;
        self.has_several_threads |= *self.pid.get_or_insert(event.pid) != event.pid;
        if event.kind == EventKind::MmPageAlloc {
            self.allocations += 1;
            self.has_single_pages |= event.order == 0;
        }
    }

    /// Says which part of the machine was recorded, and how to record the whole machine. `None` if nothing
    /// shows that a part is missing.
    #[must_use]
    pub fn part(&self, info: &TraceInfo) -> Option<String> {
        let cpus = info.not_recorded.iter().find_map(|what| what.strip_prefix(OTHER_CPUS));
        if let Some(cpus) = cpus {
            let cpus = cpus.split(':').next().unwrap_or_default();
            let what = if cpus.parse::<u32>().is_ok() { "CPU" } else { "CPUs" };
            return Some(format!("It has the events of {what} {cpus} only. Record all CPUs."));
        }
        // The recorders of this project record every thread. A recording of these recorders is therefore
        // complete even if it has only one thread.
        let is_ours =
            matches!(info.source, SourceFormat::Native | SourceFormat::Pcpt) && info.before.is_some();
        if is_ours {
            return None;
        }
        if self.allocations >= EVENTS_MIN && !self.has_single_pages {
            return Some(
                "It has no allocation of a single page. Record without a filter on orders.".to_owned(),
            );
        }
        let pid = self.pid.filter(|_| !self.has_several_threads && self.events >= EVENTS_MIN)?;
        Some(format!(
            "All its events are of thread {pid}. Record the whole machine, with `pageset record` or `perf record -a`."
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pids: &[u32]) -> Extent {
        let mut extent = Extent::default();
        for pid in pids {
            extent.record(&Event { pid: *pid, ..Event::new(EventKind::MmPageAlloc, 0, 0) });
        }
        extent
    }

    #[test]
    fn a_recording_of_one_thread_is_a_part_of_its_machine() {
        let text = TraceInfo { source: SourceFormat::PerfScript, ..TraceInfo::default() };
        assert!(of(&[7; 100]).part(&text).unwrap().contains("thread 7"));
        assert_eq!(of(&[7; 99]).part(&text), None, "too few to say");
        let mut two = vec![7; 99];
        two.push(0);
        assert_eq!(of(&two).part(&text), None);
    }

    #[test]
    fn a_recording_without_single_pages_was_filtered() {
        let text = TraceInfo { source: SourceFormat::Ftrace, ..TraceInfo::default() };
        let mut extent = Extent::default();
        for pid in 0..100 {
            extent.record(&Event { pid, order: 3, ..Event::new(EventKind::MmPageAlloc, 0, 0) });
        }
        assert!(extent.part(&text).unwrap().starts_with("It has no allocation of a single page."));
        extent.record(&Event::new(EventKind::MmPageAlloc, 0, 0));
        assert_eq!(extent.part(&text), None);
    }

    #[test]
    fn a_recording_of_some_cpus_says_which() {
        let not_recorded = vec!["other CPUs than 0-1,4: not asked for".to_owned()];
        let info = TraceInfo { not_recorded, ..TraceInfo::default() };
        assert!(of(&[]).part(&info).unwrap().starts_with("It has the events of CPUs 0-1,4 only."));
    }
}
