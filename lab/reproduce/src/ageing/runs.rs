//! Runs the days of the study `ageing`.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::{Context as _, Result, ensure};
use pageset_replay::{names_policy_file, read_policy};

use crate::Options;
use pageset_report::{Cancelled, Progress};
use pageset_study::ageing::{Compaction, Course, Parameters, play};
use pageset_study::contest::AllocatorKind;
use pageset_study::jobs::{self, Stage};

/// One row of the tables: an allocator, and the rule that decides which pages are moved.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) name: String,
    pub(super) entrant: AllocatorKind,
    compaction: Compaction,
}

/// The built-in rows of the tables: for each row its name, its allocator, and the rule that decides which
/// pages are moved.
const ROWS: [(&str, &str, Compaction); 6] = [
    ("linux-6.18", "linux-6.18", Compaction::None),
    ("linux-6.18+compaction", "linux-6.18", Compaction::Linux),
    ("pcp-buddy-rfc", "pcp-buddy-rfc", Compaction::None),
    ("superpageblock-rfc", "superpageblock-rfc", Compaction::None),
    ("superpageblock-rfc+worker", "superpageblock-rfc", Compaction::Rfc),
    ("owned-blocks", "owned-blocks", Compaction::None),
];

/// Returns all rows in the order of the tables: first the built-in rows, then one row for each policy that
/// the user named.
pub(super) fn candidates(of_user: &[String]) -> Result<Vec<Candidate>> {
    let mut candidates = Vec::new();
    for (name, entrant, compaction) in ROWS {
        let entrant =
            AllocatorKind::named(entrant).context("this version has no such allocator; this is a bug")?;
        candidates.push(Candidate { name: name.to_owned(), entrant, compaction });
    }
    for policy in of_user {
        let entrant = match names_policy_file(policy) {
            true => AllocatorKind::Linux(Box::new(*read_policy(Path::new(policy))?)),
            false => AllocatorKind::named(policy).with_context(|| format!("{policy}: no such policy"))?,
        };
        let name = entrant.name().to_owned();
        ensure!(
            candidates.iter().all(|other| other.name != name),
            "{name}: a row with this name exists already"
        );
        candidates.push(Candidate { name, entrant, compaction: Compaction::None });
    }
    Ok(candidates)
}

/// Number of samples of memory, at equal intervals over the day.
pub(super) const MOMENTS: u32 = 24;

/// The results of one row: a simulated day for each seed.
#[derive(Debug)]
pub(super) struct Days {
    pub(super) candidate: Candidate,
    pub(super) courses: Vec<Course>,
}

/// Simulates a day for each row and each seed.
pub(super) fn run(
    day: &Parameters,
    candidates: &[Candidate],
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<Vec<Days>> {
    let seeds: Vec<u64> = options.seeds().iter().collect();
    let plays: Vec<_> =
        candidates.iter().flat_map(|candidate| seeds.iter().map(move |seed| (candidate, *seed))).collect();
    let cancel = progress.cancel();
    let mut courses: Vec<Option<Course>> = plays.iter().map(|_| None).collect();
    let mut stage = Stage::begin(progress, "playing days", "days", plays.len());
    let one = |(candidate, seed): &(&Candidate, u64)| {
        let mut goes_on = || !cancel.load(Relaxed);
        Ok(play(day, *seed, &candidate.entrant, candidate.compaction, MOMENTS, &mut goes_on)?)
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
        candidate: candidate.clone(),
        courses: courses.by_ref().take(seeds.len()).collect(),
    };
    Ok(candidates.iter().map(days).collect())
}
