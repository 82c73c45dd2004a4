//! Everything that a recording shows, gathered for a report: the advice and what it was made from, what happened when,
//! and which CPUs are neighbours.
//!
//! `samples` is what page sets and zones held over time, `neighbours` the order in which CPUs are shown.

mod neighbours;
mod samples;

use pageset_trace::TraceReader;
use pageset_workload::{Timeline, timeline};

use crate::Progress;
use crate::advise::{Examined, examine, part};

pub use neighbours::{Neighbours, neighbours};
pub use samples::{CpuSamples, Extremes, Samples, ZoneSamples};

/// Everything about one recording.
#[derive(Clone, Debug)]
pub struct Dossier {
    /// Advice, survey and replay.
    pub examined: Examined,
    /// What each CPU did when.
    pub timeline: Timeline,
    /// What page sets and zones held when.
    pub samples: Samples,
    /// The machine's CPUs, in the order in which they are shown.
    pub neighbours: Vec<Neighbours>,
}

/// Reads a recording three times, by `open`, and gathers everything about it.
///
/// # Errors
/// The recording cannot be read or describes no machine; [`Cancelled`](crate::Cancelled).
pub fn dossier<R: TraceReader>(
    mut open: impl FnMut() -> anyhow::Result<R>,
    progress: &mut dyn Progress,
) -> anyhow::Result<Dossier> {
    let examined = examine(&mut open, progress)?;
    if examined.info.counts.is_some() {
        let path = examined.info.path.display();
        return Err(anyhow::anyhow!(
            "{path}: it has counts, and a report is drawn from events; `pageset stat` and `pageset advise` print counts"
        ));
    }
    let mut reader = part(open()?)?;
    progress.begin("placing in time", "events", Some(examined.survey.events));
    let mut going = Ok(());
    let timeline = timeline(&mut reader, &examined.survey, |events| {
        going = going.and_then(|()| progress.update(events));
    })?;
    going?;
    Ok(Dossier {
        samples: Samples::new(&examined.info, &timeline),
        neighbours: neighbours(examined.info.machine.as_ref(), timeline.cpus.len()),
        examined,
        timeline,
    })
}
