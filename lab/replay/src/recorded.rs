//! Which kinds of events were recorded. If a figure needs a kind of event that was not recorded, the figure
//! is unknown, not zero.
//!
//! A recording of `pageset record` names its tracepoints, and a `perf.data` names its tracepoints too. Text
//! does not name its tracepoints. In text, an event of a kind shows that the kind was recorded. If a text has
//! no event of a kind, it is unknown whether the kind was recorded.

use pageset_trace::{Event, EventKind, SourceFormat, TraceError, TraceInfo, TraceReader};

/// Whether events of a kind were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// Events of the kind were recorded. If the recording has no event of the kind, no such event happened.
    Yes,
    /// Events of the kind were not recorded.
    No,
    /// The recording has no event of this kind, and does not tell whether the kind was recorded.
    Unknown,
}

/// Whether each kind of event was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedKinds([Recorded; EventKind::COUNT]);

/// All kinds are unknown, as in a recording that was not read.
impl Default for RecordedKinds {
    fn default() -> Self {
        Self([Recorded::Unknown; EventKind::COUNT])
    }
}

/// The number of events of each kind, by [`EventKind::index`].
pub type KindCounts = [u64; EventKind::COUNT];

/// The kinds of events that each figure needs.
pub mod needs {
    use pageset_trace::EventKind::{
        self, ContentionBegin, ContentionEnd, DirectReclaimBegin, KswapdWake, MmPageAlloc,
        MmPageAllocZoneLocked, MmPageFree, MmPageFreeBatched, MmPagePcpuDrain,
    };

    /// Allocations.
    pub const ALLOCATIONS: &[EventKind] = &[MmPageAlloc];
    /// Frees.
    pub const FREES: &[EventKind] = &[MmPageFree];
    /// The load: allocations and frees.
    pub const LOAD: &[EventKind] = &[MmPageAlloc, MmPageFree];
    /// Pages that left the zones.
    pub const ZONE_PAGES: &[EventKind] = &[MmPageAllocZoneLocked];
    /// Each single refill. The kinds include allocations, because the event of an allocation shows where a
    /// refill ends.
    pub const REFILLS: &[EventKind] = &[MmPageAlloc, MmPageAllocZoneLocked];
    /// Each single drain. The kinds include allocations and frees, because the event of an allocation or free
    /// lies between two drains.
    pub const DRAINS: &[EventKind] = &[MmPageAlloc, MmPageFree, MmPageFreeBatched, MmPagePcpuDrain];
    /// Each single refill and drain. The events of refills and drains also show how long zone locks were
    /// held.
    pub const VISITS: &[EventKind] =
        &[MmPageAlloc, MmPageFree, MmPageFreeBatched, MmPagePcpuDrain, MmPageAllocZoneLocked];
    /// Waits for locks.
    pub const WAITS: &[EventKind] = &[ContentionBegin, ContentionEnd];
    /// Waits for zone locks. The kinds include moves of blocks, because the waiter's next event shows whether
    /// the lock is a zone lock.
    pub const ZONE_WAITS: &[EventKind] = &[
        MmPageAlloc,
        MmPageFree,
        MmPageFreeBatched,
        MmPagePcpuDrain,
        MmPageAllocZoneLocked,
        ContentionBegin,
        ContentionEnd,
    ];
    /// Whether memory was short.
    pub const SHORTAGE: &[EventKind] = &[KswapdWake, DirectReclaimBegin];
}

/// Kinds of events that this project's recorders record only on request, or that few kernels have.
const NOT_ALWAYS: [EventKind; 3] =
    [EventKind::PageFaultUser, EventKind::MmPagePcpuRefill, EventKind::ContendedRelease];

/// The kinds of bulk allocations. These kinds are recorded by kprobes, which some kernels do not have.
const BULK: [EventKind; 2] = [EventKind::BulkAllocEntry, EventKind::BulkAllocReturn];

impl RecordedKinds {
    /// Makes the table from a recording's description of itself, and from the number of its events of each
    /// kind.
    #[must_use]
    pub fn new(info: &TraceInfo, counts: &KindCounts) -> Self {
        Self(EventKind::ALL.map(|kind| match announced(info, kind, counts) {
            _ if counts[kind.index()] > 0 => Recorded::Yes,
            Some(true) => Recorded::Yes,
            Some(false) => Recorded::No,
            None => Recorded::Unknown,
        }))
    }

