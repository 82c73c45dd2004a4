//! The kernel's counters (`perf_event_open`), one for each tracepoint and CPU.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::thread;

use pageset_trace::TracepointCount;
use pageset_trace::raw::Callers;
use perf_event_open::config::{
    All, CallChain, Cpu, Opts, RecordIdFormat, SampleFormat, SampleOn, StatFormat,
};
use perf_event_open::count::Counter;
use perf_event_open::event::tp::Tracepoint;
use perf_event_open::sample::Sampler;
use perf_event_open::sample::record::Record;
use perf_event_open::sample::record::sample::CallChain as Chain;

use super::by_task::TaskNumbers;
use super::visits::{Block, Moved, visits};
use super::{Seen, Slice, TRACEPOINT_COUNT, TRACEPOINTS};
use crate::cpus::CpuList;
use crate::error::RecordError;
use crate::tracefs::{Tracefs, read};

/// Selects waits for locks whose `flags` are `SPIN` (1) or, on a real-time kernel, `RT` (8).
const SPIN: &std::ffi::CStr = c"flags == 1 || flags == 8";
/// Number of tracepoints whose hits are sampled.
const SAMPLED: usize = 2;
/// Exponent of a buffer's length: 2^6 pages hold fifteen hundred hits with call chains.
const BUFFER_EXPONENT: u8 = 6;
/// Maximum number of functions that are kept of a call chain. In a chain, up to a dozen functions belong to
/// the allocators. To keep more functions would make each hit slower.
const CHAIN_MAX: u16 = 16;
/// The error number for too many open files.
const EMFILE: i32 = 24;

/// Counters of some CPUs. All counters are off at first.
pub(crate) struct Counters {
    /// The counters of each tracepoint. The list is empty for a tracepoint that the kernel does not have.
    of_tracepoint: [Vec<OfCpu>; TRACEPOINT_COUNT],
    /// Ids of the tracepoints that the kernel has.
    ids: [Option<u64>; TRACEPOINT_COUNT],
    cpus: CpuList,
    /// Buffers with each moved block and its time, by CPU. The list is empty if a tracepoint is missing or
    /// the kernel gives no buffers.
    samples: Vec<[Samples; SAMPLED]>,
    /// The kernel's functions. `None` if the kernel does not keep call chains.
    callers: Option<Callers>,
}

/// The sampled hits of one tracepoint on one CPU.
struct Samples {
    // The buffer must be dropped before the counter.
    buffer: Sampler,
    of_cpu: OfCpu,
    moved: Moved,
}

struct OfCpu {
    counter: Counter,
    /// The counter's value at the previous reading.
    hits: u64,
    enabled_ns: u64,
}

impl Counters {
    /// # Errors
    /// An error if the kernel refuses the counters.
    pub(crate) fn open(cpus: &CpuList) -> Result<Self, RecordError> {
        let tracefs = Tracefs::find()?;
        let mut of_tracepoint = [const { Vec::new() }; TRACEPOINT_COUNT];
        let mut ids = [None; TRACEPOINT_COUNT];
        for ((name, counters), known) in TRACEPOINTS.iter().zip(&mut of_tracepoint).zip(&mut ids) {
            let path = tracefs.path(Path::new("events").join(name).join("id"));
            if !path.exists() {
                continue;
            }
            let id = read(&path)?;
            let id = id.trim().parse().map_err(|_| RecordError::unknown(&path, "it is not a number"))?;
            *known = Some(id);
            *counters = of_cpus(id, cpus, name)?;
        }
        if of_tracepoint.iter().all(Vec::is_empty) {
            return Err(RecordError::Refused {
                problem: "this kernel has none of the tracepoints of page allocation".to_owned(),
                remedy: "record under a kernel with CONFIG_TRACEPOINTS, as distributions have it".to_owned(),
            });
        }
        let samples = |has_chains: bool| {
            cpus.iter().map(|cpu| samples(&ids, cpu, has_chains)).collect::<Option<Vec<_>>>()
        };
        let mut callers = Callers::read();
        let mut all = callers.as_ref().and_then(|_| samples(true));
        if all.is_none() {
            (callers, all) = (None, samples(false));
        }
        Ok(Self { of_tracepoint, ids, cpus: cpus.clone(), samples: all.unwrap_or_default(), callers })
    }

