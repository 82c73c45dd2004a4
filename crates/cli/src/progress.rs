//! A sign of life on the standard error, for work that takes longer than a second.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Nothing is shown before.
const DELAY: Duration = Duration::from_secs(1);

/// Counts up to a total, if that is known.
pub(crate) struct Progress {
    what: &'static str,
    unit: &'static str,
    total: Option<u64>,
    started: Instant,
    is_terminal: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// `what` goes on, counted in `unit`.
    pub(crate) fn new(what: &'static str, unit: &'static str, total: Option<u64>) -> Self {
        let is_terminal = io::stderr().is_terminal();
        Self { what, unit, total, started: Instant::now(), is_terminal, bar: None }
    }

    /// So many are done.
    pub(crate) fn update(&mut self, done: u64) {
        if !self.is_terminal || self.started.elapsed() < DELAY {
            return;
        }
        let (what, unit, total) = (self.what, self.unit, self.total);
        self.bar.get_or_insert_with(|| bar(what, unit, total)).set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(what: &'static str, unit: &str, total: Option<u64>) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => (
            ProgressBar::new(total),
            format!("{{msg}} [{{bar:30}}] {{percent:>3}} %  {{human_pos}} {unit}  {{per_sec}}  {{eta}} left"),
        ),
        None => {
            (ProgressBar::new_spinner(), format!("{{msg}} {{spinner}} {{human_pos}} {unit}  {{per_sec}}"))
        }
    };
    let style = ProgressStyle::with_template(&template).expect("the template is right");
    bar.set_style(style.progress_chars("=> "));
    bar.set_message(what);
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_templates_are_right() {
        bar("reading", "events", Some(7)).set_position(7);
        bar("reading", "runs", None).set_position(7);
    }
}
