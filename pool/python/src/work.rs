//! Runs long work on a thread of its own, so that Python can handle signals and show progress.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use pageset_report::{Cancelled, Progress};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::ThreadPoolBuilder;

use crate::error;

/// The time between two checks for signals and progress. An interrupt should end the work within 100 ms.
const PERIOD: Duration = Duration::from_millis(50);

/// How Python treats interrupted work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupted {
    /// Python does not wait for the work. The work ends at its next report of progress, and the result of the
    /// work is dropped.
    LeftAlone,
    /// Python waits for the work, because the work must finish its file.
    WaitedFor,
}

/// The state that work and its waiting caller share: the progress, and whether the work was cancelled.
#[derive(Clone, Default)]
pub(crate) struct Watch(Arc<Shared>);

#[derive(Default)]
struct Shared {
    cancel: Arc<AtomicBool>,
    /// Stages whose progress was not yet reported, and the current stage.
    stages: Mutex<Vec<Stage>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Stage {
    what: &'static str,
    done: u64,
    total: Option<u64>,
    is_told: bool,
}

impl Watch {
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.cancel.load(Relaxed)
    }

    /// The flag that ends the work.
    pub(crate) fn cancel(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0.cancel)
    }

    /// Begins a stage.
    pub(crate) fn begin(&self, what: &'static str, total: Option<u64>) {
        self.stages().push(Stage { what, done: 0, total, is_told: false });
    }

    /// Reports the progress of the current stage.
    pub(crate) fn show(&self, done: u64) {
        if let Some(stage) = self.stages().last_mut() {
            (stage.done, stage.is_told) = (done, false);
        }
    }

    fn stages(&self) -> MutexGuard<'_, Vec<Stage>> {
        self.0.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `progress(what, done, total)` for each stage with new progress.
    fn tell(&self, progress: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let moved: Vec<Stage> = {
            let mut stages = self.stages();
            let moved = stages.iter().filter(|stage| !stage.is_told).copied().collect();
            let last = stages.pop();
            *stages = last.map(|last| Stage { is_told: true, ..last }).into_iter().collect();
            moved
        };
        let Some(progress) = progress else { return Ok(()) };
        moved
            .into_iter()
            .try_for_each(|stage| progress.call1((stage.what, stage.done, stage.total)).map(drop))
    }
}

impl Progress for Watch {
    fn begin(&mut self, what: &'static str, _: &'static str, total: Option<u64>) {
        Self::begin(self, what, total);
    }

    fn update(&mut self, done: u64) -> Result<(), Cancelled> {
        self.show(done);
        if self.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }

    fn cancel(&self) -> Arc<AtomicBool> {
        Self::cancel(self)
    }
}

/// Runs `work` on a new set of threads. A child of a fork does not have Rayon's global threads, and would
/// wait for Rayon's global threads for ever.
fn on_own_threads<T: Send>(work: impl FnOnce() -> anyhow::Result<T> + Send) -> anyhow::Result<T> {
    let threads = ThreadPoolBuilder::new().thread_name(|index| format!("pageset-{index}")).build();
    threads.context("the system gives no threads")?.install(work)
}

/// Runs `work` without Python's lock. Errors of `work` become exceptions. An exception of a signal handler or
/// of `progress` cancels `work`.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    interrupted: Interrupted,
    work: impl FnOnce(Watch) -> anyhow::Result<T> + Send + 'static,
) -> PyResult<T> {
    let watch = Watch::default();
    let (sender, mut receiver) = sync_channel(1);
    let of_worker = watch.clone();
    let worker = thread::Builder::new().name("pageset".to_owned());
    // If the work was interrupted, the channel has no receiver, so the result is dropped.
    let worker = worker.spawn(move || drop(sender.send(on_own_threads(move || work(of_worker)))))?;
    loop {
        let receiver = &mut receiver;
        let received = py.detach(move || receiver.recv_timeout(PERIOD));
        if let Err(raised) = py.check_signals().and_then(|()| watch.tell(progress)) {
            watch.cancel().store(true, Relaxed);
            if interrupted == Interrupted::WaitedFor {
                py.detach(|| drop(worker.join()));
            }
            return Err(raised);
        }
        match received {
            Ok(result) => return result.map_err(error::raised),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => match worker.join() {
                Err(panic) => resume_unwind(panic),
                Ok(()) => return Err(PyRuntimeError::new_err("the work gave nothing; this is a bug")),
            },
        }
    }
}
