//! The reading thread. This thread works from the moment when recording is switched on to the last event.

use std::{
    ffi::OsString,
    io,
    process::{Child, Command},
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc::SyncSender,
    },
    thread,
    time::{Duration, Instant},
};

use pageset_trace::{Event, LostEvents, TraceInfo, raw::RingCounts};

use crate::alarm::Alarm;
use crate::clock::now_ns;
use crate::error::RecordError;
use crate::instance::Instance;
use crate::intrusion::Intrusions;
use crate::losses::{Compared, counts_of};
use crate::machine;
use crate::merge::Merger;
use crate::options::{Options, Timing};
use crate::ring::Reading;
use crate::session::{Ending, Going, Status};
use crate::task_watch::TaskWatch;
use crate::writing::Piece;

/// Pause between two rounds of reading, if the buffers are far from full.
const PAUSE: Duration = Duration::from_millis(10);

/// Reads the kernel's buffers and sends events to the writing thread.
pub(crate) struct Reader<'a> {
    merger: Merger,
    sender: SyncSender<Piece>,
    batch: Vec<Event>,
    events: u64,
    buffer_pages: u64,
    bytes: &'a AtomicU64,
    instance: &'a Instance,
    intrusions: Intrusions,
    timing: Timing,
    /// Follows names of tasks, if the caller wants them.
    pub(crate) tasks: Option<TaskWatch>,
    /// Events before this time are left out, because the buffers of a flight recorder begin at different
    /// times.
    begin_ns: u64,
    /// The number of the command's process. `None` once the command has ended.
    pub(crate) still_running: Option<u32>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(
        instance: &'a Instance,
        intrusions: Intrusions,
        merger: Merger,
        sender: SyncSender<Piece>,
        bytes: &'a AtomicU64,
        buffer_pages: u64,
        timing: Timing,
    ) -> Self {
        Self {
            merger,
            sender,
            batch: Vec::new(),
            events: 0,
            buffer_pages,
            bytes,
            instance,
            intrusions,
            timing,
            tasks: None,
            begin_ns: 0,
            still_running: None,
        }
    }

    /// Switches recording on, reads until the recording ends, and switches recording off.
    pub(crate) fn record(
        &mut self,
        options: &Options,
        head: &mut TraceInfo,
        mut alarm: Option<&mut Alarm>,
        tell: &mut dyn FnMut(&Status) -> Going,
    ) -> Result<(Ending, Duration), RecordError> {
        let on = Instant::now();
        head.t_on_ns = Some(now_ns());
        self.instance.set("tracing_on", "1")?;
        self.intrusions.begin();
        if let Some(alarm) = &alarm {
            alarm.begin()?;
        }
        head.t_start_ns = head.t_on_ns;
        let mut child = match options.command.split_first() {
            Some((program, arguments)) => {
                head.t_start_ns = Some(now_ns());
                Some(start(program, arguments)?)
            }
            None => None,
        };
        self.still_running = child.as_ref().map(Child::id);
        let ending = self.follow(options, child.as_mut(), on, alarm.as_deref_mut(), tell);
        head.t_end_ns = Some(now_ns());
        if matches!(ending, Ok(Ending::Command(_))) {
            self.still_running = None;
        }
        self.intrusions.look(on.elapsed());
        if !self.instance.is_recording() {
            head.not_recorded.push("the end: another program switched recording off (tracing_on)".to_owned());
            self.merger.losses.disturbances += 1;
        }
        self.instance.set("tracing_on", "0")?;
        head.t_off_ns = Some(now_ns());
        let lost = alarm.map_or(0, |alarm| alarm.lost());
        if lost > 0 {
            head.not_recorded.push(format!("{lost} events of the condition: one of them may have met it"));
        }
        if let Some((tasks, missed)) = self.tasks.take().map(TaskWatch::end) {
            head.tasks = Some(tasks);
            head.not_recorded.extend(missed);
        }
        machine::note_end(head, machine::snapshot()?);
        Ok((ending?, on.elapsed()))
    }

    fn follow(
        &mut self,
        options: &Options,
        mut child: Option<&mut Child>,
        on: Instant,
        mut alarm: Option<&mut Alarm>,
        tell: &mut dyn FnMut(&Status) -> Going,
    ) -> Result<Ending, RecordError> {
        // Number of pages read since the last pause. The fullest buffer held about this number of pages.
        let mut pages = 0;
        loop {
            let round = match self.timing {
                Timing::AllTheTime => self.round()?,
                Timing::AtTheEnd => Reading::default(),
            };
            pages += round.pages as u64;
            if let Some(alarm) = &mut alarm
                && let Some(met) = alarm.look()?
            {
                return Ok(Ending::Met(met));
            }
            let elapsed = on.elapsed();
            self.intrusions.look(elapsed);
            if let Some(tasks) = &mut self.tasks {
                tasks.look();
            }
            let status = Status {
                elapsed,
                events: self.events,
                lost: self.merger.losses.events(),
                bytes: self.bytes.load(Ordering::Relaxed),
                fill: (pages as f64 / self.buffer_pages as f64).min(1.0),
            };
            if let Some(ending) = ending(options, child.as_deref_mut(), &status, tell)? {
                return Ok(ending);
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
        let round = self.read()?;
        self.hand_on()?;
        Ok(round)
    }

    fn read(&mut self) -> Result<Reading, RecordError> {
        let path = || self.instance.path("per_cpu");
        self.merger.round(&mut self.batch).map_err(|error| RecordError::io(path(), "read", error))
    }

    /// Sends the events that were read so far.
    fn hand_on(&mut self) -> Result<(), RecordError> {
        self.batch.retain(|event| event.ts_ns >= self.begin_ns);
        if self.batch.is_empty() {
            return Ok(());
        }
        self.events += self.batch.len() as u64;
        let piece = Piece::Events(std::mem::take(&mut self.batch));
        // If the send fails, the writing thread has failed, and reports its own error.
        self.sender
            .send(piece)
            .map_err(|_| RecordError::unwritten(io::Error::other("the writing thread ended")))
    }

    /// Sends all events that are left in the kernel's buffers after recording was switched off. Returns the
    /// losses.
    pub(crate) fn finish(&mut self, head: &mut TraceInfo) -> Result<LostEvents, RecordError> {
        if self.timing == Timing::AtTheEnd {
            self.find_begin()?;
        }
        while self.round()?.pages > 0 || self.merger.is_behind() {}
        self.merger.finish(&mut self.batch);
        self.hand_on()?;
        head.call_sites = self.merger.call_sites();
        let mut kernel = self.compare(head);
        if self.begin_ns > 0 {
            begins_late(head, self.begin_ns, kernel.overrun);
            // A flight recorder intends that old events are overwritten, so do not count overwritten events
            // as lost.
            kernel.overrun = 0;
        }
        let losses = &mut self.merger.losses;
        head.gaps = std::mem::take(&mut losses.gaps);
        Ok(losses.total(&kernel))
    }

    /// Compares the kernel's counts of the empty rings with the records that were read from the rings.
    /// Returns the sum of the kernel's counts.
    fn compare(&mut self, head: &mut TraceInfo) -> RingCounts {
        let intrusions = self.intrusions.count();
        head.not_recorded.extend(self.intrusions.sentences());
        let losses = &mut self.merger.losses;
        losses.disturbances = losses.disturbances.saturating_add(intrusions);
        let mut kernel = RingCounts::default();
        let rings: Vec<_> = self.merger.records().collect();
        for (cpu, records) in rings {
            let counts = counts_of(self.instance, cpu);
            kernel = kernel.plus(counts.unwrap_or_default());
            let losses = &mut self.merger.losses;
            match Compared::of(counts, records) {
                Compared::Whole => {}
                Compared::Taken(taken) => losses.taken = losses.taken.saturating_add(taken),
                // The program that cleared the ring has written to a file of the instance, and the write is
                // reported already.
                Compared::Cleared if intrusions > 0 => {}
                Compared::Cleared => {
                    losses.disturbances += 1;
                    let what = "some events, how many is unknown: another program cleared its buffer";
                    head.not_recorded.push(format!("CPU {cpu}: {what}"));
                }
                Compared::Unknown => {
                    let what = "whether all of its events were read: the kernel's counts cannot be read";
                    head.not_recorded.push(format!("CPU {cpu}: {what}"));
                }
            }
        }
        kernel
    }

    /// Finds the beginning of a flight recorder's trace. A buffer that the kernel has overwritten begins with
    /// a gap. The trace begins where the last of all such gaps ends.
    fn find_begin(&mut self) -> Result<(), RecordError> {
        self.read()?;
        let gaps = std::mem::take(&mut self.merger.losses).gaps;
        self.begin_ns = gaps.iter().map(|gap| gap.before_ns).max().unwrap_or(0);
        self.hand_on()
    }

    /// Ends the trace, with its description if recording succeeded. Returns the number of events.
    pub(crate) fn end(self, description: Option<(TraceInfo, LostEvents)>) -> u64 {
        if let Some((info, lost)) = description {
            // If the send fails, the writing thread has failed, and reports its own error.
            drop(self.sender.send(Piece::End(Box::new(info), lost)));
        }
        self.events
    }
}

/// Removes the information about the time before a flight recorder's trace begins.
fn begins_late(head: &mut TraceInfo, begin_ns: u64, overwritten: u64) {
    head.t_on_ns = Some(begin_ns);
    head.t_start_ns = Some(begin_ns);
    head.before = None;
    (head.pgalloc_delta, head.pgfree_delta) = (None, None);
    head.samples.retain(|sample| sample.t0_ns >= begin_ns);
    head.not_recorded.push(format!(
        "{overwritten} events before, and the zones when it began: a flight recorder keeps the latest events"
    ));
}

/// Returns the reason to end the recording now, if there is one. The command has ended, the time is over, or
/// the caller has asked for the end.
pub(crate) fn ending(
    options: &Options,
    child: Option<&mut Child>,
    status: &Status,
    tell: &mut dyn FnMut(&Status) -> Going,
) -> Result<Option<Ending>, RecordError> {
    if let Some(child) = child
        && let Some(status) = child.try_wait().map_err(|source| RecordError::Command {
            program: options.command[0].to_string_lossy().into_owned(),
            source,
        })?
    {
        return Ok(Some(Ending::Command(status)));
    }
    if options.duration.is_some_and(|duration| status.elapsed >= duration) {
        return Ok(Some(Ending::Time));
    }
    Ok((tell(status) == Going::End).then_some(Ending::Asked))
}

pub(crate) fn start(program: &OsString, arguments: &[OsString]) -> Result<Child, RecordError> {
    Command::new(program)
        .args(arguments)
        .spawn()
        .map_err(|source| RecordError::Command { program: program.to_string_lossy().into_owned(), source })
}
