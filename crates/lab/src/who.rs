//! Who it was: pages, visits to zones, waits for their locks and spoilt pageblocks, by process, by control group, and by whose
//! tasks they are.
//!
//! Processes and control groups are known where the recorder was asked for names (`record --names`). The command's part is
//! known without names.

use pageset_trace::{EventKind, Tasks, TraceInfo};
use pageset_workload::recorded::needs;
use pageset_workload::{Group, GroupName, Survey, TaskTotals};
use serde::Serialize;

/// What tasks did, put together in three ways. A way that the recording does not allow is `None`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Who {
    /// The command's part, the recorder's, that of interrupts, and the rest of the machine's.
    pub by_party: Option<Vec<Part>>,
    /// By the name of the process, most pages first, and what is unknown at the end.
    pub by_process: Option<Vec<Part>>,
    /// The same by control group.
    pub by_cgroup: Option<Vec<Part>>,
    /// Tasks that were too many for the file: they are among the unknown.
    pub tasks_left_out: u64,
}

/// What some tasks did. Percentages are of all tasks together. What the recording does not say is `None`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// Whose part it is.
    pub of: PartOf,
    /// The name of the processes, or the path of the control group: whatever they call themselves. Print it through an escape.
    pub name: Option<String>,
    /// Processes; where their names are not known, tasks.
    pub processes: u64,
    /// Pages allocated.
    pub allocated_pages: Option<u64>,
    /// Their share.
    pub allocated_percent: Option<f64>,
    /// Refills and drains of page sets.
    pub visits: Option<u64>,
    /// Their share.
    pub visits_percent: Option<f64>,
    /// Waits for zone locks.
    pub zone_waits: Option<u64>,
    /// Their time.
    pub zone_wait_ns: Option<u64>,
    /// The share of their time.
    pub zone_wait_percent: Option<f64>,
    /// Requests after which a whole pageblock changed its migratetype.
    pub pageblocks_changed: Option<u64>,
    /// Requests that took a part of a pageblock of another migratetype, which is mixed since.
    pub pageblocks_mixed: Option<u64>,
    /// The share of both.
    pub pageblocks_percent: Option<f64>,
}

/// Whose part it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartOf {
    /// What has the name.
    Named,
    /// The recorded command, and all that it started.
    Command,
    /// The recorder.
    Recorder,
    /// All other tasks of the machine.
    Rest,
    /// Interrupts, whatever task they interrupted.
    Interrupts,
    /// Tasks whose name is not known.
    Unknown,
}

impl Who {
    /// What a survey found, by what the recording says about itself. `None` if the recording tells no task from another.
    #[must_use]
    pub fn new(info: &TraceInfo, survey: &Survey) -> Option<Self> {
        let who = &survey.who;
        let total = who.total();
        let parts = |groups: Vec<Group>| -> Vec<Part> {
            groups.into_iter().map(|group| Part::new(group, &total, survey)).collect()
        };
        let named = info.tasks.as_ref().filter(|tasks| !tasks.all().is_empty());
        let found = Self {
            by_party: who.by_party().map(parts),
            by_process: named.map(|tasks| parts(who.by_process(tasks))),
            by_cgroup: named.map(|tasks| parts(who.by_cgroup(tasks))).filter(|parts| !parts.is_empty()),
            tasks_left_out: named.map_or(0, Tasks::left_out),
        };
        (found.by_party.is_some() || found.by_process.is_some()).then_some(found)
    }

    /// How much of what was seen is the command's, as a sentence.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        let parts = self.by_party.as_ref()?;
        let part = |of: PartOf| parts.iter().find(|part| part.of == of);
        let pages = |of: PartOf| part(of)?.allocated_percent;
        let visits = part(PartOf::Command)?.visits_percent;
        let visits =
            visits.map_or_else(String::new, |percent| format!(" and {} of the visits", whole(percent)));
        let mut said = format!(
            "The command and its children took {} of the pages{visits}; the rest of the machine took {} of the pages",
            whole(pages(PartOf::Command)?),
            whole(pages(PartOf::Rest)?)
        );
        for (of, who) in [(PartOf::Interrupts, "interrupts"), (PartOf::Recorder, "the recorder")] {
            if let Some(percent) = pages(of).filter(|percent| *percent > 0.0) {
                said += &format!(", {who} {}", whole(percent));
            }
        }
        Some(said + ".")
    }
}

/// A percentage in words. What is little is no zero.
fn whole(percent: f64) -> String {
    if percent > 0.0 && percent < 1.0 { "less than 1 %".to_owned() } else { format!("{percent:.0} %") }
}

impl Part {
    fn new(group: Group, total: &TaskTotals, survey: &Survey) -> Self {
        let (totals, recorded) = (group.totals, &survey.recorded);
        let (of, name) = match group.name {
            GroupName::Named(name) => (PartOf::Named, Some(name)),
            GroupName::Command => (PartOf::Command, None),
            GroupName::Recorder => (PartOf::Recorder, None),
            GroupName::Rest => (PartOf::Rest, None),
            GroupName::Interrupts => (PartOf::Interrupts, None),
            GroupName::Unknown => (PartOf::Unknown, None),
        };
        let of_kind = |needed: &[EventKind], count: u64| recorded.known(needed, count);
        let share = |needed: &[EventKind], part: u64, whole: u64| {
            let percent = (whole > 0).then(|| part as f64 / whole as f64 * 100.0);
            percent.and_then(|percent| recorded.known(needed, percent))
        };
        let extfrag = &[EventKind::MmPageAllocExtfrag];
        Self {
            of,
            name,
            processes: group.processes,
            allocated_pages: of_kind(needs::ALLOCATIONS, totals.allocated_pages),
            allocated_percent: share(needs::ALLOCATIONS, totals.allocated_pages, total.allocated_pages),
            visits: of_kind(needs::VISITS, totals.visits),
            visits_percent: share(needs::VISITS, totals.visits, total.visits),
            zone_waits: of_kind(needs::ZONE_WAITS, totals.waits),
            zone_wait_ns: of_kind(needs::ZONE_WAITS, totals.wait_ns),
            zone_wait_percent: share(needs::ZONE_WAITS, totals.wait_ns, total.wait_ns),
            pageblocks_changed: of_kind(extfrag, totals.pageblocks_changed),
            pageblocks_mixed: of_kind(extfrag, totals.pageblocks_mixed),
            pageblocks_percent: share(extfrag, totals.pageblocks(), total.pageblocks()),
        }
    }

    /// Adds another part to this one, which has no name then.
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
    use super::*;

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
        let who =
            Who { by_party: Some(parts.to_vec()), by_process: None, by_cgroup: None, tasks_left_out: 0 };
        assert_eq!(
            who.sentence().unwrap(),
            "The command and its children took 90 % of the pages and 45 % of the visits; the rest of the machine took 10 % of \
             the pages, the recorder less than 1 %."
        );
        assert_eq!(Who { by_party: None, ..who }.sentence(), None);
    }

    #[test]
    fn what_is_unknown_of_one_is_unknown_of_both() {
        let mut both = part(PartOf::Named, 10.0);
        both.add(&Part { visits: Some(3), ..part(PartOf::Named, 5.0) });
        assert_eq!((both.allocated_pages, both.visits, both.processes), (Some(2), None, 2));
    }
}
