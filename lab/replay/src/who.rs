//! Shares of processes, control groups and owners in pages, zone visits, waits for zone locks, and changed or
//! mixed pageblocks. Owners are the command, the recorder, interrupts, and the rest.
//!
//! Processes and control groups are known if names were recorded (`record --names`). The figures of the
//! recorded command are known even without names.

use pageset_trace::{Counts, EventKind, Tasks, TraceInfo};
use serde::Serialize;

use crate::recorded::needs;
use crate::{Group, GroupName, RecordedKinds, Survey, TaskShare, TaskTotals};

/// The shares of tasks in the recording's totals, grouped in three ways. A grouping is `None` if the
/// recording lacks the facts for this grouping.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Who {
    /// The shares of the command, of the recorder, of interrupts, and of all other tasks.
    pub by_party: Option<Vec<Part>>,
    /// Shares by the name of the process, sorted by pages, largest number first. Tasks of unknown processes
    /// come last.
    pub by_process: Option<Vec<Part>>,
    /// Shares by control group, sorted by pages, largest number first.
    pub by_cgroup: Option<Vec<Part>>,
    /// The number of tasks that are not in the file, because there were too many tasks. The activity of such
    /// tasks counts as unknown.
    pub tasks_left_out: u64,
    /// Whether events are missing. If the event of a task's fork is missing, the task counts as one of the
    /// other tasks of the machine.
    pub is_incomplete: bool,
}

/// The share that a group of tasks has in the recording's totals. Each percentage is a share of the total of
/// all tasks. A figure is `None` if it was not recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// The tasks.
    pub of: PartOf,
    /// The name of the processes, or the path of the control group. Programs choose these texts, so escape
    /// the name before printing it.
    pub name: Option<String>,
    /// For a process name or a control group, the number of its processes. For any other part, the number of
    /// tasks. Interrupts have 0.
    pub processes: u64,
    /// Number of pages allocated.
    pub allocated_pages: Option<u64>,
    /// The pages of this part, in percent of all allocated pages.
    pub allocated_percent: Option<f64>,
    /// Number of refills and drains of page sets.
    pub visits: Option<u64>,
    /// The visits of this part, in percent of all visits.
    pub visits_percent: Option<f64>,
    /// Number of waits for zone locks.
    pub zone_waits: Option<u64>,
    /// Time of `zone_waits`, in nanoseconds.
    pub zone_wait_ns: Option<u64>,
    /// The time of `zone_waits`, in percent of the time of all waits for zone locks.
    pub zone_wait_percent: Option<f64>,
    /// Number of requests after which a whole pageblock changed its migratetype.
    pub pageblocks_changed: Option<u64>,
    /// Number of requests that took a part of a pageblock of another migratetype, so that the pageblock
    /// became mixed.
    pub pageblocks_mixed: Option<u64>,
    /// The sum of `pageblocks_changed` and `pageblocks_mixed`, in percent of all requests that changed or
    /// mixed a pageblock.
    pub pageblocks_percent: Option<f64>,
}

/// The tasks of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartOf {
    /// The tasks of the process or control group with the name.
    Named,
    /// The recorded command, and all tasks that it started.
    Command,
    /// The recorder.
    Recorder,
    /// All other tasks of the machine.
    Rest,
    /// Interrupts. Events of an interrupt are not counted for the interrupted task.
    Interrupts,
    /// Tasks whose name is not known.
    Unknown,
}

impl Who {
    /// Finds the parts in a survey. `None` if the recording does not distinguish tasks.
    #[must_use]
    pub fn new(info: &TraceInfo, survey: &Survey) -> Option<Self> {
        let (who, known) = match &info.counts {
            Some(counts) => (&of_counts(counts), Known::of_counts(counts)),
            None => (&survey.who, Known::of_events(&survey.recorded)),
        };
        let total = who.total();
        let parts = |groups: Vec<Group>| -> Vec<Part> {
            let groups =
                groups.into_iter().filter(|group| known.interrupts || group.name != GroupName::Interrupts);
            groups.map(|group| Part::new(group, &total, known)).collect()
        };
        let named = info.tasks.as_ref().filter(|tasks| !tasks.all().is_empty());
        let found = Self {
            by_party: who.by_party().map(parts),
            by_process: named.map(|tasks| parts(who.by_process(tasks))),
            by_cgroup: named.map(|tasks| parts(who.by_cgroup(tasks))).filter(|parts| !parts.is_empty()),
            tasks_left_out: named.map_or(0, Tasks::left_out),
            is_incomplete: survey.lost.missing() > 0,
        };
        (found.by_party.is_some() || found.by_process.is_some()).then_some(found)
    }

