//! Shows one line about a recording while it runs. The line is shown only if the standard error is a
//! terminal.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use pageset_record::Status;

/// Time between two updates of the line.
const PERIOD: Duration = Duration::from_millis(250);

/// The line that shows the progress of a recording, and is erased at the end.
pub(crate) struct Live {
    bar: Option<ProgressBar>,
    shown: Instant,
    events: u64,
    is_counting: bool,
    ctrl_c: &'static str,
}

impl Live {
    /// Shows progress if `is_wanted`. While a command is recorded, no progress is shown, because the command
    /// may use the terminal. `ctrl_c` says what Ctrl-C does.
    pub(crate) fn new(is_wanted: bool, ctrl_c: &'static str) -> Self {
        let bar = (is_wanted && io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new_spinner();
            bar.set_style(ProgressStyle::with_template("{spinner} {msg}").expect("the template is right"));
            bar.set_message(format!("recording; Ctrl-C {ctrl_c}"));
            bar
        });
        Self { bar, shown: Instant::now(), events: 0, is_counting: false, ctrl_c }
    }

    /// Shows progress while events are counted. While events are counted, the progress has no number of
    /// events, because this number is not known before the end.
    pub(crate) fn counting(is_wanted: bool, ctrl_c: &'static str) -> Self {
        let mut live = Self::new(is_wanted, ctrl_c);
        live.is_counting = true;
        live
    }

    pub(crate) fn show(&mut self, status: &Status) {
        let Some(bar) = &self.bar else { return };
        let since = self.shown.elapsed();
        if since < PERIOD {
            return;
        }
        if self.is_counting {
            bar.set_message(format!(
                "{:.0} s  counting; Ctrl-C {}",
                status.elapsed.as_secs_f64(),
                self.ctrl_c
            ));
            bar.tick();
            self.shown = Instant::now();
            return;
        }
        let rate = (status.events - self.events) as f64 / since.as_secs_f64();
        bar.set_message(format!("{}; Ctrl-C {}", line(status, rate), self.ctrl_c));
        bar.tick();
        (self.shown, self.events) = (Instant::now(), status.events);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn line(status: &Status, events_per_second: f64) -> String {
    format!(
        "{:.0} s  {} events  {:.0}/s  lost {}  {:.1} MB  buffer {:.0} % full",
        status.elapsed.as_secs_f64(),
        status.events,
        events_per_second,
        status.lost,
        status.bytes as f64 / 1e6,
        status.fill * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_fits_on_a_line() {
        let status = Status {
            elapsed: Duration::from_secs(3600),
            events: 1_000_000_000,
            lost: 1_000_000,
            bytes: 4_000_000_000,
            fill: 1.0,
        };
        let line = line(&status, 2e6);
        assert!(line.starts_with("3600 s  1000000000 events  2000000/s  lost 1000000  4000.0 MB"), "{line}");
        assert!(line.len() < 110, "{line}");
    }
}