    /// Whether the kernel has the tracepoint.
    pub(crate) fn has(&self, tracepoint: usize) -> bool {
        self.ids[tracepoint].is_some()
    }

    /// Opens the counters of a tracepoint again. The opened counters are off.
    ///
    /// # Errors
    /// An error if the kernel refuses the counters.
    pub(crate) fn attach(&mut self, tracepoint: usize) -> Result<(), RecordError> {
        if let Some(id) = self.ids[tracepoint].filter(|_| self.of_tracepoint[tracepoint].is_empty()) {
            self.of_tracepoint[tracepoint] = of_cpus(id, &self.cpus, TRACEPOINTS[tracepoint])?;
        }
        Ok(())
    }

    /// Closes the counters of a tracepoint, so that its hits cost nothing. Hits since the last call of `take`
    /// are lost.
    pub(crate) fn detach(&mut self, tracepoint: usize) {
        let counters = std::mem::take(&mut self.of_tracepoint[tracepoint]);
        if !counters.is_empty() {
            // Closing waits some 50 ms in the kernel until no CPU uses the counters. Let another thread close
            // the counters and wait.
            thread::spawn(move || drop(counters));
        }
    }

    /// Switches a tracepoint on or off, on all CPUs.
    ///
    /// # Errors
    /// An error if the kernel refuses to switch a counter.
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

    /// Returns the hits of a tracepoint since the last call.
    pub(crate) fn take(&mut self, tracepoint: usize) -> Slice {
        let mut slice = Slice::default();
        let mut enabled = Mean::default();
        for of_cpu in &mut self.of_tracepoint[tracepoint] {
            // A CPU that went offline does not have a counter any more.
            let Some((hits, here_ns)) = of_cpu.take() else { continue };
            slice.hits += hits;
            enabled.add(here_ns);
            if here_ns > 0 {
                slice.busiest_per_second = slice.busiest_per_second.max(hits as f64 / here_ns as f64 * 1e9);
            }
        }
        slice.mean_ns = enabled.mean();
        slice
    }

    /// Whether visits to zones can be counted from samples.
    pub(crate) fn can_sample(&self) -> bool {
        !self.samples.is_empty()
    }

    /// Switches sampling on or off, on all CPUs.
    ///
    /// # Errors
    /// An error if the kernel refuses to switch a counter.
    pub(crate) fn switch_samples(&mut self, is_on: bool) -> Result<(), RecordError> {
        for samples in self.samples.iter().flatten() {
            let counter = &samples.of_cpu.counter;
            let switched = if is_on { counter.enable() } else { counter.disable() };
            switched.map_err(|error| RecordError::io("events/kmem", "sample", error))?;
        }
        Ok(())
    }

    /// Whether the call sites of visits are known.
    pub(crate) fn has_chains(&self) -> bool {
        self.can_sample() && self.callers.is_some()
    }

    /// The name of the function with this call-site id.
    pub(crate) fn site_name(&self, site: u32) -> String {
        self.callers.as_ref().map_or_else(String::new, |callers| callers.name(site).to_owned())
    }

    /// Returns the zone visits since the last call.
    pub(crate) fn take_samples(&mut self) -> Seen {
        let (mut by_task, mut by_site) = (HashMap::new(), HashMap::new());
        let mut chains: Vec<Vec<Chain>> = Vec::new();
        let mut enabled = Mean::default();
        let mut hits = 0;
        for of_cpu in &mut self.samples {
            let mut all = Vec::new();
            chains.clear();
            let mut happened = 0;
            for samples in of_cpu {
                let kept =
                    samples.buffer.iter().into_iter().flatten().filter_map(|(_, record)| match record {
                        Record::Sample(sample) => {
                            Some((sample.record_id.time?, sample.record_id.task, sample.call_chain))
                        }
                        _ => None,
                    });
                all.extend(kept.map(|(time_ns, task, chain)| {
                    let task = task.map(|task| TaskNumbers { tid: task.tid, process: task.pid });
                    chains.push(chain.unwrap_or_default());
                    let chain = chains.len() - 1;
                    Block { time_ns, moved: samples.moved, task: task.unwrap_or_default(), chain }
                }));
                if let Some((hits, here_ns)) = samples.of_cpu.take() {
                    happened += hits;
                    enabled.add(here_ns);
                }
            }
            let kept = all.len() as u64;
            // Hits were lost if the buffer was full. Assume that lost hits belong to visits of the same size
            // as the kept hits do.
            let weight = if kept > 0 { happened.max(kept) as f64 / kept as f64 } else { 1.0 };
            let mut here = 0.0;
            for block in visits(&mut all) {
                here += weight;
                *by_task.entry(block.task).or_default() += weight;
                if let Some(callers) = &self.callers {
                    let site = callers.site(addresses(&chains[block.chain]));
                    *by_site.entry(site).or_default() += weight;
                }
            }
            hits += here as u64;
        }
        let slice = Slice { hits, mean_ns: enabled.mean(), busiest_per_second: 0.0 };
        Seen { slice, by_task, by_site }
    }
}

