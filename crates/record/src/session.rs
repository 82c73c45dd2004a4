//! A recording, from the instance of the kernel's tracing to the finished trace.

use std::{
    ffi::OsString,
    io::{self, Write},
    process::{Child, Command, ExitStatus},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use pageset_trace::{Event, LostEvents, TraceInfo};

use crate::clock::now_ns;
use crate::cpus::CpuList;
use crate::error::RecordError;
use crate::instance::Instance;
use crate::losses::kernel_counts;
use crate::machine;
use crate::merge::Merger;
use crate::options::Options;
use crate::ring::{Reading, Ring};
use crate::sampler::Sampler;
use crate::setup::{Setup, set_up};
use crate::tracefs::Tracefs;
use crate::writing::{self, Piece};

/// Between two rounds of reading, as long as the buffers are far from full.
const PAUSE: Duration = Duration::from_millis(10);
/// Pieces that wait for the writing thread; then the reading one waits too, and the kernel's buffers fill.
const PIECES_MAX: usize = 4;

/// How far a recording is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Status {
    /// Since recording was switched on.
    pub elapsed: Duration,
    /// Events so far.
    pub events: u64,
    /// Events known to be missing so far.
    pub lost: u64,
    /// Bytes written so far.
    pub bytes: u64,
    /// How full the fullest buffer was when it was read, 0 to 1.
    pub fill: f64,
}

/// Whether a recording goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Going {
    /// It does.
    On,
    /// It ends now.
    End,
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its time was over.
    Time,
    /// Its command ended.
    Command(ExitStatus),
    /// Whoever watched it said so.
    Asked,
}

/// A recording that is over, and written.
#[derive(Clone, Debug)]
pub struct Recording {
    /// What the trace says about itself.
    pub info: TraceInfo,
    /// Events in it.
    pub events: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// What is missing.
    pub lost: LostEvents,
    /// Time for which recording was switched on.
    pub duration: Duration,
    /// Why it ended.
    pub ending: Ending,
    /// The command's process, if the recording ended before it.
    pub still_running: Option<u32>,
}

/// A recording that can begin. Dropped, it leaves nothing behind.
pub struct Session {
    options: Options,
    cpus: CpuList,
    buffer_bytes: u64,
    setup: Setup,
    /// Instances of recorders that were killed, which were removed.
    pub removed: Vec<String>,
    instance: Instance,
}

impl Session {
    /// Makes an instance and sets it up. Instances that killed recorders have left are removed.
    ///
    /// # Errors
    /// Something that a recording needs is missing, or not allowed.
    pub fn prepare(options: Options) -> Result<Self, RecordError> {
        let tracefs = Tracefs::find()?;
        let (instance, removed) = Instance::create(&tracefs)?;
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
        let setup = set_up(&tracefs, &instance, &cpus, buffer_bytes, options.with_faults)?;
        Ok(Self { options, cpus, buffer_bytes, setup, removed, instance })
    }

    /// What will not be recorded, each with the reason.
    #[must_use]
    pub fn not_recorded(&self) -> &[String] {
        &self.setup.not_recorded
    }

    /// Bytes of the kernel's buffer for each CPU.
    #[must_use]
    pub fn buffer_bytes(&self) -> u64 {
        self.buffer_bytes
    }

