//! Makes a recording, from the kernel's tracing instance to the finished trace.

use std::{
    io::{self, Write},
    process::ExitStatus,
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{channel, sync_channel},
    },
    thread,
    time::Duration,
};

use pageset_trace::{
    LostEvents, RECORDER_UNKNOWN, Sample, Tasks, TraceInfo,
    raw::{Decoder, PageLayout},
};

use crate::alarm::Alarm;
use crate::clock::now_ns;
use crate::condition::{Condition, Met};
use crate::cost::{busy, busy_ns_since};
use crate::cpus::CpuList;
use crate::error::RecordError;
use crate::instance::Instance;
use crate::intrusion::Intrusions;
use crate::machine;
use crate::merge::Merger;
use crate::options::Options;
use crate::reader::Reader;
use crate::ring::Ring;
use crate::roll_call::RollCall;
use crate::sampler::Sampler;
use crate::setup::{EventChoice, Setup, set_up};
use crate::task_watch::{Numbers, TaskWatch};
use crate::tracefs::Tracefs;
use crate::writing;

/// Maximum number of pieces that wait for the writing thread. When this many pieces wait, the reading thread
/// waits too, and the kernel's buffers fill.
const PIECES_MAX: usize = 4;

/// The progress of a recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Status {
    /// Time since recording was switched on.
    pub elapsed: Duration,
    /// Number of events so far.
    pub events: u64,
    /// Number of events so far that are known to be missing.
    pub lost: u64,
    /// Bytes written so far.
    pub bytes: u64,
    /// Fill level of the fullest buffer at the last reading, from 0 to 1.
    pub fill: f64,
}

/// Whether a recording continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Going {
    /// The recording continues.
    On,
    /// The recording ends now.
    End,
}

/// The reason why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The time of the recording is over.
    Time,
    /// The command of the recording has ended.
    Command(ExitStatus),
    /// The caller's callback has ended the recording.
    Asked,
    /// The condition of the recording was met.
    Met(Met),
}

/// A finished recording, which has been written.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The trace's information about itself.
    pub info: TraceInfo,
    /// Number of events in the trace.
    pub events: u64,
    /// Size of the trace in bytes.
    pub bytes: u64,
    /// Numbers of events that are missing or could not be used.
    pub lost: LostEvents,
    /// Time from the moment when recording was switched on to the moment when it was switched off.
    pub duration: Duration,
    /// The reason why the recording ended.
    pub ending: Ending,
    /// The number of the command's process, if it still runs after the recording.
    pub still_running: Option<u32>,
}

/// A recording that is ready to begin. A session that is dropped leaves nothing in the kernel.
pub struct Session {
    options: Options,
    cpus: CpuList,
    buffer_bytes: u64,
    setup: Setup,
    alarm: Option<Alarm>,
    /// Names of the instances of killed recorders that were removed.
    pub removed: Vec<String>,
    instance: Instance,
}

impl Session {
    /// Creates a tracing instance and sets it up. Removes instances that killed recorders left.
    ///
    /// # Errors
    /// An error if something that a recording needs is missing or forbidden.
    pub fn prepare(options: Options) -> Result<Self, RecordError> {
        let tracefs = Tracefs::find()?;
        let (instance, removed) = Instance::create(&tracefs, "")?;
        let online = CpuList::online();
        let cpus = options.cpus.clone().unwrap_or_else(|| online.clone());
        if let Some(cpu) = cpus.iter().find(|cpu| !online.contains(*cpu)) {
            return Err(RecordError::Refused {
                problem: format!("there is no CPU {cpu}, or it is switched off"),
                remedy: "/sys/devices/system/cpu/online names those that are on".to_owned(),
            });
        }
        let memory = rustix::system::sysinfo();
        let memory_bytes = (memory.totalram as u64).saturating_mul(u64::from(memory.mem_unit));
        let buffer_bytes =
            options.buffer_bytes.unwrap_or_else(|| Options::buffer_bytes_of(cpus.len(), memory_bytes));
        let wanted = EventChoice {
            only: None,
            with_faults: options.with_faults,
            with_call_chains: options.with_call_chains
                || options.until.is_some_and(Condition::needs_call_chains),
        };
        let setup = set_up(&tracefs, &instance, &cpus, buffer_bytes, wanted)?;
        let alarm = options.until.map(|condition| Alarm::prepare(&tracefs, &cpus, condition));
        Ok(Self { options, cpus, buffer_bytes, setup, alarm: alarm.transpose()?, removed, instance })
    }