    /// A sentence with the command's share of all pages, visits and waits.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        let parts = self.by_party.as_ref()?;
        let part = |of: PartOf| parts.iter().find(|part| part.of == of);
        // Recordings of counts have visits, but no pages for each task.
        let knows_pages = part(PartOf::Command)?.allocated_percent.is_some();
        let share = |of: PartOf| {
            let part = part(of)?;
            if knows_pages { part.allocated_percent } else { part.visits_percent }
        };
        let what = if knows_pages { "pages" } else { "visits" };
        let visits = part(PartOf::Command)?.visits_percent.filter(|_| knows_pages);
        let visits =
            visits.map_or_else(String::new, |percent| format!(" and {} of the visits", whole(percent)));
        let mut said = format!(
            "The command and its children took {} of the {what}{visits}; the rest of the machine took {} of the {what}",
            whole(share(PartOf::Command)?),
            whole(share(PartOf::Rest)?)
        );
        for (of, who) in [(PartOf::Interrupts, "interrupts"), (PartOf::Recorder, "the recorder")] {
            if let Some(percent) = share(of).filter(|percent| *percent > 0.0) {
                said += &format!(", {who} {}", whole(percent));
            }
        }
        Some(said + ".")
    }
}

/// If fewer visits than this number were recorded one by one, shares in visits are reported neither for tasks
/// nor for call sites. Such shares could be wrong by more than 10 percentage points.
pub(crate) const VISITS_MIN: u64 = 25;

/// The figures that a recording has for each task.
#[derive(Clone, Copy, Debug)]
struct Known {
    pages: bool,
    visits: bool,
    waits: bool,
    pageblocks: bool,
    interrupts: bool,
}

impl Known {
    fn of_events(recorded: &RecordedKinds) -> Self {
        Self {
            pages: recorded.has(needs::ALLOCATIONS),
            visits: recorded.has(needs::VISITS),
            waits: recorded.has(needs::ZONE_WAITS),
            pageblocks: recorded.has(&[EventKind::MmPageAllocExtfrag]),
            interrupts: true,
        }
    }

    /// The figures in a recording of counts: visits and waits for zone locks of each task.
    fn of_counts(counts: &Counts) -> Self {
        let visits = counts.visits.is_some() && counts.visits_counted >= VISITS_MIN;
        let waits = counts.zone_waits.is_some();
        Self { pages: false, visits, waits, pageblocks: false, interrupts: false }
    }
}

/// The totals of tasks in a recording of counts.
fn of_counts(counts: &Counts) -> crate::Who {
    let mut who = crate::Who { is_command_known: counts.is_command_known, ..crate::Who::default() };
    for task in &counts.tasks {
        let totals = TaskTotals {
            visits: task.visits,
            waits: task.waits,
            wait_ns: task.wait_ns,
            ..TaskTotals::default()
        };
        match task.tid {
            // The kernel reuses task numbers; take the last task with the number.
            Some(tid) => who.tasks.push(TaskShare { tid, first_ns: u64::MAX, party: task.party, totals }),
            None => who.unlisted.add(&totals),
        }
    }
    who
}

/// Returns a part in percent of the whole. `None` if the whole is 0.
#[must_use]
pub fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64 * 100.0)
}

/// Writes a percentage as a whole number. A small share is not printed as zero.
fn whole(percent: f64) -> String {
    if percent > 0.0 && percent < 1.0 { "less than 1 %".to_owned() } else { format!("{percent:.0} %") }
}

impl Part {
    fn new(group: Group, total: &TaskTotals, known: Known) -> Self {
        let totals = group.totals;
        let (of, name) = match group.name {
            GroupName::Named(name) => (PartOf::Named, Some(name)),
            GroupName::Command => (PartOf::Command, None),
            GroupName::Recorder => (PartOf::Recorder, None),
            GroupName::Rest => (PartOf::Rest, None),
            GroupName::Interrupts => (PartOf::Interrupts, None),
            GroupName::Unknown => (PartOf::Unknown, None),
        };
        let of_kind = |is_known: bool, count: u64| is_known.then_some(count);
        let share =
            |is_known: bool, part: u64, whole: u64| if is_known { percent(part, whole) } else { None };
        let Known { pages, visits, waits, pageblocks, .. } = known;
        Self {
            of,
            name,
            processes: group.processes,
            allocated_pages: of_kind(pages, totals.allocated_pages),
            allocated_percent: share(pages, totals.allocated_pages, total.allocated_pages),
            visits: of_kind(visits, totals.visits),
            visits_percent: share(visits, totals.visits, total.visits),
            zone_waits: of_kind(waits, totals.waits),
            zone_wait_ns: of_kind(waits, totals.wait_ns),
            zone_wait_percent: share(waits, totals.wait_ns, total.wait_ns),
            pageblocks_changed: of_kind(pageblocks, totals.pageblocks_changed),
            pageblocks_mixed: of_kind(pageblocks, totals.pageblocks_mixed),
            pageblocks_percent: share(pageblocks, totals.pageblocks(), total.pageblocks()),
        }
    }

