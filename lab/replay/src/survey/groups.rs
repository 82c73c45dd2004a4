//! Groups tasks by the name of their process, by control group, or by owner.

use std::collections::{HashMap, HashSet};

use pageset_trace::{Party, Task, TaskIndex, Tasks};

use super::who::{TaskShare, TaskTotals, Who};

/// The name of a group of tasks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GroupName {
    /// The name of a process, or the path of a control group. Programs choose these texts, so a text may
    /// contain control characters.
    Named(String),
    /// The recorded command's tasks.
    Command,
    /// The recorder's tasks.
    Recorder,
    /// All other tasks.
    Rest,
    /// Interrupts. Events of an interrupt are not counted for the interrupted task.
    Interrupts,
    /// Tasks whose name is not known.
    Unknown,
}

/// Tasks with the same process name, control group or owner, and the totals of these tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The name that all tasks of the group share.
    pub name: GroupName,
    /// The number of processes. If names are not known, the number of tasks.
    pub processes: u64,
    /// The totals of these tasks.
    pub totals: TaskTotals,
}

/// The first letters of the names of kernel threads that run work items of any kind. The other letters of a
/// worker's name do not show the kind of work, so all workers form one group.
const KERNEL_WORKERS: &str = "kworker/";

impl Who {
    /// Groups by the name of the process, sorted by pages, largest number first. Tasks of unknown processes
    /// come last.
    #[must_use]
    pub fn by_process(&self, tasks: &Tasks) -> Vec<Group> {
        let index = tasks.index();
        self.grouped(|share| {
            let task = index.find(share.tid, share.first_ns)?;
            let name = index.process_name(task)?;
            let is_worker = name.starts_with(KERNEL_WORKERS);
            let name = if is_worker { KERNEL_WORKERS.trim_end_matches('/') } else { name };
            Some((name.to_owned(), process(&index, task)))
        })
    }

    /// Groups by control group, sorted by pages, largest number first. Tasks of unknown groups come last.
    /// Empty if no control group is known.
    #[must_use]
    pub fn by_cgroup(&self, tasks: &Tasks) -> Vec<Group> {
        if !tasks.has_cgroups() {
            return Vec::new();
        }
        let index = tasks.index();
        self.grouped(|share| {
            let task = index.find(share.tid, share.first_ns)?;
            Some((tasks.cgroup(task)?.to_owned(), process(&index, task)))
        })
    }

    /// The totals of four groups: the command, the recorder, interrupts, and the rest of the machine. `None`
    /// if the command's tasks are not known.
    #[must_use]
    pub fn by_party(&self) -> Option<Vec<Group>> {
        if !self.is_command_known {
            return None;
        }
        let of = |party: Party, name: GroupName| {
            let mut group = Group { name, processes: 0, totals: TaskTotals::default() };
            for task in self.tasks.iter().filter(|task| task.party == party) {
                group.processes += 1;
                group.totals.add(&task.totals);
            }
            group
        };
        let mut rest = of(Party::Rest, GroupName::Rest);
        rest.totals.add(&self.unlisted);
        Some(vec![
            of(Party::Command, GroupName::Command),
            of(Party::Recorder, GroupName::Recorder),
            Group { name: GroupName::Interrupts, processes: 0, totals: self.interrupts },
            rest,
        ])
    }

    /// Sums up tasks by group. `name` returns a task's group, and its process.
    fn grouped(&self, name: impl Fn(&TaskShare) -> Option<(String, (u32, u64))>) -> Vec<Group> {
        let mut groups: HashMap<String, (TaskTotals, HashSet<(u32, u64)>)> = HashMap::new();
        let mut unknown = Group { name: GroupName::Unknown, processes: 0, totals: self.unlisted };
        for share in &self.tasks {
            match name(share) {
                Some((name, process)) => {
                    let (totals, processes) = groups.entry(name).or_default();
                    totals.add(&share.totals);
                    processes.insert(process);
                }
                None => {
                    unknown.processes += 1;
                    unknown.totals.add(&share.totals);
                }
            }
        }
        let named = groups.into_iter().map(|(name, (totals, processes))| Group {
            name: GroupName::Named(name),
            processes: processes.len() as u64,
            totals,
        });
        let interrupts = Group { name: GroupName::Interrupts, processes: 0, totals: self.interrupts };
        let mut all: Vec<Group> = named.chain([interrupts]).collect();
        all.retain(|group| group.totals != TaskTotals::default());
        all.sort_by(|a, b| {
            let size = |group: &Group| (group.totals.allocated_pages, group.totals.visits);
            size(b).cmp(&size(a)).then_with(|| a.name.cmp(&b.name))
        });
        // Add the group of unknown names even if its total is 0. A total of 0 shows that all names are known.
        all.push(unknown);
        all
    }
}