    /// Reads the first block of events. Makes the table from these events, and from the recording's
    /// description of itself.
    ///
    /// # Errors
    /// An error if the recording cannot be read.
    pub fn at_the_start<R: TraceReader>(reader: &mut R) -> Result<Self, TraceError> {
        let (mut events, mut counts) = (Vec::new(), [0; EventKind::COUNT]);
        reader.read_block(&mut events)?;
        count(&mut counts, &events);
        Ok(Self::new(reader.info(), &counts))
    }

    /// All kinds were recorded.
    #[cfg(test)]
    pub(crate) const fn all() -> Self {
        Self([Recorded::Yes; EventKind::COUNT])
    }

    /// Makes the table without reading an event. For a text, the table has the kinds of its first 64 KiB.
    /// `None` if neither the beginning of a text nor a list of tracepoints shows the kinds.
    #[must_use]
    pub fn when_opened(info: &TraceInfo) -> Option<Self> {
        let mut counts = [0; EventKind::COUNT];
        info.kinds_at_start.iter().for_each(|kind| counts[kind.index()] = 1);
        let is_known = !info.kinds_at_start.is_empty() || !info.recorded.is_empty();
        is_known.then(|| Self::new(info, &counts))
    }

    /// Whether events of this kind were recorded.
    #[must_use]
    pub const fn of(&self, kind: EventKind) -> Recorded {
        self.0[kind.index()]
    }

    /// Whether all of these kinds are known to be recorded.
    #[must_use]
    pub fn has(&self, needed: &[EventKind]) -> bool {
        needed.iter().all(|kind| self.of(*kind) == Recorded::Yes)
    }

    /// Returns `figure`, which was made from events of these kinds. The result is `None` if one of the kinds
    /// is not known to be recorded.
    #[must_use]
    pub fn known<T>(&self, needed: &[EventKind], figure: T) -> Option<T> {
        self.has(needed).then_some(figure)
    }

    /// The kinds among `needed` that are not known to be recorded.
    #[must_use]
    pub fn lacking(&self, needed: &[EventKind]) -> Vec<EventKind> {
        needed.iter().copied().filter(|kind| self.of(*kind) != Recorded::Yes).collect()
    }

    /// A sentence with the missing kinds, and how to record these kinds; `None` if no kind is missing.
    #[must_use]
    pub fn unsaid(&self, needed: &[EventKind]) -> Option<String> {
        self.unsaid_beside(needed, &[])
    }

    /// Does the same as [`RecordedKinds::unsaid`]. The sentence also says how to record the missing kinds of
    /// `others`.
    #[must_use]
    pub fn unsaid_beside(&self, needed: &[EventKind], others: &[EventKind]) -> Option<String> {
        let lacking = self.lacking(needed);
        let all = [lacking.as_slice(), &self.lacking(others)].concat();
        (!lacking.is_empty()).then(|| format!("It has no {}; {}.", self.absent(&lacking), remedy(&all)))
    }

    /// The missing kinds in words. If the recording does not say which kinds were switched on, the words say
    /// that too.
    fn absent(&self, lacking: &[EventKind]) -> String {
        let is_known = lacking.iter().any(|kind| self.of(*kind) == Recorded::No);
        let why = if is_known { "" } else { ": none happened, or they were not switched on" };
        format!("{} events{why}", listed(lacking))
    }

    /// Requires that the kinds `needed` were recorded.
    ///
    /// An error if a kind is not known to be recorded. The error names the missing kinds, and says how to
    /// record them.
    pub fn require(&self, needed: &[EventKind], info: &TraceInfo) -> Result<(), TraceError> {
        let lacking = self.lacking(needed);
        if lacking.is_empty() {
            return Ok(());
        }
        if info.counts.is_some() {
            let problem = "it has no events, only counts, which `pageset stat` and `pageset advise` print";
            let remedy = "record the load again without --counts".to_owned();
            return Err(TraceError::File { path: info.path.clone(), problem: problem.to_owned(), remedy });
        }
        let problem = format!("This recording does not say. It has no {}", self.absent(&lacking));
        Err(TraceError::File { path: info.path.clone(), problem, remedy: remedy(&lacking) })
    }
}

/// Says that a recording does not describe its machine.
pub const NO_LAYOUT: &str = "This recording does not say how memory is laid out (give `--layout`)";