    /// Adds another part, and removes the name, because the sum belongs to several processes or control
    /// groups.
    pub fn add(&mut self, other: &Self) {
        fn sum<T: std::ops::Add<Output = T> + Copy>(a: &mut Option<T>, b: Option<T>) {
            *a = a.zip(b).map(|(a, b)| a + b);
        }
        self.name = None;
        self.processes += other.processes;
        sum(&mut self.allocated_pages, other.allocated_pages);
        sum(&mut self.allocated_percent, other.allocated_percent);
        sum(&mut self.visits, other.visits);
        sum(&mut self.visits_percent, other.visits_percent);
        sum(&mut self.zone_waits, other.zone_waits);
        sum(&mut self.zone_wait_ns, other.zone_wait_ns);
        sum(&mut self.zone_wait_percent, other.zone_wait_percent);
        sum(&mut self.pageblocks_changed, other.pageblocks_changed);
        sum(&mut self.pageblocks_mixed, other.pageblocks_mixed);
        sum(&mut self.pageblocks_percent, other.pageblocks_percent);
    }
}

#[cfg(test)]
mod tests {
    use pageset_trace::{
        CountedTask, HitEstimate, LostEvents, NativeWriter, OpenOptions, Party, TaskBook, WriteOptions,
    };

    use super::*;
    use crate::{SurveyOptions, survey};

    fn part(of: PartOf, percent: f64) -> Part {
        Part {
            of,
            name: None,
            processes: 1,
            allocated_pages: Some(1),
            allocated_percent: Some(percent),
            visits: None,
            visits_percent: Some(percent / 2.0),
            zone_waits: None,
            zone_wait_ns: None,
            zone_wait_percent: None,
            pageblocks_changed: None,
            pageblocks_mixed: None,
            pageblocks_percent: None,
        }
    }

    #[test]
    fn the_commands_part_is_a_sentence() {
        let parts = [
            part(PartOf::Command, 90.0),
            part(PartOf::Recorder, 0.2),
            part(PartOf::Interrupts, 0.0),
            part(PartOf::Rest, 9.8),
        ];
        let who = Who {
            by_party: Some(parts.to_vec()),
            by_process: None,
            by_cgroup: None,
            tasks_left_out: 0,
            is_incomplete: false,
        };
        assert_eq!(
            who.sentence().unwrap(),
            "The command and its children took 90 % of the pages and 45 % of the visits; the rest of the machine took 10 % of \
             the pages, the recorder less than 1 %."
        );
        assert_eq!(Who { by_party: None, ..who }.sentence(), None);
    }

    #[test]
    fn counts_know_visits_and_no_pages() {
        let counts = Counts {
            visits: Some(HitEstimate { low: 50, hits: 100, high: 200 }),
            visits_counted: VISITS_MIN,
            is_command_known: true,
            tasks: [(Some(7), Party::Command, 75), (Some(8), Party::Rest, 20), (None, Party::Rest, 5)]
                .map(|(tid, party, visits)| CountedTask { tid, party, visits, waits: 0, wait_ns: 0 })
                .to_vec(),
            ..Counts::default()
        };
        let mut book = TaskBook::default();
        book.add(7, 7, 0, b"make");
        let info = TraceInfo { counts: Some(counts), tasks: Some(book.into_tasks()), ..TraceInfo::default() };
        let mut writer = NativeWriter::new(Vec::new(), &info, WriteOptions::new()).unwrap();
        writer.write(&[]).unwrap();
        let (bytes, _) = writer.finish(LostEvents::default()).unwrap();
        let mut reader = OpenOptions::new().open_bytes("t.pgtrace".as_ref(), bytes).unwrap();
        let survey = survey(reader.as_mut(), &SurveyOptions::default(), |_| ()).unwrap();
        let who = Who::new(&info, &survey).unwrap();
        let said = who.sentence().unwrap();
        assert_eq!(
            said,
            "The command and its children took 75 % of the visits; the rest of the machine took 25 % of the visits."
        );
        let processes = who.by_process.unwrap();
        let shown: Vec<_> = processes.iter().map(|part| (part.name.as_deref(), part.visits)).collect();
        assert_eq!(shown, [(Some("make"), Some(75)), (None, Some(25))]);
        assert!(processes.iter().all(|part| part.allocated_pages.is_none() && part.zone_wait_ns.is_none()));
        let mut few = info;
        few.counts.as_mut().unwrap().visits_counted = VISITS_MIN - 1;
        assert_eq!(
            Who::new(&few, &survey).unwrap().sentence(),
            None,
            "expected no sentence about shares, because too few visits were seen"
        );
    }

    #[test]
    fn what_is_unknown_of_one_is_unknown_of_both() {
        let mut both = part(PartOf::Named, 10.0);
        both.add(&Part { visits: Some(3), ..part(PartOf::Named, 5.0) });
        assert_eq!((both.allocated_pages, both.visits, both.processes), (Some(2), None, 2));
    }
}