    /// Records into `out`. `watch` is told how far it is, a hundred times a second if nothing else is to be done.
    ///
    /// # Errors
    /// The command cannot be started, `out` refuses, or the kernel does.
    pub fn run(
        self,
        out: impl Write + Send,
        watch: &mut dyn FnMut(&Status) -> Going,
    ) -> Result<Recording, RecordError> {
        let Self { options, cpus, buffer_bytes, setup, instance, .. } = self;
        let Setup { layout, decoder, not_recorded } = setup;
        let page_bytes = layout.page_bytes;
        let sampler = Sampler::new(&instance, cpus.clone())?;
        let since_ns = now_ns();
        let rings = cpus.iter().map(|cpu| Ring::open(&instance, cpu, &layout, since_ns));
        let merger = Merger::new(rings.collect::<Result<_, _>>()?, layout, decoder);
        let mut head = describe(&options, &cpus, not_recorded)?;
        if !sampler.is_marking() {
            head.not_recorded.push("marks around samples: trace_marker_raw cannot be written".to_owned());
        }

        let stop = AtomicBool::new(false);
        let bytes = AtomicU64::new(0);
        let pids = Mutex::new(Vec::new());
        note_pid(&pids);
        let (sender, pieces) = sync_channel(PIECES_MAX);
        thread::scope(|scope| {
            let samples = scope.spawn(|| {
                note_pid(&pids);
                sampler.run(&stop)
            });
            let first = head.clone();
            let (shared_pids, shared_bytes) = (&pids, &bytes);
            let writer = scope.spawn(move || {
                note_pid(shared_pids);
                let head = TraceInfo { recorder_pids: pids_of(shared_pids), ..first };
                writing::write(out, &head, &pieces, shared_bytes)
            });
            let mut reader = Reader {
                merger,
                sender,
                batch: Vec::new(),
                events: 0,
                buffer_pages: (buffer_bytes / page_bytes as u64).max(1),
                bytes: &bytes,
                instance: &instance,
            };
            let ended = reader.record(&options, &mut head, watch);
            stop.store(true, Ordering::Relaxed);
            samples.thread().unpark();
            head.samples = samples.join().unwrap_or_default();
            // One that was taken while recording was switched off has no marks.
            head.samples.retain(|sample| head.t_off_ns.is_none_or(|off_ns| sample.t1_ns <= off_ns));
            for cpu in cpus.iter().filter(|cpu| !head.samples.iter().any(|sample| sample.cpu == *cpu)) {
                head.not_recorded.push(format!(
                    "samples of CPU {cpu}: the recorder was too short there, or may not run there"
                ));
            }
            let ended = ended.and_then(|ended| reader.finish(&cpus, &mut head).map(|lost| (ended, lost)));
            head.recorder_pids = pids_of(&pids);
            let Reader { sender, events, .. } = reader;
            if let Ok((_, lost)) = &ended {
                // If the writing thread is gone, it says why.
                drop(sender.send(Piece::End(Box::new(head.clone()), *lost)));
            }
            drop(sender);
            let written =
                writer.join().unwrap_or_else(|_| Err(io::Error::other("the writing thread failed")));
            let bytes = written.map_err(RecordError::Output)?;
            let ((ending, duration, still_running), lost) = ended?;
            Ok(Recording { info: head, events, bytes, lost, duration, ending, still_running })
        })
    }
}

/// What is known when a recording begins.
fn describe(options: &Options, cpus: &CpuList, not_recorded: Vec<String>) -> Result<TraceInfo, RecordError> {
    let before = machine::snapshot()?;
    let mut info = TraceInfo {
        kernel: Some(machine::kernel()),
        command: options.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        cpus: u32::try_from(CpuList::online().len()).ok(),
        not_recorded,
        ..TraceInfo::default()
    };
    if cpus.len() < CpuList::online().len() {
        info.not_recorded.push(format!("other CPUs than {cpus}: not asked for"));
    }
    match machine::layout(&before) {
        Ok(layout) => info.machine = Some(layout),
        Err(problem) => info.not_recorded.push(format!("the machine: {problem}")),
    }
    info.before = Some(before);
    Ok(info)
}

/// Reads what the kernel writes, and hands it to the writing thread.
struct Reader<'a> {
    merger: Merger,
    sender: SyncSender<Piece>,
    batch: Vec<Event>,
    events: u64,
    buffer_pages: u64,
    bytes: &'a AtomicU64,
    instance: &'a Instance,
}

