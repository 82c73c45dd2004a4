//! Chooses which recording `advise` judges: counts, which slow the load little, or events, which a forecast
//! needs.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use pageset_replay::advise::{Advice, Verdict};

use super::recorder::Runs;
use crate::output::say;

/// Records the load. The implementation is the recorder, or in a test a replacement for the recorder.
pub(super) trait Load {
    /// Runs the load once, and counts its events.
    fn count(&self) -> Result<Counted>;

    /// Records events while the load runs. If the load has just run, `before` is how long that run took.
    fn record(&self, before: Option<Duration>) -> Result<Runs>;
}

/// What `count` returns.
pub(super) enum Counted {
    /// The recording of counts, and how long the load ran.
    Counts(Runs, Duration),
    /// The kernel refused to count, so the load did not run. The text is the reason.
    Refused(String),
}

/// Counts the load's events. Records events if the answer from the counts is not No, or if the kernel refuses
/// to count. Returns the recordings that were judged, and the advice.
pub(super) fn counts_first(
    load: &impl Load,
    mut advise: impl FnMut(&[PathBuf]) -> Result<Advice>,
) -> Result<(Runs, Advice)> {
    let (mut counts, took) = match load.count()? {
        Counted::Counts(counts, took) => (counts, took),
        Counted::Refused(why) => {
            let mut events = load.record(None)?;
            events.warnings.push(format!("Events were recorded at once, since counting was refused: {why}"));
            let advice = advise(&events.traces)?;
            return Ok((events, advice));
        }
    };
    let counted = advise(&counts.traces)?;
    if counted.verdict == Verdict::LeaveAlone {
        return Ok((counts, counted));
    }
    say("Counts do not give an answer. Events are recorded now, for a forecast.");
    let events = load.record(Some(took))?;
    if events.had_nothing_left {
        // The command probably had nothing to do while events were recorded, so advice from these events
        // would say No. Return the advice from the counts.
        counts.warnings.extend(events.warnings);
        return Ok((counts, counted));
    }
    let advice = advise(&events.traces)?;
    Ok((events, advice))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use pageset_replay::advise::{Matter, Why};
    use pageset_study::latency::simulated;

    use super::*;
    use crate::options::{OpeningArgs, SourceArgs};
    use crate::source::Source;

    /// A replacement for the recorder. It notes each call of its methods.
    struct Asked {
        can_count: bool,
        had_nothing_left: bool,
        asked: RefCell<Vec<String>>,
    }

    fn asked(can_count: bool, had_nothing_left: bool) -> Asked {
        Asked { can_count, had_nothing_left, asked: RefCell::default() }
    }

    fn runs(name: &str) -> Runs {
        Runs { traces: vec![PathBuf::from(name)], ..Runs::default() }
    }

    impl Load for Asked {
        fn count(&self) -> Result<Counted> {
            self.asked.borrow_mut().push("count".to_owned());
            Ok(if self.can_count {
                Counted::Counts(runs("counts"), Duration::from_secs(3))
            } else {
                Counted::Refused("no perf events".to_owned())
            })
        }

        fn record(&self, before: Option<Duration>) -> Result<Runs> {
            self.asked.borrow_mut().push(format!("record after {before:?}"));
            let warnings = if self.had_nothing_left { vec!["nothing left".to_owned()] } else { Vec::new() };
            Ok(Runs { had_nothing_left: self.had_nothing_left, warnings, ..runs("events") })
        }
    }

    /// Runs `counts_first` with a judge that answers `verdict` for counts, and `Verdict::Set` for events.
    fn judged(load: &Asked, verdict: Verdict) -> (String, Runs, Verdict, Vec<String>) {
        let advice = |paths: &[PathBuf]| {
            let verdict = match paths[0].to_str() {
                Some("counts") => verdict.clone(),
                _ => Verdict::Set { matter: Matter::CpuTime, forecast: 0 },
            };
            Ok(Advice { verdict, ..any_advice() })
        };
        let (runs, advice) =
            counts_first(load, advice).expect("the replacement for the recorder never fails");
        let judged = runs.traces[0].display().to_string();
        (judged, runs, advice.verdict, load.asked.take())
    }

    fn any_advice() -> Advice {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/formats/allocs-only.txt");
        let recording = SourceArgs { recording: Some(path.into()), opening: OpeningArgs::default() };
        pageset_replay::advise::advise(|| Source::open(&recording), simulated, &mut ())
            .expect("`advise` can read this recording")
    }

    #[test]
    fn a_counted_no_is_the_verdict_and_no_event_is_recorded() {
        let load = asked(true, false);
        let (judged, _, verdict, done) = judged(&load, Verdict::LeaveAlone);
        assert_eq!((judged.as_str(), verdict), ("counts", Verdict::LeaveAlone));
        assert_eq!(done, ["count"]);
    }

    #[test]
    fn other_answers_take_events_and_the_counted_run_is_the_one_before() {
        for verdict in [
            Verdict::Matters { matter: Matter::CpuTime },
            Verdict::Unknown { why: Why::EventsNeeded },
            Verdict::Unknown { why: Why::TooShort },
        ] {
            let load = asked(true, false);
            let (judged, _, verdict, done) = judged(&load, verdict);
            assert_eq!(judged, "events");
            assert!(matches!(verdict, Verdict::Set { .. }));
            assert_eq!(done, ["count", "record after Some(3s)"]);
        }
    }

    #[test]
    fn a_recording_of_a_command_with_nothing_left_to_do_is_not_judged() {
        let load = asked(true, true);
        let (judged, runs, verdict, _) = judged(&load, Verdict::Matters { matter: Matter::CpuTime });
        assert_eq!((judged.as_str(), verdict), ("counts", Verdict::Matters { matter: Matter::CpuTime }));
        assert_eq!(runs.warnings, ["nothing left"]);
    }

    #[test]
    fn where_nothing_can_be_counted_events_are_recorded_at_once_and_a_line_says_so() {
        let load = asked(false, false);
        let (judged, runs, _, done) = judged(&load, Verdict::LeaveAlone);
        assert_eq!((judged.as_str(), done.len()), ("events", 2));
        assert_eq!(done[1], "record after None");
        assert!(runs.warnings.iter().any(|warning| warning.contains("refused: no perf events")), "{runs:?}");
    }
}
