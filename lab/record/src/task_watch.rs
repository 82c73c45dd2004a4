//! Collects names of tasks during a recording, if the caller wants names or counts the command's tasks.
//!
//! A separate instance records two events: a task begins, and a task changes its name. The names of tasks
//! that ran before come from `/proc`. The recording's own instance does not change.

use std::{
    collections::HashSet,
    fs::{self, File, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use pageset_trace::raw::{EventFormat, Field, PageLayout, Records};
use pageset_trace::{TaskBook, Tasks};
use rustix::fs::OFlags;

use crate::clock::{self, now_ns};
use crate::cpus::CpuList;
use crate::error::RecordError;
use crate::instance::Instance;
use crate::losses::counts_of;
use crate::merge::LATE_NS;
use crate::tracefs::{self, Tracefs};

/// Buffer size per CPU in KiB. The buffer has room for 4000 new tasks.
const BUFFER_KIB: u32 = 256;
/// Time between two readings.
const PERIOD: Duration = Duration::from_millis(100);
/// Maximum number of pages that one reading takes from a ring.
const PAGES: usize = 256;
/// Maximum number of new processes whose control group is looked up in one reading. Each further new process
/// is assumed to be in its parent's control group.
const CGROUPS_MAX: usize = 200;
/// The flag of a new task that is a thread of its parent's process. Source: clone(2), `CLONE_THREAD`.
const THREAD: u64 = 0x10000;

/// Follows the tasks of the machine.
pub(crate) struct TaskWatch {
    rings: Vec<File>,
    cpus: CpuList,
    layout: PageLayout,
    begins: Begins,
    renames: Renames,
    page: Vec<u8>,
    /// Events that were read but must wait, because older events may still come.
    pending: Vec<Seen>,
    book: TaskBook,
    looked: Instant,
    numbers: Numbers,
    /// The first task of the command.
    root: Option<u32>,
    /// Task numbers whose last task belongs to the command.
    command: HashSet<u32>,
    /// The instance must be removed after the rings are closed.
    instance: Instance,
}

/// Whether `/proc` and the trace have the same task numbers. In a PID namespace, such as a container, the
/// numbers differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// `/proc` and the trace have the same numbers.
    OfTheTrace,
    /// The numbers differ, or it is unknown whether the numbers differ.
    Others,
}

/// The fields of a record that reports a new task.
#[derive(Clone, Copy, Debug)]
struct Begins {
    id: u16,
    common_type: Field,
    parent: Field,
    tid: Field,
    name: Field,
    flags: Field,
}

/// The fields of a record that reports a new name.
#[derive(Clone, Copy, Debug)]
struct Renames {
    id: u16,
    tid: Field,
    name: Field,
}

/// An event of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    ts_ns: u64,
    tid: u32,
    name: Vec<u8>,
    /// If the task is new, this field has the parent, and whether the task is a thread of the parent's
    /// process. `None` if a task has a new name.
    begins: Option<(u32, bool)>,
}

impl Numbers {
    /// Checks whether `/proc` shows the kernel's own threads. If `/proc` shows these threads, `/proc` has the
    /// trace's numbers. Observed: the parent of the kernel's threads is task number 2, and only the first PID
    /// namespace shows this task.
    pub(crate) fn of_this_process() -> Self {
        let is_first = fs::read("/proc/2/comm").is_ok_and(|name| name == b"kthreadd\n");
        if is_first { Self::OfTheTrace } else { Self::Others }
    }
}

impl TaskWatch {
    /// Sets the first task of the recorded command.
    pub(crate) fn set_command(&mut self, tid: u32) {
        self.root = Some(tid);
    }

    /// Whether the beginning of the command was seen.
    pub(crate) fn knows_command(&self) -> bool {
        self.root.is_some_and(|root| self.command.contains(&root))
    }

    /// Whether the last task with this number belonged to the command, according to the events read so far.
    pub(crate) fn is_of_command(&self, tid: u32) -> bool {
        self.command.contains(&tid)
    }

