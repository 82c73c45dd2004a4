//! A trace's information about itself: its origin, the machine, the states before and after, and the lost
//! events.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{
    call_sites::CallSites, counts::Counts, event::EventKind, layout::Layout, recording_cost::RecordingCost,
    sample::Sample, setting_change::SettingChange, snapshot::Snapshot, tasks::Tasks, visit_cost::VisitCost,
};

/// The formats of traces. All formats except `Pcpt` can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceFormat {
    /// This project's own file (`.pgtrace`).
    #[default]
    Native,
    /// A column file (`.pcpt`). No current reader reads column files, but a native file that was converted
    /// from a column file keeps this origin.
    Pcpt,
    /// Text of `/sys/kernel/tracing/trace`.
    Ftrace,
    /// Output of `perf script`.
    PerfScript,
    /// Output of `trace-cmd report`, with or without `-R`.
    TraceCmd,
    /// File of `trace-cmd record` (`trace.dat`).
    TraceDat,
    /// File of `perf record` (`perf.data`).
    PerfData,
}

impl SourceFormat {
    /// The format's usual name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "pgtrace",
            Self::Pcpt => "pcpt",
            Self::Ftrace => "ftrace text",
            Self::PerfScript => "perf script text",
            Self::TraceCmd => "trace-cmd report text",
            Self::TraceDat => "trace.dat",
            Self::PerfData => "perf.data",
        }
    }
}

/// Numbers of events that are missing or could not be used, by reason. If a reader drops an event, one of
/// these fields counts the event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LostEvents {
    /// Number of events that were overwritten in the ring before they were read. In a trace from `perf.data`,
    /// this number counts all events that the file reports as lost.
    pub overrun: u64,
    /// Number of events that the kernel rejected because the ring was full.
    pub dropped: u64,
    /// Number of events that `LOST` lines in the text report.
    pub lost_in_text: u64,
    /// The number of `LOST` lines and pages that do not give the number of missing events. Lenient reading
    /// also counts pages that contradict themselves.
    pub gaps_of_unknown_size: u64,
    /// Number of lines, records and samples of events that this crate does not know. If Linux 2.6.32 printed
    /// two lines for one free, `unknown_events` counts the second line too.
    pub unknown_events: u64,
    /// Number of lines that are neither events, nor comments, nor parts of call chains, nor reports of
    /// losses.
    pub unrecognised_lines: u64,
    /// Number of malformed lines and samples of known events. Only lenient reading counts malformed lines and
    /// samples. Strict reading returns an error at a malformed line or sample.
    pub malformed_lines: u64,
    /// Number of lines longer than the limit.
    pub oversized_lines: u64,
    /// Number of names of allocation flags that are not in the table. A reader keeps the event, without the
    /// unknown flag.
    pub unknown_gfp_names: u64,
    /// Number of events whose time is earlier than the time of the event before them. Readers keep events
    /// that are out of order unchanged.
    pub out_of_order: u64,
    /// Number of blocks of a damaged native file that were not read. Only reading with recovery counts
    /// damaged blocks.
    pub damaged_blocks: u64,
    /// Number of events that another program read from the ring.
    #[serde(default)]
    pub taken: u64,
}

impl LostEvents {
    /// The number of events that are known to be missing. A gap of unknown size counts as one event.
    #[must_use]
    pub const fn missing(&self) -> u64 {
        self.overrun
            .saturating_add(self.dropped)
            .saturating_add(self.lost_in_text)
            .saturating_add(self.gaps_of_unknown_size)
            .saturating_add(self.malformed_lines)
            .saturating_add(self.oversized_lines)
            .saturating_add(self.taken)
    }
}

/// A gap in the events of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The CPU.
    pub cpu: u16,
    /// Time of the last event before the gap. If the CPU has no event before the gap, this is the time when
    /// recording was switched on.
    pub after_ns: u64,
    /// Time of the first event after the gap.
    pub before_ns: u64,
    /// Number of missing events. `None` if the kernel does not give this number.
    pub events: Option<u64>,
}