impl Reader<'_> {
    /// Switches recording on, follows it to its end, and switches it off.
    fn record(
        &mut self,
        options: &Options,
        head: &mut TraceInfo,
        watch: &mut dyn FnMut(&Status) -> Going,
    ) -> Result<(Ending, Duration, Option<u32>), RecordError> {
        let on = Instant::now();
        head.t_on_ns = Some(now_ns());
        self.instance.set("tracing_on", "1")?;
        head.t_start_ns = head.t_on_ns;
        let mut child = match options.command.split_first() {
            Some((program, arguments)) => {
                head.t_start_ns = Some(now_ns());
                Some(start(program, arguments)?)
            }
            None => None,
        };
        let ending = self.follow(options, child.as_mut(), on, watch);
        head.t_end_ns = Some(now_ns());
        self.instance.set("tracing_on", "0")?;
        head.t_off_ns = Some(now_ns());
        let after = machine::snapshot()?;
        if let Some(before) = &head.before {
            head.pgalloc_delta = Some(machine::allocated(&before.vmstat, &after.vmstat));
            head.pgfree_delta = machine::freed(&before.vmstat, &after.vmstat);
        }
        head.after = Some(after);
        let ending = ending?;
        let is_over = matches!(ending, Ending::Command(_));
        Ok((ending, on.elapsed(), child.filter(|_| !is_over).map(|child| child.id())))
    }

    fn follow(
        &mut self,
        options: &Options,
        mut child: Option<&mut Child>,
        on: Instant,
        watch: &mut dyn FnMut(&Status) -> Going,
    ) -> Result<Ending, RecordError> {
        // Pages read without a pause: about as many were waiting.
        let mut pages = 0;
        loop {
            let round = self.round()?;
            pages += round.pages as u64;
            if let Some(child) = child.as_mut()
                && let Some(status) = child.try_wait().map_err(|error| RecordError::Command {
                    program: options.command[0].to_string_lossy().into_owned(),
                    source: error,
                })?
            {
                return Ok(Ending::Command(status));
            }
            let elapsed = on.elapsed();
            if options.duration.is_some_and(|duration| elapsed >= duration) {
                return Ok(Ending::Time);
            }
            let status = Status {
                elapsed,
                events: self.events,
                lost: self.merger.losses.events(),
                bytes: self.bytes.load(Ordering::Relaxed),
                fill: (pages as f64 / self.buffer_pages as f64).min(1.0),
            };
            if watch(&status) == Going::End {
                return Ok(Ending::Asked);
            }
            if !round.is_cut {
                pages = 0;
                let rest = options.duration.map_or(PAUSE, |duration| duration.saturating_sub(elapsed));
                thread::sleep(PAUSE.min(rest));
            }
        }
    }

    /// Reads each ring once.
    fn round(&mut self) -> Result<Reading, RecordError> {
        let path = || self.instance.path("per_cpu");
        let round =
            self.merger.round(&mut self.batch).map_err(|error| RecordError::io(path(), "read", error))?;
        self.hand_on()?;
        Ok(round)
    }

    /// Hands on what is read.
    fn hand_on(&mut self) -> Result<(), RecordError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        self.events += self.batch.len() as u64;
        let piece = Piece::Events(std::mem::take(&mut self.batch));
        self.sender.send(piece).map_err(|_| RecordError::Output(io::Error::other("the writing thread ended")))
    }

    /// Hands on all that the kernel still has, when recording is switched off; returns what is missing.
    fn finish(&mut self, cpus: &CpuList, head: &mut TraceInfo) -> Result<LostEvents, RecordError> {
        while self.round()?.pages > 0 || self.merger.is_behind() {}
        self.merger.finish(&mut self.batch);
        self.hand_on()?;
        let kernel = kernel_counts(self.instance, cpus.iter());
        let losses = &mut self.merger.losses;
        head.gaps = std::mem::take(&mut losses.gaps);
        Ok(losses.total(&kernel))
    }
}

fn start(program: &OsString, arguments: &[OsString]) -> Result<Child, RecordError> {
    Command::new(program)
        .args(arguments)
        .spawn()
        .map_err(|source| RecordError::Command { program: program.to_string_lossy().into_owned(), source })
}

/// Notes that this thread is one of the recorder's.
fn note_pid(pids: &Mutex<Vec<u32>>) {
    let pid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    pids.lock().unwrap_or_else(PoisonError::into_inner).push(pid);
}

fn pids_of(pids: &Mutex<Vec<u32>>) -> Vec<u32> {
    let mut pids = pids.lock().unwrap_or_else(PoisonError::into_inner).clone();
    pids.sort_unstable();
    pids
}