    /// Begins to follow tasks, and reads the names of running tasks.
    ///
    /// # Errors
    /// An error of the system, or an error if the kernel does not have the events.
    pub(crate) fn begin(numbers: Numbers) -> Result<Self, RecordError> {
        let tracefs = Tracefs::find()?;
        let (instance, _) = Instance::create(&tracefs, "-tasks")?;
        instance.set("trace_clock", clock::NAME)?;
        let cpus = CpuList::online();
        instance.set("tracing_cpumask", &cpus.mask())?;
        instance.set("buffer_size_kb", &BUFFER_KIB.to_string())?;
        let format = |name: &str| -> Result<_, RecordError> {
            let directory = Path::new("events/task").join(name);
            let path = tracefs.path(directory.join("format"));
            let format = EventFormat::parse(&tracefs::read(&path)?)
                .map_err(|problem| RecordError::unknown(&path, problem))?;
            instance.set(directory.join("enable"), "1")?;
            Ok((path, format))
        };
        let (begins_path, begins) = format("task_newtask")?;
        let (renames_path, renames) = format("task_rename")?;
        let field = |path: &PathBuf, format: &EventFormat, name: &str| {
            let unknown = || RecordError::unknown(path, format!("it has no field {name}"));
            format.field(name).ok_or_else(unknown)
        };
        let begins = Begins {
            id: begins.id,
            common_type: field(&begins_path, &begins, "common_type")?,
            parent: field(&begins_path, &begins, "common_pid")?,
            tid: field(&begins_path, &begins, "pid")?,
            name: field(&begins_path, &begins, "comm")?,
            flags: field(&begins_path, &begins, "clone_flags")?,
        };
        let renames = Renames {
            id: renames.id,
            // If the event has no field `pid`, use the task that wrote the record, because a task usually
            // changes its own name.
            tid: field(&renames_path, &renames, "pid")
                .or_else(|_| field(&renames_path, &renames, "common_pid"))?,
            name: field(&renames_path, &renames, "newcomm")?,
        };
        let (page, event) = (tracefs.path("events/header_page"), tracefs.path("events/header_event"));
        let layout = PageLayout::parse(&tracefs::read(&page)?, &tracefs::read(&event)?)
            .map_err(|problem| RecordError::unknown(page, problem))?;
        let rings = cpus.iter().map(|cpu| open(&instance, cpu)).collect::<Result<_, _>>()?;
        instance.set("tracing_on", "1")?;
        let mut book = TaskBook::default();
        if numbers == Numbers::OfTheTrace {
            read_running(&mut book);
        }
        let (page, pending, looked) = (vec![0; layout.page_bytes], Vec::new(), Instant::now());
        Ok(Self {
            rings,
            cpus,
            layout,
            begins,
            renames,
            page,
            pending,
            book,
            looked,
            numbers,
            root: None,
            command: HashSet::new(),
            instance,
        })
    }

    /// Reads new events, unless the last reading was less than 100 ms ago.
    pub(crate) fn look(&mut self) {
        if self.looked.elapsed() >= PERIOD {
            self.looked = Instant::now();
            let until_ns = now_ns().saturating_sub(LATE_NS);
            self.read();
            self.note(until_ns);
        }
    }

    /// Reads all events after the recording has ended.
    pub(crate) fn look_last(&mut self) {
        drop(self.instance.set("tracing_on", "0"));
        self.read();
        self.note(u64::MAX);
    }

    /// Reads the remaining events. Returns all tasks, and a sentence about missed tasks.
    pub(crate) fn end(mut self) -> (Tasks, Option<String>) {
        self.look_last();
        let lost: u64 = self
            .cpus
            .iter()
            .filter_map(|cpu| counts_of(&self.instance, cpu as u16))
            .map(|counts| counts.overrun.saturating_add(counts.dropped))
            .sum();
        let tasks = self.book.into_tasks();
        let missed = lost.saturating_add(tasks.left_out());
        (tasks, (missed > 0).then(|| format!("some names of tasks: {missed} tasks or names were missed")))
    }

    fn read(&mut self) {
        for ring in &mut self.rings {
            for _ in 0..PAGES {
                match ring.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(bytes) => {
                        let Ok(records) = Records::of(&self.layout, &self.page[..bytes]) else { continue };
                        let seen = records.map_while(Result::ok);
                        let seen = seen.filter_map(|record| {
                            seen_in(record.bytes, record.ts_ns, &self.begins, &self.renames)
                        });
                        self.pending.extend(seen);
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // The ring has ended, or cannot be read. Names that are still missing stay unknown.
                    Err(_) => break,
                }
            }
        }
    }

    /// Handles events up to the time `until_ns`.
    fn note(&mut self, until_ns: u64) {
        self.pending.sort_by_key(|seen| seen.ts_ns);
        let complete = self.pending.partition_point(|seen| seen.ts_ns <= until_ns);
        let mut asked = 0;
        for seen in self.pending.drain(..complete) {
            let Some((parent, is_thread)) = seen.begins else {
                self.book.rename(seen.tid, &seen.name);
                continue;
            };
            let of_parent = self.book.get(parent).map_or(parent, |parent| parent.process);
            let process = if is_thread { of_parent } else { seen.tid };
            self.book.add(seen.tid, process, seen.ts_ns, &seen.name);
            if self.root == Some(seen.tid) || self.command.contains(&parent) {
                self.command.insert(seen.tid);
            } else {
                self.command.remove(&seen.tid);
            }
            let asks = !is_thread && asked < CGROUPS_MAX && self.numbers == Numbers::OfTheTrace;
            asked += usize::from(asks);
            match asks.then(|| cgroup_of(seen.tid)).flatten() {
                Some(cgroup) => self.book.put_cgroup(seen.tid, &cgroup),
                // The control group was not looked up, or the process has already ended. Assume the parent's
                // control group, where each task begins.
                None => self.book.inherit_cgroup(seen.tid, parent),
            }
        }
    }
}

