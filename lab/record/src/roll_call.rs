//! Finds the recorder's threads by the numbers that the trace uses.
//!
//! The trace has the machine's thread numbers. A process in a PID namespace, as in a container, sees other
//! numbers. So before the recording, each thread writes a mark, and the mark's record shows the thread's
//! number. Events recorded meanwhile are cleared.

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

/// Number of a recorder's threads: one reads, one writes, one samples page sets.
const THREADS: usize = 3;
/// Beginning of an answer: a mark like a sample's, with a CPU number that no machine has.
const ANSWER: u32 = 0x5af0_0000;
/// Maximum time to wait for answers. After that, threads that have not answered are unknown.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pause between two checks for answers.
const PAUSE: Duration = Duration::from_millis(1);
/// Maximum number of pages read from a ring at a time.
const PAGES: usize = 256;

/// Each thread of a recorder answers once.
pub(crate) struct RollCall<'a> {
    instance: &'a Instance,
    /// `None` if marks cannot be written.
    marks: Option<File>,
    answers: AtomicU32,
}

impl<'a> RollCall<'a> {
    /// Switches recording on, on all CPUs, since threads may run on any CPU.
    ///
    /// # Errors
    /// The system reports an error.
    pub(crate) fn begin(instance: &'a Instance) -> Result<Self, RecordError> {
        let marks = OpenOptions::new().write(true).open(instance.path("trace_marker_raw")).ok();
        if marks.is_some() {
            instance.set("tracing_cpumask", &CpuList::online().mask())?;
            instance.set("tracing_on", "1")?;
        }
        Ok(Self { instance, marks, answers: AtomicU32::new(0) })
    }

    /// Answers for this thread. Returns the number of its answer.
    pub(crate) fn answer(&self) -> u32 {
        let number = self.answers.fetch_add(1, Ordering::Relaxed);
        if let Some(mut marks) = self.marks.as_ref() {
            // A failed write shows as a missing answer later.
            drop(marks.write_all(&(ANSWER | number).to_ne_bytes()));
        }
        number
    }

    /// Answers for this thread, and waits for the answers of all others. Then switches recording off, and
    /// sets it to `cpus`, with empty rings. Returns the sorted numbers of all threads, or the reason why they
    /// are unknown.
    ///
    /// # Errors
    /// The system reports an error, or the trace's clock differs from this process's.
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
