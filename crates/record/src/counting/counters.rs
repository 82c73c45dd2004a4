//! The kernel's counters (`perf_event_open`), one of each tracepoint on each CPU.

use std::io;
use std::path::Path;

use perf_event_open::config::{All, Cpu, Opts, StatFormat};
use perf_event_open::count::Counter;
use perf_event_open::event::tp::Tracepoint;

use super::{CONTENTION, Slice, TRACEPOINT_COUNT, TRACEPOINTS};
use crate::cpus::CpuList;
use crate::error::RecordError;
use crate::tracefs::{Tracefs, read};

/// Which contended locks are counted: `flags` is `SPIN`, or with real-time locks `RT`. Others sleep.
const SPIN: &std::ffi::CStr = c"flags == 1 || flags == 8";
/// Too many open files.
const EMFILE: i32 = 24;

/// Counters of some CPUs. All are switched off at first.
pub(crate) struct Counters {
    /// Empty for tracepoints that the kernel does not have.
    of_tracepoint: [Vec<OfCpu>; TRACEPOINT_COUNT],
}

struct OfCpu {
    counter: Counter,
    /// At the look before.
    hits: u64,
    enabled_ns: u64,
}

impl Counters {
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn open(cpus: &CpuList) -> Result<Self, RecordError> {
        let tracefs = Tracefs::find()?;
        let mut of_tracepoint = [const { Vec::new() }; TRACEPOINT_COUNT];
        for (name, counters) in TRACEPOINTS.iter().zip(&mut of_tracepoint) {
            let path = tracefs.path(Path::new("events").join(name).join("id"));
            if !path.exists() {
                continue;
            }
            let id = read(&path)?;
            let id = id.trim().parse().map_err(|_| RecordError::unknown(&path, "it is no number"))?;
            for cpu in cpus.iter() {
                let counter = open(id, cpu, *name == CONTENTION).map_err(|error| refused(cpu, &error))?;
                counters.push(OfCpu { counter, hits: 0, enabled_ns: 0 });
            }
        }
        if of_tracepoint.iter().all(Vec::is_empty) {
            return Err(RecordError::Refused {
                problem: "this kernel has none of the tracepoints of page allocation".to_owned(),
                remedy: "record under a kernel with CONFIG_TRACEPOINTS, as distributions have it".to_owned(),
            });
        }
        Ok(Self { of_tracepoint })
    }

    /// Whether the kernel has the tracepoint.
    pub(crate) fn has(&self, tracepoint: usize) -> bool {
        !self.of_tracepoint[tracepoint].is_empty()
    }

    /// Switches a tracepoint on or off, on all CPUs.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn switch(&mut self, tracepoint: usize, is_on: bool) -> Result<(), RecordError> {
        for of_cpu in &self.of_tracepoint[tracepoint] {
            let counter = &of_cpu.counter;
            let switched = if is_on { counter.enable() } else { counter.disable() };
            switched.map_err(|error| {
                RecordError::io(Path::new("events").join(TRACEPOINTS[tracepoint]), "switch", error)
            })?;
        }
        Ok(())
    }

    /// What was counted since the last call.
    pub(crate) fn take(&mut self, tracepoint: usize) -> Slice {
        let (mut slice, mut enabled_ns, mut cpus) = (Slice::default(), 0, 0);
        for of_cpu in &mut self.of_tracepoint[tracepoint] {
            // A CPU that is gone has no counter any more.
            let Ok(stat) = of_cpu.counter.stat() else { continue };
            let hits = stat.count.saturating_sub(of_cpu.hits);
            let now_ns = stat.time_enabled.unwrap_or(0);
            let here_ns = now_ns.saturating_sub(of_cpu.enabled_ns);
            (of_cpu.hits, of_cpu.enabled_ns) = (stat.count, now_ns);
            slice.hits += hits;
            enabled_ns += here_ns;
            cpus += 1;
            if here_ns > 0 {
                slice.busiest_per_second = slice.busiest_per_second.max(hits as f64 / here_ns as f64 * 1e9);
            }
        }
        slice.mean_ns = enabled_ns / u64::from(cpus.max(1_u32));
        slice
    }
}

fn open(id: u64, cpu: u32, is_contention: bool) -> io::Result<Counter> {
    let stat_format = StatFormat { time_enabled: true, ..StatFormat::default() };
    let counter = Counter::new(Tracepoint { id }, (All, Cpu(cpu)), Opts { stat_format, ..Opts::default() })?;
    if is_contention {
        counter.with_ftrace_filter(SPIN)?;
    }
    Ok(counter)
}

fn refused(cpu: u32, error: &io::Error) -> RecordError {
    let remedy = if error.raw_os_error() == Some(EMFILE) {
        format!("allow more open files with `ulimit -n`: each CPU takes {TRACEPOINT_COUNT}")
    } else {
        "run it as root or with CAP_PERFMON, or lower kernel.perf_event_paranoid to -1".to_owned()
    };
    RecordError::Refused { problem: format!("the kernel does not count tracepoints on CPU {cpu}: {error}"), remedy }
}