fn open(instance: &Instance, cpu: u32) -> Result<File, RecordError> {
    let path = instance.path(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
    let file = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(&path);
    file.map_err(|error| RecordError::io(&path, "open", error))
}

/// Parses the event of a record. `None` if the record has another event, or is truncated.
fn seen_in(record: &[u8], ts_ns: u64, begins: &Begins, renames: &Renames) -> Option<Seen> {
    let id = begins.common_type.read(record)?;
    if id == u64::from(begins.id) {
        let is_thread = begins.flags.read(record)? & THREAD != 0;
        return Some(Seen {
            ts_ns,
            tid: begins.tid.read(record)? as u32,
            name: text(begins.name, record)?,
            begins: Some((begins.parent.read(record)? as u32, is_thread)),
        });
    }
    (id == u64::from(renames.id)).then_some(())?;
    let (tid, name) = (renames.tid.read(record)? as u32, text(renames.name, record)?);
    Some(Seen { ts_ns, tid, name, begins: None })
}

/// Reads a text field, up to its first zero byte.
fn text(field: Field, record: &[u8]) -> Option<Vec<u8>> {
    let bytes = record.get(field.offset..)?.get(..field.size)?;
    Some(bytes.iter().copied().take_while(|byte| *byte != 0).collect())
}

/// Adds the tasks that `/proc` shows. A task that ends during this reading is left out.
fn read_running(book: &mut TaskBook) {
    let numbers = |directory: &Path| -> Vec<u32> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    };
    // `/proc` has no directory for idle tasks.
    book.add(0, 0, 0, b"idle");
    for process in numbers(Path::new("/proc")) {
        let directory = Path::new("/proc").join(process.to_string());
        let cgroup = cgroup_of(process);
        for tid in numbers(&directory.join("task")) {
            let Ok(name) = fs::read(directory.join(format!("task/{tid}/comm"))) else { continue };
            book.add(tid, process, 0, name.strip_suffix(b"\n").unwrap_or(&name));
            if let Some(cgroup) = &cgroup {
                book.put_cgroup(tid, cgroup);
            }
        }
    }
}

fn cgroup_of(process: u32) -> Option<String> {
    let file = fs::read(format!("/proc/{process}/cgroup")).ok()?;
    memory_cgroup(&String::from_utf8_lossy(&file))
}

/// Finds the control group that is charged for a process's memory: its group in the controller `memory`, or
/// its group in version 2. Source: cgroups(7).
fn memory_cgroup(text: &str) -> Option<String> {
    let mut unified = None;
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        if controllers.split(',').any(|controller| controller == "memory") {
            return Some(path.to_owned());
        }
        if controllers.is_empty() {
            unified = Some(path.to_owned());
        }
    }
    unified
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_counted_in_one_of_the_control_groups() {
        assert_eq!(memory_cgroup("4:cpu,memory:/a:b\n1:cpu:/c\n0::/\n"), Some("/a:b".to_owned()));
        assert_eq!(memory_cgroup("1:cpu:/c\n0::/user.slice\n"), Some("/user.slice".to_owned()));
        assert_eq!((memory_cgroup("1:cpu:/c\n"), memory_cgroup("x")), (None, None));
    }

    #[test]
    fn this_process_is_among_the_running() {
        let mut book = TaskBook::default();
        read_running(&mut book);
        let task = *book.get(std::process::id()).expect("it runs");
        let tasks = book.into_tasks();
        assert_eq!((task.process, task.since_ns), (std::process::id(), 0));
        assert!(tasks.name(&task).is_some_and(|name| !name.is_empty()));
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn records_name_tasks_that_begin_or_are_renamed() {
        let field = |offset, size| Field { offset, size, is_signed: false };
        let (begins, renames) = (
            Begins {
                id: 205,
                common_type: field(0, 2),
                parent: field(4, 4),
                tid: field(8, 4),
                name: field(12, 16),
                flags: field(32, 8),
            },
            Renames { id: 204, tid: field(8, 4), name: field(28, 16) },
        );
        let mut record = vec![0; 48];
        (record[0], record[4], record[8], record[34]) = (205, 7, 9, 1);
        record[12..15].copy_from_slice(b"sh\x1b");
        let seen = seen_in(&record, 5, &begins, &renames);
        let name = b"sh\x1b".to_vec();
        assert_eq!(seen, Some(Seen { ts_ns: 5, tid: 9, name, begins: Some((7, true)) }));
        record[0] = 204;
        record[28..44].copy_from_slice(b"a name of 16 by.");
        let seen = seen_in(&record, 6, &begins, &renames).unwrap();
        assert_eq!((seen.name.len(), seen.begins), (16, None));
        record[0] = 1;
        assert_eq!(seen_in(&record, 7, &begins, &renames), None);
        assert_eq!(seen_in(&record[..3], 7, &begins, &renames), None);
    }
}