/// The kernel addresses of a call chain.
fn addresses(chain: &[Chain]) -> impl Iterator<Item = u64> {
    let kernel = chain.iter().filter_map(|part| match part {
        Chain::Kernel(addresses) => Some(addresses),
        _ => None,
    });
    kernel.flatten().copied()
}

impl OfCpu {
    /// Returns the counter's hits since the last call, and the time that the counter was on, in nanoseconds.
    fn take(&mut self) -> Option<(u64, u64)> {
        let stat = self.counter.stat().ok()?;
        let now_ns = stat.time_enabled.unwrap_or(0);
        let taken = (stat.count.saturating_sub(self.hits), now_ns.saturating_sub(self.enabled_ns));
        (self.hits, self.enabled_ns) = (stat.count, now_ns);
        Some(taken)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum_ns: u64,
    count: u64,
}

impl Mean {
    fn add(&mut self, ns: u64) {
        self.sum_ns += ns;
        self.count += 1;
    }

    fn mean(self) -> u64 {
        self.sum_ns / self.count.max(1)
    }
}

/// Opens the buffers of a CPU. `None` if the kernel lacks a tracepoint or gives no buffer.
fn samples(ids: &[Option<u64>; TRACEPOINT_COUNT], cpu: u32, has_chains: bool) -> Option<[Samples; SAMPLED]> {
    let mut all = Vec::new();
    for (name, moved) in
        [(TracepointCount::ZONE_LOCKED, Moved::Out), (TracepointCount::PCPU_DRAIN, Moved::Back)]
    {
        let index = TRACEPOINTS.iter().position(|tracepoint| *tracepoint == name)?;
        let stat_format = StatFormat { time_enabled: true, ..StatFormat::default() };
        let record_id_format = RecordIdFormat { time: true, task: true, ..RecordIdFormat::default() };
        let sample_on = SampleOn::Count(1);
        let call_chain = has_chains.then_some(CallChain {
            exclude_user: true,
            exclude_kernel: false,
            defer_user: false,
            max_stack_frames: CHAIN_MAX,
        });
        let sample_format = SampleFormat { call_chain, ..SampleFormat::default() };
        let opts = Opts { stat_format, record_id_format, sample_format, sample_on, ..Opts::default() };
        let counter = Counter::new(Tracepoint { id: ids[index]? }, (All, Cpu(cpu)), opts).ok()?;
        let buffer = counter.sampler(BUFFER_EXPONENT).ok()?;
        all.push(Samples { buffer, of_cpu: OfCpu { counter, hits: 0, enabled_ns: 0 }, moved });
    }
    all.try_into().ok()
}

fn of_cpus(id: u64, cpus: &CpuList, name: &str) -> Result<Vec<OfCpu>, RecordError> {
    let one = |cpu| {
        let counter =
            open(id, cpu, name == TracepointCount::CONTENTION).map_err(|error| refused(cpu, &error))?;
        Ok(OfCpu { counter, hits: 0, enabled_ns: 0 })
    };
    cpus.iter().map(one).collect()
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
        format!("allow more open files with `ulimit -n`: each CPU takes {}", TRACEPOINT_COUNT + SAMPLED)
    } else {
        "run it as root or with CAP_PERFMON, or lower kernel.perf_event_paranoid to -1".to_owned()
    };
    RecordError::Refused {
        problem: format!("the kernel does not count tracepoints on CPU {cpu}: {error}"),
        remedy,
    }
}
