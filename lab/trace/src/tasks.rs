//! Names of tasks, and their control groups. A recorder keeps names of tasks only on request.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// The named tasks of a recording. Each name and each control group is stored once.
///
/// A process can choose its name, so a file may contain any text as a name. An index in a damaged file may be
/// out of range, and then the accessors return `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tasks {
    names: Vec<String>,
    #[serde(default)]
    cgroups: Vec<String>,
    tasks: Vec<Task>,
    /// Number of tasks that were left out.
    #[serde(default)]
    left_out: u64,
}

/// A task: a thread, as the kernel sees it. A file stores a task as an array of the task's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Fields", into = "Fields")]
pub struct Task {
    /// The task's number, as in [`Event::pid`](crate::Event::pid).
    pub tid: u32,
    /// The number of the task's process, which is the number of the process's first thread.
    pub process: u32,
    /// Time when the task began, in nanoseconds of the events' clock. 0 if the task existed before the
    /// recording.
    pub since_ns: u64,
    name: u32,
    cgroup: Option<u32>,
}

type Fields = (u32, u32, u64, u32, Option<u32>);

impl From<Fields> for Task {
    fn from((tid, process, since_ns, name, cgroup): Fields) -> Self {
        Self { tid, process, since_ns, name, cgroup }
    }
}

impl From<Task> for Fields {
    fn from(task: Task) -> Self {
        (task.tid, task.process, task.since_ns, task.name, task.cgroup)
    }
}

impl Tasks {
    /// Maximum number of tasks. With the maximum number of tasks, the description in the file stays far below
    /// its size limit.
    pub const TASKS_MAX: usize = 1 << 18;

    /// All tasks, in the order of addition.
    #[must_use]
    pub fn all(&self) -> &[Task] {
        &self.tasks
    }

    /// Number of observed tasks that are not in the file, because there were more tasks than
    /// [`Tasks::TASKS_MAX`].
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The task's name. Escape the name before printing, because it may contain any characters, including
    /// control characters.
    #[must_use]
    pub fn name(&self, task: &Task) -> Option<&str> {
        self.names.get(task.name as usize).map(String::as_str)
    }

    /// The control group of a task, if the recorder could read it.
    #[must_use]
    pub fn cgroup(&self, task: &Task) -> Option<&str> {
        self.cgroups.get(task.cgroup? as usize).map(String::as_str)
    }

    /// Whether the control group of any task is known.
    #[must_use]
    pub const fn has_cgroups(&self) -> bool {
        !self.cgroups.is_empty()
    }

    /// An index of the tasks by number and time.
    #[must_use]
    pub fn index(&self) -> TaskIndex<'_> {
        let mut by_tid: HashMap<u32, Vec<usize>> = HashMap::new();
        for (at, task) in self.tasks.iter().enumerate() {
            by_tid.entry(task.tid).or_default().push(at);
        }
        by_tid.values_mut().for_each(|found| found.sort_by_key(|at| self.tasks[*at].since_ns));
        TaskIndex { tasks: self, by_tid }
    }
}

/// Finds tasks by number and time.
#[derive(Clone, Debug)]
pub struct TaskIndex<'a> {
    tasks: &'a Tasks,
    by_tid: HashMap<u32, Vec<usize>>,
}

impl<'a> TaskIndex<'a> {
    /// The task that had this number at this time. The kernel reuses numbers of tasks, so the time is needed.
    #[must_use]
    pub fn find(&self, tid: u32, at_ns: u64) -> Option<&'a Task> {
        let found = self.by_tid.get(&tid)?;
        let before = found.partition_point(|at| self.tasks.tasks[*at].since_ns <= at_ns);
        self.tasks.tasks.get(*found.get(before.checked_sub(1)?)?)
    }

    /// The task's own name.
    #[must_use]
    pub fn name(&self, task: &Task) -> Option<&'a str> {
        self.tasks.name(task)
    }

    /// The name of a task's process, which is the name of the process's first thread. If the first thread is
    /// unknown, returns the task's own name.
    #[must_use]
    pub fn process_name(&self, task: &'a Task) -> Option<&'a str> {
        let first = self.find(task.process, task.since_ns.max(1)).unwrap_or(task);
        self.tasks.name(first)
    }
}

/// Collects tasks for a file.
#[derive(Clone, Debug, Default)]
pub struct TaskBook {
    tasks: Tasks,
    names: HashMap<String, u32>,
    cgroups: HashMap<String, u32>,
    /// The last task with each number.
    last: HashMap<u32, usize>,
}

