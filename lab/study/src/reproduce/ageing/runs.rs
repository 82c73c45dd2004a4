//! The days that are played.

use std::sync::atomic::Ordering::Relaxed;

use crate::ageing::{Compaction, Course, Parameters, play};
use crate::contest::AllocatorKind;
use anyhow::{Context as _, Result};

use crate::jobs::{self, Stage};
use crate::reproduce::Options;
use pageset_report::{Cancelled, Progress};

/// An allocator, and its rule for moving pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) name: &'static str,
    pub(super) entrant: &'static str,
    compaction: Compaction,
}

const fn candidate(name: &'static str, entrant: &'static str, compaction: Compaction) -> Candidate {
    Candidate { name, entrant, compaction }
}

/// All candidates, in the order of the table's rows.
pub(super) const CANDIDATES: [Candidate; 6] = [
    candidate("linux-6.18", "linux-6.18", Compaction::None),
    candidate("linux-6.18+compaction", "linux-6.18", Compaction::Linux),
    candidate("pcp-buddy-rfc", "pcp-buddy-rfc", Compaction::None),
    candidate("superpageblock-rfc", "superpageblock-rfc", Compaction::None),
    candidate("superpageblock-rfc+worker", "superpageblock-rfc", Compaction::Rfc),
    candidate("owned-blocks", "owned-blocks", Compaction::None),
];

/// Samples of memory, evenly over the day.
pub(super) const MOMENTS: u32 = 24;

/// The results of one candidate: one day for each seed.
#[derive(Debug)]
pub(super) struct Days {
    pub(super) candidate: Candidate,
    pub(super) courses: Vec<Course>,
}

/// Plays a day with each candidate and each seed.
pub(super) fn run(day: &Parameters, options: &Options, progress: &mut dyn Progress) -> Result<Vec<Days>> {
    let seeds: Vec<u64> = options.seeds().iter().collect();
    let plays: Vec<_> =
        CANDIDATES.iter().flat_map(|candidate| seeds.iter().map(move |seed| (candidate, *seed))).collect();
    let cancel = progress.cancel();
    let mut courses: Vec<Option<Course>> = plays.iter().map(|_| None).collect();
    let mut stage = Stage::begin(progress, "playing days", "days", plays.len());
    let one = |(candidate, seed): &(&Candidate, u64)| {
        let entrant =
            AllocatorKind::named(candidate.entrant).context("it is an allocator of this version")?;
        let mut goes_on = || !cancel.load(Relaxed);
        Ok(play(day, *seed, &entrant, candidate.compaction, MOMENTS, &mut goes_on)?)
    };
    jobs::each(&plays, options.jobs, one, |index, course: Result<Course>| {
        if cancel.load(Relaxed) {
            return Err(Cancelled.into());
        }
        courses[index] = Some(course?);
        Ok(stage.step()?)
    })?;
    let mut courses = courses.into_iter().flatten();
    let days = |candidate: &Candidate| Days {
        candidate: *candidate,
        courses: courses.by_ref().take(seeds.len()).collect(),
    };
    Ok(CANDIDATES.iter().map(days).collect())
}
