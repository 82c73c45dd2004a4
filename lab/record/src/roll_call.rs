//! Finds the numbers that the trace has for the recorder's threads.
//!
//! The trace has the machine's thread numbers. A process in a PID namespace, such as a container, sees other
//! numbers. To find the trace's numbers, each thread of the recorder writes a mark before the recording. The
//! record of the mark has the thread's number in the trace. After the answers, all events of the roll call
//! are cleared.

use std::{
    fs::{File, OpenOptions},
    io::Write as _,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use pageset_trace::EventKind;
use pageset_trace::raw::{Decoder, PageLayout};

use crate::call_sites::Sites;
use crate::clock::now_ns;
use crate::cpus::CpuList;
use crate::error::RecordError;
use crate::instance::Instance;
use crate::losses::Losses;
use crate::merge::LATE_NS;
use crate::ring::Ring;

/// Number of threads of a recorder. One thread reads, one writes, and one samples page sets.
const THREADS: usize = 3;
/// The upper bits of an answer, which is a mark like the mark of a sample, with a CPU number that no machine
/// has.
const ANSWER: u32 = 0x5af0_0000;
/// Maximum time to wait for answers. If an answer is missing after this time, the numbers of all threads
/// count as unknown.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pause between two checks for answers.
const PAUSE: Duration = Duration::from_millis(1);
/// Maximum number of pages that are read from a ring at a time.
const PAGES: usize = 256;

/// Collects a mark, called an answer, from each thread of a recorder.
pub(crate) struct RollCall<'a> {
    instance: &'a Instance,
    /// The file for marks. `None` if marks cannot be written.
    marks: Option<File>,
    answers: AtomicU32,
}

impl<'a> RollCall<'a> {
    /// Switches recording on, on all CPUs, because a thread may run on any CPU.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn begin(instance: &'a Instance) -> Result<Self, RecordError> {
        let marks = OpenOptions::new().write(true).open(instance.path("trace_marker_raw")).ok();
        if marks.is_some() {
            instance.set("tracing_cpumask", &CpuList::online().mask())?;
            instance.set("tracing_on", "1")?;
        }
        Ok(Self { instance, marks, answers: AtomicU32::new(0) })
    }

    /// Writes the answer of the calling thread. Returns the number of the answer.
    pub(crate) fn answer(&self) -> u32 {
        let number = self.answers.fetch_add(1, Ordering::Relaxed);
        if let Some(mut marks) = self.marks.as_ref() {
            // If the write fails, `end` does not find the answer.
            drop(marks.write_all(&(ANSWER | number).to_ne_bytes()));
        }
        number
    }

    /// Writes the answer of the calling thread, and waits for the answers of all other threads. After all
    /// answers, switches recording off, limits recording to `cpus`, and empties the rings. Returns the sorted
    /// numbers of all threads, or the reason why the numbers are unknown.
    ///
    /// # Errors
    /// An error of the system, or an error if the trace's clock differs from this process's clock.
    pub(crate) fn end(
        &self,
        cpus: &CpuList,
        layout: &PageLayout,
        decoder: &Decoder,
    ) -> Result<Result<Vec<u32>, String>, RecordError> {
        if self.marks.is_none() {
            return Ok(Err("trace_marker_raw cannot be written".to_owned()));
        }
        let before_ns = now_ns();
        let own = self.answer();
        let after_ns = now_ns();
        let answered = self.collect(layout, decoder);
        self.instance.set("tracing_on", "0")?;
        self.instance.set("tracing_cpumask", &cpus.mask())?;
        self.instance.set("trace", "")?;
        let answered = answered?;
        let mine = answered.iter().find(|answer| answer.number == own);
        let is_near = |ts_ns: u64| {
            (before_ns.saturating_sub(LATE_NS)..=after_ns.saturating_add(LATE_NS)).contains(&ts_ns)
        };
        if mine.is_some_and(|mine| !is_near(mine.ts_ns)) {
            return Err(RecordError::Refused {
                problem:
                    "the clock of this process is not that of the kernel's trace, as in a time namespace"
                        .to_owned(),
                remedy: "record outside of it".to_owned(),
            });
        }
        let mut pids: Vec<_> = answered.iter().map(|answer| answer.pid).collect();
        pids.sort_unstable();
        Ok(if pids.len() == THREADS { Ok(pids) } else { Err("their marks are not in the trace".to_owned()) })
    }

    fn collect(&self, layout: &PageLayout, decoder: &Decoder) -> Result<Vec<Answer>, RecordError> {
        let open = |cpu| Ring::open(self.instance, cpu, layout, now_ns());
        let mut rings = CpuList::online().iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let (mut answered, mut events) = (Vec::new(), Vec::new());
        let began = Instant::now();
        while answered.len() < THREADS && began.elapsed() < PATIENCE {
            for ring in &mut rings {
                ring.read(PAGES, layout, decoder, &mut Losses::default(), &mut Sites::default())
                    .map_err(|error| RecordError::io(self.instance.path("per_cpu"), "read", error))?;
                ring.hand_on(u64::MAX, &mut events);
            }
            let marks = events.drain(..).filter(|event| event.kind == EventKind::Marker);
            answered.extend(marks.filter_map(|mark| {
                let number = (mark.pfn as u32).checked_sub(ANSWER)?;
                Some(Answer { number, pid: mark.pid, ts_ns: mark.ts_ns })
            }));
            thread::sleep(PAUSE);
        }
        Ok(answered)
    }
}

/// A thread's mark in the trace.
struct Answer {
    number: u32,
    pid: u32,
    ts_ns: u64,
}
