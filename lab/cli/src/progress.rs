//! Shows the progress of long work on the standard error.

use std::fmt;
use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use pageset_report::Cancelled;
use pageset_trace::Amount;

/// Progress is shown only for a stage of work that takes longer than this time.
const DELAY: Duration = Duration::from_secs(1);

/// Shows stages of work, one after another, on a terminal.
pub(crate) struct Progress {
    is_terminal: bool,
    stage: Option<Stage>,
}

/// A stage of work, such as reading the events of a recording.
struct Stage {
    what: &'static str,
    unit: &'static str,
    total: Option<u64>,
    started: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Returns progress that is shown if the standard error is a terminal. No stage has begun yet.
    pub(crate) fn on_terminal() -> Self {
        Self { is_terminal: io::stderr().is_terminal(), stage: None }
    }

    /// Returns progress, and begins a stage with the name `what`, whose parts are counted in `unit`.
    pub(crate) fn new(what: &'static str, unit: &'static str, total: Option<u64>) -> Self {
        let mut progress = Self::on_terminal();
        progress.start(what, unit, total);
        progress
    }

    /// Returns progress, and begins a stage that reads a recording. The caller turns read events into the
    /// stage's unit by [`Amount::done`].
    pub(crate) fn of_amount(what: &'static str, amount: &Amount) -> Self {
        Self::new(what, amount.unit(), amount.total())
    }

    fn start(&mut self, what: &'static str, unit: &'static str, total: Option<u64>) {
        self.stage = Some(Stage { what, unit, total, started: Instant::now(), bar: None });
    }

    /// Shows the number of units that are done.
    pub(crate) fn show(&mut self, done: u64) {
        let Some(stage) = self.stage.as_mut().filter(|_| self.is_terminal) else { return };
        if stage.started.elapsed() < DELAY {
            return;
        }
        let Stage { what, unit, total, started, .. } = *stage;
        stage.bar.get_or_insert_with(|| bar(what, unit, total, started)).set_position(done);
    }
}

/// Shows the progress of a library's work. The progress on a terminal never cancels the work, because an
/// interrupt ends the whole process.
impl pageset_report::Progress for Progress {
    fn begin(&mut self, what: &'static str, unit: &'static str, total: Option<u64>) {
        self.start(what, unit, total);
    }

    fn update(&mut self, done: u64) -> Result<(), Cancelled> {
        self.show(done);
        Ok(())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(what: &'static str, unit: &str, total: Option<u64>, started: Instant) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => (
            ProgressBar::new(total),
            format!("{{msg}} [{{bar:30}}] {{percent:>3}} %  {{human_pos}} {unit}  {{rate}}  {{left}} left"),
        ),
        None => (ProgressBar::new_spinner(), format!("{{msg}} {{spinner}} {{human_pos}} {unit}  {{rate}}")),
    };
    let style = ProgressStyle::with_template(&template).expect("the template is right");
    // The bar's own rate and remaining time are wrong at first, because the bar is made only after `DELAY`.
    let style = style.with_key("rate", move |state: &ProgressState, out: &mut dyn fmt::Write| {
        // If the terminal cannot be written to, the progress is not shown, and the work goes on.
        let _ = write!(out, "{}/s", rounded(rate(state.pos(), started.elapsed())));
    });
    let style = style.with_key("left", move |state: &ProgressState, out: &mut dyn fmt::Write| {
        let left = left(state.pos(), total.unwrap_or_default(), started.elapsed());
        let _ = write!(out, "{:#}", HumanDuration(left));
    });
    bar.set_style(style.progress_chars("=> "));
    bar.set_message(what);
    bar
}

/// Returns the number of units that were done per second, on average since the stage began.
fn rate(done: u64, elapsed: Duration) -> f64 {
    done as f64 / elapsed.as_secs_f64().max(1e-9)
}

/// Returns the time that the remaining units will take at the average rate of the units that are done.
fn left(done: u64, total: u64, elapsed: Duration) -> Duration {
    let seconds = total.saturating_sub(done) as f64 / rate(done, elapsed);
    // If no unit is done yet, the division gives a number that is no `Duration`. Return a time of zero if the
    // division has no usable result.
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// Shortens a number to two or three digits and a letter such as k or M.
fn rounded(number: f64) -> String {
    const LETTERS: [&str; 5] = ["", " k", " M", " G", " T"];
    let mut scaled = number;
    let mut power = 0;
    // If the digits would be printed as 1000, use the next letter, for example `M` after `k`.
    while scaled >= 999.5 && power + 1 < LETTERS.len() {
        scaled /= 1000.0;
        power += 1;
    }
    let decimals = usize::from(scaled < 9.95 && (power > 0 || scaled.fract() != 0.0));
    format!("{scaled:.decimals$}{}", LETTERS[power])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_two_or_three_digits_and_a_letter() {
        for (number, expected) in [
            (2_945_804_074.887_3, "2.9 G"),
            (32_593_140.225_3, "33 M"),
            (0.0, "0"),
            (0.25, "0.2"),
            (7.0, "7"),
            (9.96, "10"),
            (999.4, "999"),
            (999.6, "1.0 k"),
            (1000.0, "1.0 k"),
            (999_700.0, "1.0 M"),
            (5e15, "5000 T"),
        ] {
            assert_eq!(rounded(number), expected, "{number}");
        }
    }

    #[test]
    fn the_rest_takes_as_long_as_the_same_amount_took_so_far() {
        assert_eq!(rate(30, Duration::from_secs(2)), 15.0);
        assert_eq!(left(30, 90, Duration::from_secs(2)), Duration::from_secs(4));
        assert_eq!(left(90, 90, Duration::from_secs(2)), Duration::ZERO);
        assert_eq!(left(0, 0, Duration::ZERO), Duration::ZERO);
        assert_eq!(left(0, 90, Duration::from_secs(2)), Duration::ZERO, "not known");
    }

    #[test]
    fn both_templates_are_right() {
        bar("reading", "events", Some(7), Instant::now()).set_position(7);
        bar("reading", "runs", None, Instant::now()).set_position(7);
    }
}