/// Identifies a process by its number and its start time.
fn process(index: &TaskIndex<'_>, task: &Task) -> (u32, u64) {
    let first = index.find(task.process, task.since_ns.max(1));
    (task.process, first.map_or(0, |first| first.since_ns))
}

#[cfg(test)]
mod tests {
    use pageset_trace::TaskBook;

    use super::*;

    fn share(tid: u32, first_ns: u64, party: Party, allocated_pages: u64) -> TaskShare {
        TaskShare { tid, first_ns, party, totals: TaskTotals { allocated_pages, ..TaskTotals::default() } }
    }

    fn who() -> Who {
        Who {
            tasks: vec![
                share(10, 5, Party::Command, 100),
                share(11, 6, Party::Command, 20),
                share(12, 7, Party::Command, 30),
                share(50, 8, Party::Rest, 7),
                share(51, 8, Party::Rest, 1),
                share(99, 9, Party::Rest, 4),
                share(7, 9, Party::Recorder, 2),
            ],
            interrupts: TaskTotals { allocated_pages: 60, ..TaskTotals::default() },
            is_command_known: true,
            ..Who::default()
        }
    }

    fn tasks() -> Tasks {
        let mut book = TaskBook::default();
        book.add(10, 10, 1, b"make");
        book.add(11, 11, 2, b"cc1");
        book.add(12, 12, 2, b"cc1");
        book.add(50, 50, 0, b"kworker/0:1-events");
        book.add(51, 51, 0, b"kworker/u8:0");
        book.add(7, 7, 0, b"pageset");
        (10..13).for_each(|tid| book.put_cgroup(tid, "/build"));
        book.into_tasks()
    }

    fn shown(groups: &[Group]) -> Vec<(String, u64, u64)> {
        let name = |group: &Group| match &group.name {
            GroupName::Named(name) => name.clone(),
            other => format!("<{other:?}>"),
        };
        groups.iter().map(|group| (name(group), group.processes, group.totals.allocated_pages)).collect()
    }

    #[test]
    fn processes_of_one_name_are_one_row_and_the_unknown_come_last() {
        let expected = [
            ("make", 1, 100),
            ("<Interrupts>", 0, 60),
            ("cc1", 2, 50),
            ("kworker", 2, 8),
            ("pageset", 1, 2),
            ("<Unknown>", 1, 4),
        ];
        let expected = expected.map(|(name, processes, pages)| (name.to_owned(), processes, pages));
        assert_eq!(shown(&who().by_process(&tasks())), expected);
    }

    #[test]
    fn control_groups_are_rows_where_they_are_known() {
        let expected = [("/build", 3, 150), ("<Interrupts>", 0, 60), ("<Unknown>", 4, 14)];
        let expected = expected.map(|(name, processes, pages)| (name.to_owned(), processes, pages));
        assert_eq!(shown(&who().by_cgroup(&tasks())), expected);
        assert!(who().by_cgroup(&Tasks::default()).is_empty());
    }

    #[test]
    fn every_page_is_the_commands_the_recorders_the_interrupts_or_the_rests() {
        let parties = who().by_party().unwrap();
        let pages: Vec<_> = parties.iter().map(|group| group.totals.allocated_pages).collect();
        assert_eq!(pages, [150, 2, 60, 12]);
        assert_eq!(pages.iter().sum::<u64>(), who().total().allocated_pages);
        assert_eq!(Who::default().by_party(), None);
    }
}
