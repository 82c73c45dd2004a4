//! A sign of life on the standard error, for work that takes longer than a second.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use pageset_lab::Cancelled;

/// Nothing is shown before.
const DELAY: Duration = Duration::from_secs(1);

/// Shows stages of work, one after another, on a terminal.
pub(crate) struct Progress {
    is_terminal: bool,
    stage: Option<Stage>,
}

/// What goes on.
struct Stage {
    what: &'static str,
    unit: &'static str,
    total: Option<u64>,
    started: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Of work that says itself what goes on.
    pub(crate) fn on_terminal() -> Self {
        Self { is_terminal: io::stderr().is_terminal(), stage: None }
    }

    /// `what` goes on, counted in `unit`.
    pub(crate) fn new(what: &'static str, unit: &'static str, total: Option<u64>) -> Self {
        let mut progress = Self::on_terminal();
        progress.start(what, unit, total);
        progress
    }

    fn start(&mut self, what: &'static str, unit: &'static str, total: Option<u64>) {
        self.stage = Some(Stage { what, unit, total, started: Instant::now(), bar: None });
    }

    /// So many are done.
    pub(crate) fn show(&mut self, done: u64) {
        let Some(stage) = self.stage.as_mut().filter(|_| self.is_terminal) else { return };
        if stage.started.elapsed() < DELAY {
            return;
        }
        let Stage { what, unit, total, .. } = *stage;
        stage.bar.get_or_insert_with(|| bar(what, unit, total)).set_position(done);
    }
}

/// An interrupt ends the process, so nothing has to be cancelled.
impl pageset_lab::Progress for Progress {
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