/// Makes the error for a recording that does not describe its machine. The error names the kinds that replays
/// need and that the beginning of the recording does not have. The kinds of a text and of a recording that
/// names its tracepoints are known when it is open. Of other recordings, the first events are read.
pub(crate) fn no_layout<R: TraceReader>(reader: &mut R) -> TraceError {
    if let Some(kinds) = RecordedKinds::when_opened(reader.info()) {
        return kinds.no_layout(reader.info());
    }
    match RecordedKinds::at_the_start(reader) {
        Ok(kinds) => kinds.no_layout(reader.info()),
        Err(error) => error,
    }
}

impl RecordedKinds {
    /// Makes the error for a recording that does not describe its machine, from the events that were read so
    /// far.
    pub(crate) fn no_layout(&self, info: &TraceInfo) -> TraceError {
        let lacking = self.lacking(needs::VISITS);
        let (mut problem, mut remedy_of_all) = (NO_LAYOUT.to_owned(), String::new());
        if !lacking.is_empty() && info.counts.is_none() {
            problem += &format!(". As far as it was read, it has no {}", self.absent(&lacking));
            remedy_of_all = format!("{}; ", remedy(&lacking));
        }
        let path = info.path.display();
        remedy_of_all += &format!("`pageset convert {path} OUT.pgtrace --layout FILE` adds a layout");
        TraceError::File { path: info.path.clone(), problem, remedy: remedy_of_all }
    }
}

fn listed(kinds: &[EventKind]) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    match names.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}

fn remedy(lacking: &[EventKind]) -> String {
    let is_lacking = |(kinds, _): &&(&[EventKind], &str)| lacking.iter().any(|kind| kinds.contains(kind));
    let groups: Vec<&str> = GROUPS.iter().filter(is_lacking).map(|(_, group)| *group).collect();
    format!("record them with `pageset record`, or with `perf record -a -e {}`", groups.join(" -e "))
}

/// Arguments for `perf record -e`, each with kinds that it records. If a recording lacks one of these kinds,
/// the message recommends the whole argument, because other figures need the argument's other kinds.
const GROUPS: [(&[EventKind], &str); 3] = [
    (needs::VISITS, "'kmem:mm_page_*'"),
    (needs::WAITS, "'lock:contention_*'"),
    (needs::SHORTAGE, "'vmscan:mm_vmscan_kswapd_*' -e 'vmscan:mm_vmscan_direct_*'"),
];

/// Whether a recording's description says that a kind was recorded; `None` if the description does not say. A
/// recording of counts has no events.
fn announced(info: &TraceInfo, kind: EventKind, counts: &KindCounts) -> Option<bool> {
    if info.counts.is_some() {
        return Some(false);
    }
    if !info.recorded.is_empty() {
        return Some(info.recorded.iter().any(|name| name == kind.name()));
    }
    // Without a list of missing events, the recording may come from a kernel without kprobes.
    if BULK.contains(&kind) && info.not_recorded.is_empty() {
        return None;
    }
    // Older recorders of this project did not list the recorded kinds. Older recorders recorded all kinds
    // except `NOT_ALWAYS`, and began with a snapshot. A snapshot therefore shows that an older recorder made
    // the recording.
    let is_ours = matches!(info.source, SourceFormat::Native | SourceFormat::Pcpt) && info.before.is_some();
    if !is_ours || NOT_ALWAYS.contains(&kind) {
        return None;
    }
    // Some older recorders recorded neither beginnings nor ends of waits. If only beginnings are missing, the
    // recorder recorded waits, and a filter removed their beginnings.
    if needs::WAITS.contains(&kind) && needs::WAITS.iter().all(|kind| counts[kind.index()] == 0) {
        return None;
    }
    let is_named = |what: &String| {
        let name = what.split(": ").next().unwrap_or_default();
        match kind {
            EventKind::BulkAllocEntry | EventKind::BulkAllocReturn => name == "bulk allocations",
            _ => name.rsplit(':').next() == Some(kind.name()),
        }
    };
    Some(!info.not_recorded.iter().any(is_named))
}

/// Counts events by kind.
pub(crate) fn count(counts: &mut KindCounts, events: &[Event]) {
    events.iter().for_each(|event| counts[event.kind.index()] += 1);
}

#[cfg(test)]
mod tests {
    use pageset_trace::Snapshot;

    use super::*;
    use EventKind::{
        ContentionBegin, ContentionEnd, KswapdWake, MmPageAlloc, MmPageFree, MmPagePcpuDrain, PageFaultUser,
    };

