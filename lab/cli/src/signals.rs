//! Watches the signals that end the command. After a signal, the command removes its tracing instances and
//! temporary files, restores the settings that it has changed, and ends.

use std::error::Error;
use std::fmt;
use std::fs;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Once};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use pageset_replay::file::remove_temporary;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

/// Longest time from a signal until the command notices the signal.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50);

/// The number of the last signal that came; 0 before the first signal.
#[derive(Clone)]
pub(crate) struct Signals(Arc<AtomicUsize>);

/// The error of work that stopped because a signal came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl Error for Interrupted {}

/// Returns the signals that end a command, except the signals that this process has ignored since its start,
/// for example because of `nohup`.
pub(crate) fn ending() -> impl Iterator<Item = i32> {
    let ignored = ignored(&fs::read_to_string("/proc/self/status").unwrap_or_default());
    [SIGHUP, SIGINT, SIGTERM].into_iter().filter(move |signal| ignored >> (signal - 1) & 1 == 0)
}

/// Reads the set of ignored signals, one bit for each signal, from `/proc/self/status`. Source:
/// proc_pid_status(5).
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Whether the command handles signals itself.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// Notes that the command ends itself after a signal, so that `remove_files_at_the_end` does not end the
/// process at once.
pub(crate) fn handled_by_command() {
    IS_WATCHED.store(true, Ordering::Relaxed);
}

/// Arranges that a signal that ends this process also removes the process's temporary files.
pub(crate) fn remove_files_at_the_end() {
    static ONCE: Once = Once::new();
    // If the signals cannot be watched, a signal that ends the process may leave a temporary file. The
    // command's work is not affected.
    ONCE.call_once(|| {
        if let Ok(mut signals) = signal_hook::iterator::Signals::new(ending()) {
            thread::spawn(move || signals.forever().for_each(end_by));
        }
    });
}

fn end_by(signal: i32) {
    if !IS_WATCHED.load(Ordering::Relaxed) {
        remove_temporary();
        drop(low_level::emulate_default_handler(signal));
    }
}

impl Signals {
    pub(crate) fn watch() -> Result<Self> {
        handled_by_command();
        let signal = Arc::new(AtomicUsize::new(0));
        for number in ending() {
            let value = usize::try_from(number).unwrap_or_default();
            flag::register_usize(number, Arc::clone(&signal), value).context("signals cannot be watched")?;
        }
        Ok(Self(signal))
    }

    pub(crate) fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Returns an error if a signal has come.
    pub(crate) fn check(&self) -> Result<(), Interrupted> {
        if self.has_come() { Err(Interrupted) } else { Ok(()) }
    }

    /// Sleeps for `interval`, or until a signal comes. Returns whether the whole time has passed.
    pub(crate) fn sleep(&self, interval: Duration) -> bool {
        // Count the remaining time down instead of computing the end, which could be later than the clock can
        // represent.
        let began = Instant::now();
        loop {
            let left = interval.saturating_sub(began.elapsed());
            if self.has_come() || left.is_zero() {
                return !self.has_come();
            }
            thread::sleep(left.min(PATIENCE));
        }
    }

    /// Does `work` on another thread, and returns when the work is done or a signal comes. After a signal the
    /// work continues until the process ends, so `work` must not change a setting that has to be restored.
    pub(crate) fn during<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Interrupted> {
        let (sender, receiver) = sync_channel(1);
        let worker = thread::spawn(move || drop(sender.send(work())));
        loop {
            self.check()?;
            match receiver.recv_timeout(PATIENCE) {
                Ok(done) => return Ok(done),
                Err(RecvTimeoutError::Timeout) => {}
                // The thread ends without a result only if `work` panics.
                Err(RecvTimeoutError::Disconnected) => match worker.join() {
                    Ok(()) => return Err(Interrupted),
                    Err(panic) => resume_unwind(panic),
                },
            }
        }
    }

    /// If a signal has come, ends the process by this signal, so that the parent process sees the cause.
    pub(crate) fn pass_on(&self) -> Result<()> {
        let number = i32::try_from(self.0.load(Ordering::Relaxed)).unwrap_or_default();
        if number != 0 {
            remove_temporary();
            low_level::emulate_default_handler(number)
                .context("this process cannot end by the signal that has come")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read() {
        let status = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n";
        assert_eq!(ignored(status), 0x1001);
        assert_eq!(ignored(""), 0);
    }

    #[test]
    fn work_ends_by_itself_or_by_a_signal() {
        let signals = Signals(Arc::default());
        assert_eq!(signals.during(|| 7).unwrap(), 7);
        let (sender, receiver) = sync_channel::<()>(0);
        signals.0.store(1, Ordering::Relaxed);
        signals.during(move || receiver.recv().is_ok()).unwrap_err();
        drop(sender);
        assert!(signals.check().is_err() && !signals.sleep(Duration::MAX));
    }
}