/// Everything that is known about a trace before its first event is read. Times are nanoseconds of the
/// events' clock. Readers ignore unknown fields, because a later minor version of the native file may add
/// fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceInfo {
    /// Format of the original trace file. A conversion to the native format does not change `source`.
    pub source: SourceFormat,
    /// The path of the file that the trace was read from. The native file does not store this path.
    #[serde(skip)]
    pub path: PathBuf,
    /// The trace's name, for example the name of the workload.
    pub name: Option<String>,
    /// Kernel release, as `uname -r`.
    pub kernel: Option<String>,
    /// The recorded command and its arguments; empty if unknown.
    pub command: Vec<String>,
    /// Time when recording was switched on.
    pub t_on_ns: Option<u64>,
    /// Time when the command started.
    pub t_start_ns: Option<u64>,
    /// Time when the command ended.
    pub t_end_ns: Option<u64>,
    /// Time when recording was switched off.
    pub t_off_ns: Option<u64>,
    /// Number of CPUs, if the source gives this number outside a machine description.
    pub cpus: Option<u32>,
    /// Description of the recorded machine.
    pub machine: Option<Layout>,
    /// The allocator's state before the first event.
    pub before: Option<Snapshot>,
    /// The allocator's state after the last event.
    pub after: Option<Snapshot>,
    /// Samples of page sets by time. Each CPU sampled its own page sets while recording.
    pub samples: Vec<Sample>,
    /// Losses that are known before reading. [`TraceReader::lost`](crate::TraceReader::lost) adds the losses
    /// that are found while reading.
    pub lost: LostEvents,
    /// Number of events. `None` if this number is not known before the file is read.
    pub events: Option<u64>,
    /// Number of frames allocated between `before` and `after`, according to `/proc/vmstat`.
    pub pgalloc_delta: Option<u64>,
    /// Number of frames freed between `before` and `after`, according to `/proc/vmstat`.
    pub pgfree_delta: Option<u64>,
    /// Threads of the recorder. Events of the recorder's threads do not belong to the recorded load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recorder_pids: Vec<u32>,
    /// Names of tasks, if the recorder was asked to keep them. `None` if the file has no names of tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Tasks>,
    /// Tracepoints that were switched on, by the kernel's names. The list is empty if the source does not
    /// name its tracepoints. If a non-empty list lacks a tracepoint, the trace does not show whether this
    /// tracepoint's events happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recorded: Vec<String>,
    /// Kinds of the events in the first 64 KiB of a text. The list is empty for other formats. The native
    /// file does not store this list.
    #[serde(skip)]
    pub kinds_at_start: Vec<EventKind>,
    /// Kernel settings that changed while recording, by time. [`TraceInfo::machine`] has the settings at the
    /// beginning of the recording.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setting_changes: Vec<SettingChange>,
    /// Events and facts that the recorder could not record. Each entry has the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_recorded: Vec<String>,
    /// Assumptions about facts that the file lacks. Each entry is a sentence without its full stop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<String>,
    /// Gaps in the recorded events, by time. If there are very many gaps, the recorder keeps only the first
    /// gaps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
    /// The slowdown of the recorded command by recording. `None` if the slowdown was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording_cost: Option<RecordingCost>,
    /// Busy time of all CPUs together while recording, including the recorder's own time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_ns: Option<u64>,
    /// Cost of zone visits on the recorded machine. `None` if this cost was not measured before the
    /// recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visit_cost: Option<VisitCost>,
    /// The kernel's counts, if they were recorded instead of events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// Names of locks and of the functions that waited for them, if call chains were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_sites: Option<CallSites>,
}

impl TraceInfo {
    /// Sentences about the assumptions for facts that the trace or `machine` lacks. `machine` may come from
    /// another file than the trace.
    #[must_use]
    pub fn assumptions(&self, machine: Option<&Layout>) -> Vec<String> {
        let of_machine = machine.into_iter().flat_map(|machine| &machine.assumed);
        self.assumed.iter().chain(of_machine).map(|sentence| format!("Assumed: {sentence}.")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn information_survives_json() {
        let info = TraceInfo {
            name: Some("tcp".into()),
            command: vec!["netbw".into(), "tcp".into()],
            t_on_ns: Some(1),
            events: Some(3),
            ..TraceInfo::default()
        };
        let json = serde_json::to_string(&info).unwrap();
        assert_eq!(serde_json::from_str::<TraceInfo>(&json).unwrap(), info);
    }

    #[test]
    fn losses_add_up_without_overflow() {
        let lost = LostEvents { overrun: u64::MAX, dropped: 1, ..LostEvents::default() };
        assert_eq!(lost.missing(), u64::MAX);
    }
}