    fn counts(kinds: &[EventKind]) -> KindCounts {
        let mut counts = [0; EventKind::COUNT];
        kinds.iter().for_each(|kind| counts[kind.index()] = 5);
        counts
    }

    #[test]
    fn text_shows_what_was_recorded_by_one_event_of_its_kind() {
        let info = TraceInfo { source: SourceFormat::Ftrace, ..TraceInfo::default() };
        let kinds = RecordedKinds::new(&info, &counts(&[MmPageAlloc]));
        assert_eq!((kinds.of(MmPageAlloc), kinds.of(MmPageFree)), (Recorded::Yes, Recorded::Unknown));
        assert_eq!((kinds.known(needs::ALLOCATIONS, 7), kinds.known(needs::LOAD, 7)), (Some(7), None));
    }

    #[test]
    fn a_recording_that_names_its_tracepoints_is_believed() {
        let info = TraceInfo { recorded: vec!["mm_page_free".to_owned()], ..TraceInfo::default() };
        let kinds = RecordedKinds::new(&info, &counts(&[MmPageAlloc]));
        let found = [MmPageAlloc, MmPageFree, MmPagePcpuDrain].map(|kind| kinds.of(kind));
        assert_eq!(found, [Recorded::Yes, Recorded::Yes, Recorded::No]);
    }

    #[test]
    fn older_files_of_the_recorder_have_all_kinds_but_those_they_name() {
        let not_recorded = vec!["vmscan:mm_vmscan_kswapd_wake: this kernel does not have it".to_owned()];
        let info = TraceInfo { before: Some(Snapshot::default()), not_recorded, ..TraceInfo::default() };
        let kinds = RecordedKinds::new(&info, &counts(&[]));
        let found = [MmPagePcpuDrain, KswapdWake, ContentionEnd, PageFaultUser].map(|kind| kinds.of(kind));
        assert_eq!(found, [Recorded::Yes, Recorded::No, Recorded::Unknown, Recorded::Unknown]);
        let with_ends = RecordedKinds::new(&info, &counts(&[ContentionEnd]));
        assert_eq!(with_ends.of(ContentionBegin), Recorded::Yes, "the other end of a wait");
        let written = TraceInfo { before: None, ..info };
        assert_eq!(RecordedKinds::new(&written, &counts(&[])).of(MmPagePcpuDrain), Recorded::Unknown);
    }

    #[test]
    fn a_missing_layout_is_said_together_with_the_missing_kinds() {
        let info = TraceInfo { path: "t.txt".into(), source: SourceFormat::Ftrace, ..TraceInfo::default() };
        let said = |kinds| RecordedKinds::new(&info, &counts(kinds)).no_layout(&info).to_string();
        assert_eq!(
            said(needs::VISITS),
            format!("t.txt: {NO_LAYOUT}; `pageset convert t.txt OUT.pgtrace --layout FILE` adds a layout")
        );
        let lacking = said(needs::LOAD);
        let kinds = "mm_page_free_batched, mm_page_pcpu_drain and mm_page_alloc_zone_locked events: none happened, or they were \
             not switched on; record them";
        assert!(
            lacking.starts_with(&format!("t.txt: {NO_LAYOUT}. ")) && lacking.contains(kinds),
            "{lacking}"
        );
    }

    #[test]
    fn what_is_missing_is_said_with_the_command_that_records_it() {
        let kinds = RecordedKinds::new(&TraceInfo::default(), &counts(&[MmPageAlloc]));
        let said = kinds.unsaid(needs::LOAD).unwrap();
        assert_eq!(
            said,
            "It has no mm_page_free events: none happened, or they were not switched on; record them with \
             `pageset record`, or with `perf record -a -e 'kmem:mm_page_*'`."
        );
        let named = TraceInfo { recorded: vec!["mm_page_alloc".to_owned()], ..TraceInfo::default() };
        let said = RecordedKinds::new(&named, &counts(&[MmPageAlloc])).unsaid(needs::LOAD).unwrap();
        assert!(!said.contains("none happened"), "the recording names what was switched on: {said}");
        let all = [needs::LOAD, needs::WAITS].concat();
        let said = kinds.unsaid(&all).unwrap();
        assert!(said.contains("mm_page_free, contention_begin and contention_end events"), "{said}");
        assert!(said.contains("-a -e 'kmem:mm_page_*' -e 'lock:contention_*'`"), "{said}");
        assert_eq!(kinds.unsaid(needs::ALLOCATIONS), None);
    }
}