impl TaskBook {
    /// Adds a task, or updates the task with this number that began at this time. `name` has the kernel's
    /// bytes. Invalid UTF-8 becomes replacement characters.
    pub fn add(&mut self, tid: u32, process: u32, since_ns: u64, name: &[u8]) {
        let name = number(&mut self.tasks.names, &mut self.names, &String::from_utf8_lossy(name));
        let task = Task { tid, process, since_ns, name, cgroup: None };
        if let Some(at) = self.last.get(&tid)
            && self.tasks.tasks[*at].since_ns == since_ns
        {
            let cgroup = self.tasks.tasks[*at].cgroup;
            self.tasks.tasks[*at] = Task { cgroup, ..task };
        } else if self.tasks.tasks.len() < Tasks::TASKS_MAX {
            self.last.insert(tid, self.tasks.tasks.len());
            self.tasks.tasks.push(task);
        } else {
            self.tasks.left_out += 1;
        }
    }

    /// Changes the name of the last task with this number.
    pub fn rename(&mut self, tid: u32, name: &[u8]) {
        if let Some(at) = self.last.get(&tid) {
            let name = number(&mut self.tasks.names, &mut self.names, &String::from_utf8_lossy(name));
            self.tasks.tasks[*at].name = name;
        }
    }

    /// Sets the control group of the last task with this number.
    pub fn put_cgroup(&mut self, tid: u32, cgroup: &str) {
        if let Some(at) = self.last.get(&tid) {
            let cgroup = number(&mut self.tasks.cgroups, &mut self.cgroups, cgroup);
            self.tasks.tasks[*at].cgroup = Some(cgroup);
        }
    }

    /// Gives the last task with number `tid` the control group of the last task with number `from`, if this
    /// control group is known.
    pub fn inherit_cgroup(&mut self, tid: u32, from: u32) {
        let cgroup = self.get(from).and_then(|task| task.cgroup);
        if let (Some(at), Some(cgroup)) = (self.last.get(&tid), cgroup) {
            self.tasks.tasks[*at].cgroup = Some(cgroup);
        }
    }

    /// The last task with this number.
    #[must_use]
    pub fn get(&self, tid: u32) -> Option<&Task> {
        self.last.get(&tid).map(|at| &self.tasks.tasks[*at])
    }

    /// Returns the collected tasks, as a file stores them.
    #[must_use]
    pub fn into_tasks(self) -> Tasks {
        self.tasks
    }
}

/// Returns the index of a text in a list without duplicates. Adds the text if the list does not contain it.
fn number(list: &mut Vec<String>, numbers: &mut HashMap<String, u32>, text: &str) -> u32 {
    if let Some(number) = numbers.get(text) {
        return *number;
    }
    let number = list.len() as u32;
    list.push(text.to_owned());
    numbers.insert(text.to_owned(), number);
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_used_again_is_another_task() {
        let mut book = TaskBook::default();
        book.add(7, 7, 0, b"sh");
        book.rename(7, b"make");
        book.add(8, 7, 20, b"worker");
        book.add(7, 7, 100, b"cc1");
        let tasks = book.into_tasks();
        let index = tasks.index();
        let name = |tid, at_ns| index.find(tid, at_ns).and_then(|task| tasks.name(task));
        assert_eq!((name(7, 5), name(7, 99), name(7, 100)), (Some("make"), Some("make"), Some("cc1")));
        assert_eq!((name(8, 19), name(8, 20), name(9, 20)), (None, Some("worker"), None));
        let worker = index.find(8, 30).unwrap();
        assert_eq!(index.process_name(worker), Some("make"), "of that time");
    }

    #[test]
    fn names_and_control_groups_are_stored_once() {
        let mut book = TaskBook::default();
        for tid in 1..100 {
            book.add(tid, tid, 5, b"cc1");
            book.put_cgroup(tid, "/build");
        }
        book.add(100, 100, 6, b"\xff\x1b[31m");
        book.inherit_cgroup(100, 1);
        let tasks = book.into_tasks();
        let json = serde_json::to_string(&tasks).unwrap();
        assert_eq!((json.matches("cc1").count(), json.matches("/build").count()), (1, 1));
        assert!(json.contains("[1,1,5,0,0]"), "{json}");
        assert_eq!(serde_json::from_str::<Tasks>(&json).unwrap(), tasks);
        let last = tasks.all().last().unwrap();
        assert_eq!((tasks.name(last), tasks.cgroup(last)), (Some("\u{fffd}\u{1b}[31m"), Some("/build")));
    }

    #[test]
    fn an_index_that_leads_nowhere_is_unknown() {
        let json = r#"{"names":["a"],"tasks":[[1,9,0,7,3],[1,1,0,0,null]]}"#;
        let tasks: Tasks = serde_json::from_str(json).unwrap();
        let index = tasks.index();
        let strange = &tasks.all()[0];
        assert_eq!((tasks.name(strange), tasks.cgroup(strange)), (None, None));
        assert_eq!(index.process_name(strange), None);
        assert!(index.find(1, 0).is_some());
    }

    #[test]
    fn tasks_are_bounded() {
        let mut book = TaskBook::default();
        (0..Tasks::TASKS_MAX as u32 + 3).for_each(|tid| book.add(tid, tid, 1, b"x"));
        let tasks = book.into_tasks();
        assert_eq!((tasks.all().len(), tasks.left_out()), (Tasks::TASKS_MAX, 3));
    }
}