    /// Events and facts that will not be recorded. Each entry has the reason.
    #[must_use]
    pub fn not_recorded(&self) -> &[String] {
        &self.setup.not_recorded
    }

    /// Size of the kernel's buffer per CPU, in bytes.
    #[must_use]
    pub fn buffer_bytes(&self) -> u64 {
        self.buffer_bytes
    }

    /// Records into `out`. Calls `tell` with the progress about a hundred times a second while few events
    /// come.
    ///
    /// # Errors
    /// An error if the command cannot be started, if `out` cannot be written, or if the kernel reports an
    /// error.
    pub fn run(
        self,
        out: impl Write + Send,
        tell: &mut dyn FnMut(&Status) -> Going,
    ) -> Result<Recording, RecordError> {
        let Self { options, cpus, buffer_bytes, setup, mut alarm, instance, .. } = self;
        let (stop, bytes) = (AtomicBool::new(false), AtomicU64::new(0));
        let roll_call = RollCall::begin(&instance)?;
        let (sender, pieces) = sync_channel(PIECES_MAX);
        thread::scope(|scope| {
            // The two other threads answer the roll call, and then wait on these channels. If this thread
            // fails before it sends, the channels close, and the two other threads end.
            let (give_head, head_given) = channel();
            let (give_sampler, sampler_given) = channel::<Sampler>();
            let (roll_call, stop, bytes) = (&roll_call, &stop, &bytes);
            let samples = scope.spawn(move || {
                roll_call.answer();
                sampler_given.recv().map(|sampler| sampler.run(stop)).unwrap_or_default()
            });
            let writer = scope.spawn(move || {
                roll_call.answer();
                match head_given.recv() {
                    Ok(head) => writing::write(out, &head, &pieces, bytes),
                    Err(_) => Ok(0),
                }
            });
            let pids = roll_call.end(&cpus, &setup.layout, &setup.decoder)?;
            let mut head = describe(&options, &cpus, setup.recorded, setup.not_recorded)?;
            match pids {
                Ok(pids) => head.recorder_pids = pids,
                Err(reason) => head.not_recorded.push(format!("{RECORDER_UNKNOWN}: {reason}")),
            }
            let tasks = options.with_names.then(|| watch_tasks(&mut head)).flatten();
            let sampler = Sampler::new(&instance, cpus.clone())?;
            if !sampler.is_marking() {
                head.not_recorded.push("marks around samples: trace_marker_raw cannot be written".to_owned());
            }
            let intrusions = Intrusions::watch(&instance, &setup.directories, &cpus);
            let buffer_pages = (buffer_bytes / setup.layout.page_bytes as u64).max(1);
            let merger = merger(&instance, &cpus, setup.layout, setup.decoder)?;
            let reading = options.reading;
            let mut reader = Reader::new(&instance, intrusions, merger, sender, bytes, buffer_pages, reading);
            reader.tasks = tasks;
            // Both other threads wait on these channels, so both sends succeed.
            drop((give_head.send(head.clone()), give_sampler.send(sampler)));
            let busy_before = busy();
            let ended = reader.record(&options, &mut head, alarm.as_mut(), tell);
            head.busy_ns = busy_ns_since(busy_before);
            stop.store(true, Ordering::Relaxed);
            samples.thread().unpark();
            let (samples, setting_changes) = samples.join().unwrap_or_default();
            put_samples(&mut head, samples, &cpus);
            head.setting_changes = setting_changes;
            if options.cpus.is_none() {
                note_newcomers(&mut head, &cpus);
            }
            let ended = ended.and_then(|ended| reader.finish(&mut head).map(|lost| (ended, lost)));
            let still_running = reader.still_running;
            let events = reader.end(ended.as_ref().ok().map(|(_, lost)| (head.clone(), *lost)));
            let written =
                writer.join().unwrap_or_else(|_| Err(io::Error::other("the writing thread failed")));
            let bytes = written.map_err(|source| RecordError::Output {
                source,
                bytes: bytes.load(Ordering::Relaxed),
                still_running,
            })?;
            let ((ending, duration), lost) = ended?;
            Ok(Recording { info: head, events, bytes, lost, duration, ending, still_running })
        })
    }
}

