//! Counters of the kernel's performance events.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use perf_event_open::config::{All, Cpu, Opts};
use perf_event_open::count::Counter;
use perf_event_open::event::tp::Tracepoint as Event;

use super::{CpuCounts, Cpus, Tracepoint};

/// Mount points of tracefs, the newest convention first.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The filter selects waits for locks whose `flags` are `SPIN` (1) or, on a real-time kernel, `RT` (8).
const SPIN: &std::ffi::CStr = c"flags == 1 || flags == 8";

/// Running counters of some tracepoints on some CPUs.
pub struct Counters {
    /// Identifiers of the tracepoints that this kernel has.
    events: [Option<u64>; Tracepoint::COUNT],
    running: BTreeMap<u32, [Option<Counter>; Tracepoint::COUNT]>,
}

impl std::fmt::Debug for Counters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counters").field("events", &self.events).finish_non_exhaustive()
    }
}

impl Counters {
    /// Starts counting on these CPUs.
    ///
    /// # Errors
    /// An error if tracefs is not mounted, or if the kernel refuses to count. The text includes a remedy.
    pub fn open(cpus: &Cpus) -> Result<Self, String> {
        let mut counters = Self { events: events()?, running: BTreeMap::new() };
        for cpu in cpus {
            let opened = counters.begin(*cpu).map_err(|error| refused(*cpu, &error))?;
            counters.running.insert(*cpu, opened);
        }
        Ok(counters)
    }

    /// Reads the counts of these CPUs. If a CPU was not counted before, its counters begin now. A CPU that is
    /// gone has no counts.
    #[must_use]
    pub fn read(&mut self, cpus: &Cpus) -> Vec<CpuCounts> {
        self.running.retain(|cpu, _| cpus.contains(cpu));
        let mut read = Vec::new();
        for cpu in cpus {
            if !self.running.contains_key(cpu)
                && let Ok(opened) = self.begin(*cpu)
            {
                self.running.insert(*cpu, opened);
            }
            let count = |counter: &Option<Counter>| counter.as_ref()?.stat().ok().map(|stat| stat.count);
            let running = self.running.get(cpu);
            let counts = running.map_or([None; Tracepoint::COUNT], |counters| counters.each_ref().map(count));
            read.push(CpuCounts { cpu: *cpu, counts });
        }
        read
    }

    fn begin(&self, cpu: u32) -> io::Result<[Option<Counter>; Tracepoint::COUNT]> {
        let mut counters = [const { None }; Tracepoint::COUNT];
        for tracepoint in Tracepoint::ALL {
            let Some(id) = self.events[tracepoint.index()] else { continue };
            let counter = Counter::new(Event { id }, (All, Cpu(cpu)), Opts::default())?;
            if tracepoint == Tracepoint::ContentionBegin {
                counter.with_ftrace_filter(SPIN)?;
            }
            counter.enable()?;
            counters[tracepoint.index()] = Some(counter);
        }
        Ok(counters)
    }
}

/// Reads the ids of the tracepoints that this kernel has.
fn events() -> Result<[Option<u64>; Tracepoint::COUNT], String> {
    let mut found = [None; Tracepoint::COUNT];
    let mut reason = None;
    for directory in TRACEFS {
        for tracepoint in Tracepoint::ALL {
            let path = Path::new(directory).join("events").join(tracepoint.name()).join("id");
            match fs::read_to_string(&path) {
                Ok(text) => found[tracepoint.index()] = text.trim().parse().ok(),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => reason = Some(format!("{}: {error}", path.display())),
            }
        }
        if found.iter().any(Option::is_some) {
            return Ok(found);
        }
    }
    Err(match reason {
        Some(reason) => format!("{reason}; run it as root"),
        None => format!("{} is not mounted, or has no such tracepoints; mount tracefs there", TRACEFS[0]),
    })
}

fn refused(cpu: u32, error: &io::Error) -> String {
    // The error EMFILE (24) has no `ErrorKind` of its own.
    let remedy = if error.raw_os_error() == Some(24) {
        "allow more open files with `ulimit -n`: each CPU takes four"
    } else {
        "run it as root or with CAP_PERFMON, or lower kernel.perf_event_paranoid to -1"
    };
    format!("the kernel does not count tracepoints on CPU {cpu}: {error}; {remedy}")
}
