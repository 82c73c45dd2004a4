//! Registers functions to call around each fork, and checks whether a process has ended.

use std::fmt::Write as _;
use std::io;

use super::{host, lines};

/// Registers functions that run before each fork of this process, after each fork in the parent, and after
/// each fork in the child. Only the C library's `fork` runs the registered functions.
pub(crate) fn at_forks(
    before: extern "C" fn(),
    in_parent: extern "C" fn(),
    in_child: extern "C" fn(),
) -> io::Result<()> {
    host::at_forks(before, in_parent, in_child)
}

/// A process, identified by its number and its start time. The system may reuse the number for a later
/// process, whose start time differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    id: i32,
    /// The start time, in clock ticks since the system booted. `None` if `/proc` does not say.
    begun: Option<u64>,
}

/// The fields of `/proc/PID/stat` that this module needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Status {
    state: char,
    threads: u64,
    begun: u64,
}

impl Process {
    /// This process.
    pub(crate) fn this() -> Self {
        let id = host::process_id();
        Self { id, begun: status(id).map(|status| status.begun) }
    }

    /// Whether the process has ended. `false` where the system does not tell.
    pub(crate) fn has_ended(self) -> bool {
        if !host::is_process(self.id) {
            return true;
        }
        let (Some(status), Some(begun)) = (status(self.id), self.begun) else { return false };
        // A process whose first thread has ended has the state of a zombie, although its other threads still
        // run.
        status.begun != begun || (matches!(status.state, 'Z' | 'X') && status.threads <= 1)
    }
}

/// Reads the status of the process with this number.
fn status(id: i32) -> Option<Status> {
    let mut path = Path::default();
    write!(path, "/proc/{id}/stat").ok()?;
    let mut found = None;
    lines::for_each(path.text(), |line| found = found.or_else(|| parse(line))).ok()?;
    found
}

/// Parses the fields of a line of `/proc/PID/stat`. Source: proc_pid_stat(5).
fn parse(line: &str) -> Option<Status> {
    // The second field is the process's name in brackets. The name itself may contain spaces and brackets.
    let (_, fields) = line.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    // The code above has cut off the first two fields, so the third field of the line comes first.
    let state = fields.next()?.chars().next()?;
    let threads = fields.nth(16)?.parse().ok()?;
    let begun = fields.nth(1)?.parse().ok()?;
    Some(Status { state, threads, begun })
}

/// A short text that needs no memory of the heap.
#[derive(Default)]
struct Path {
    bytes: [u8; 32],
    length: usize,
}

impl Path {
    fn text(&self) -> &str {
        str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl std::fmt::Write for Path {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(std::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_brackets_and_spaces() {
        let line = "7 (a) b) S 1 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 3 0 4711 2 3";
        assert_eq!(parse(line), Some(Status { state: 'S', threads: 3, begun: 4711 }));
        assert_eq!(parse("7 (a"), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "miri has one process")]
    fn this_process_lives_and_an_earlier_one_of_its_number_does_not() {
        let this = Process::this();
        assert!(!this.has_ended() && this.begun.is_some());
        assert!(Process { begun: Some(1), ..this }.has_ended());
        assert!(!Process { begun: None, ..this }.has_ended(), "nothing is known");
    }

    /// Waits until the process `id` has the state `state`. Returns the process.
    #[cfg(not(miri))]
    fn state_of(id: i32, state: char) -> Process {
        loop {
            let status = status(id).expect("the child is a zombie until its parent waits for it");
            if status.state == state {
                return Process { id, begun: Some(status.begun) };
            }
            std::thread::yield_now();
        }
    }

    #[test]
    #[cfg(not(interpreted))]
    fn a_process_lives_as_long_as_its_last_thread() {
        // SAFETY: the child makes a thread, for which glibc's heap is usable, and leaves by `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            std::thread::spawn(|| {
                std::thread::sleep(std::time::Duration::from_secs(60));
                // SAFETY: the call ends the child process at once.
                unsafe { libc::_exit(0) };
            });
            // SAFETY: the raw system call `exit` ends only the child's first thread.
            unsafe { libc::syscall(libc::SYS_exit, 0) };
        }
        let process = state_of(child, 'Z');
        assert!(!process.has_ended(), "the child's second thread still runs");
        // SAFETY: the signal goes to the child that this test made.
        assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0);
        while !process.has_ended() {
            std::thread::yield_now();
        }
        // SAFETY: the child is this test's own; a null pointer means that its exit status is not wanted.
        assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
        assert!(process.has_ended(), "the child was waited for");
    }
}
