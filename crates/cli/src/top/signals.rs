//! Signals that end the command. It goes on until it has put away what it made in the kernel.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

/// Longest time until a signal is noticed.
pub(super) const PATIENCE: Duration = Duration::from_millis(50);

/// The last signal that came; 0 as long as there is none.
#[derive(Clone)]
pub(super) struct Signals(Arc<AtomicUsize>);

impl Signals {
    pub(super) fn watch() -> Result<Self> {
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGHUP, SIGINT, SIGTERM] {
            let value = usize::try_from(number).unwrap_or_default();
            flag::register_usize(number, Arc::clone(&signal), value).context("signals cannot be watched")?;
        }
        Ok(Self(signal))
    }

    pub(super) fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Sleeps so long, or until a signal comes; whether it was the whole time.
    pub(super) fn sleep(&self, interval: Duration) -> bool {
        let due = Instant::now() + interval;
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if self.has_come() || left.is_zero() {
                return !self.has_come();
            }
            thread::sleep(left.min(PATIENCE));
        }
    }

    /// Ends the process by the signal that has come, so that whoever waits for it learns that; returns if there was none.
    pub(super) fn pass_on(&self) -> Result<()> {
        let number = i32::try_from(self.0.load(Ordering::Relaxed)).unwrap_or_default();
        if number != 0 {
            low_level::emulate_default_handler(number).context("the signal cannot be passed on")?;
        }
        Ok(())
    }
}