/// Follows the names of tasks. If names cannot be followed, notes the reason in the trace.
fn watch_tasks(head: &mut TraceInfo) -> Option<TaskWatch> {
    // The roll call has shown the numbers of the recorder's threads in the trace.
    let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    let numbers = if head.recorder_pids.contains(&own) { Numbers::OfTheTrace } else { Numbers::Others };
    if numbers == Numbers::Others {
        let why = "/proc has other numbers than the trace, as in a container";
        head.not_recorded.push(format!("names of tasks that ran before: {why}"));
    }
    match TaskWatch::begin(numbers) {
        Ok(watch) => {
            head.tasks = Some(Tasks::default());
            Some(watch)
        }
        Err(error) => {
            head.not_recorded.push(format!("names of tasks: {error}"));
            None
        }
    }
}

/// Makes a reader of the rings of these CPUs. The events of the rings begin at the time of this call.
fn merger(
    instance: &Instance,
    cpus: &CpuList,
    layout: PageLayout,
    decoder: Decoder,
) -> Result<Merger, RecordError> {
    let since_ns = now_ns();
    let rings = cpus.iter().map(|cpu| Ring::open(instance, cpu, &layout, since_ns));
    Ok(Merger::new(rings.collect::<Result<_, _>>()?, layout, decoder))
}

/// Collects the information that is known when a recording begins.
pub(crate) fn describe(
    options: &Options,
    cpus: &CpuList,
    recorded: Vec<String>,
    not_recorded: Vec<String>,
) -> Result<TraceInfo, RecordError> {
    let before = machine::snapshot()?;
    let mut info = TraceInfo {
        kernel: Some(machine::kernel()),
        command: options.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        cpus: u32::try_from(CpuList::online().len()).ok(),
        recorded,
        not_recorded,
        recording_cost: options.cost,
        visit_cost: options.visit_cost.clone(),
        ..TraceInfo::default()
    };
    // A CPU that comes online later is named at the end of the recording.
    if options.cpus.is_some() && cpus.len() < CpuList::online().len() {
        info.not_recorded.push(format!("other CPUs than {cpus}: not asked for"));
    }
    match machine::layout(&before) {
        Ok(layout) => info.machine = Some(layout),
        Err(problem) => info.not_recorded.push(format!("the machine: {problem}")),
    }
    info.before = Some(before);
    Ok(info)
}

/// Stores the samples of the CPUs, and names the CPUs without a sample.
fn put_samples(head: &mut TraceInfo, mut samples: Vec<Sample>, cpus: &CpuList) {
    // A sample has no marks if it was taken after recording was switched off.
    samples.retain(|sample| head.t_off_ns.is_none_or(|off_ns| sample.t1_ns <= off_ns));
    for cpu in cpus.iter().filter(|cpu| !samples.iter().any(|sample| sample.cpu == *cpu)) {
        let reason = "the recording was too short, or the recorder may not run there";
        head.not_recorded.push(format!("samples of CPU {cpu}: {reason}"));
    }
    head.samples = samples;
}

/// Notes CPUs that came online during a recording of all CPUs. Events of CPUs that came online later are not
/// in the recording.
pub(crate) fn note_newcomers(head: &mut TraceInfo, cpus: &CpuList) {
    for cpu in CpuList::online().iter().filter(|cpu| !cpus.contains(*cpu)) {
        head.not_recorded.push(format!("CPU {cpu}: it was switched on meanwhile"));
    }
}
