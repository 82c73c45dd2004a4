//! The study `ageing`: counts, during a simulated day of work, the units of 1 GiB without a page that cannot
//! be moved. The study compares Linux, the RFCs of 2026, and this project's own allocator. The study does not
//! model time.
//!
//! `runs` simulates the days, and `tables` shows the results.

mod runs;
mod tables;

use anyhow::Result;

use super::study::{Findings, Options, Study};
use pageset_report::Progress;
use pageset_study::ageing::Parameters;

/// See [`Study`].
#[derive(Debug)]
pub(crate) struct Ageing;

impl Study for Ageing {
    fn name(&self) -> &'static str {
        "ageing"
    }

    fn summary(&self) -> &'static str {
        "a day that mixes memory: units of 1 GiB that stay clean, under Linux, RFCs of 2026 and ours"
    }

    fn plays_days(&self) -> bool {
        true
    }

    fn run(&self, options: &Options, progress: &mut dyn Progress) -> Result<Findings> {
        let day = match &options.day {
            Some(path) => Parameters::read(path)?,
            None if options.is_quick => Parameters::quick(),
            None => Parameters::default(),
        };
        let candidates = runs::candidates(&options.policies)?;
        let runs = runs::run(&day, &candidates, options, progress)?;
        let mut policies: Vec<_> =
            candidates.iter().map(|candidate| candidate.entrant.name().to_owned()).collect();
        policies.dedup();
        Ok(Findings {
            more: vec![tables::end(&runs)],
            timeline: Some(tables::timeline(&runs)),
            figures: vec![(self.name().to_owned(), tables::figure(&runs))],
            notes: NOTES.map(str::to_owned).to_vec(),
            explanations: options.reasons(&REASONS),
            machine: format!("played: {} GiB, {} CPUs, one thread", day.memory_gib, day.cpus),
            policies,
            seeds: Some(options.seeds()),
            ..Findings::default()
        })
    }
}

const NOTES: [&str; 7] = [
    "The study shows how many units of 1 GiB stay free of pages that cannot be moved. It does not show \
     times or throughput, because no costs are simulated.",
    "A unit of 1 GiB is clean if each of its pages in use can be moved. The counts use the blocks that \
     were handed out, not the types that an allocator gives its pageblocks. Values are means over the \
     seeds.",
    "`needed`: the number of units that could hold all pages that cannot be moved, at the time when the \
     number of such pages is largest. `of others`: clean units, in percent of the units that are not needed.",
    "The day is the same for each allocator. Some parameters of the day are from recordings, and most are \
     guesses: none of our recordings is as long as a day. So differences between rows say more than a row's \
     own number.",
    "Published (RFC of May 2026, one machine of 256 GiB): of 238 units normally fewer than 20 hold \
     unmovable or reclaimable memory; 50 pages of 1 GiB could be allocated while the load ran.",
    "`+compaction` and `+worker` are models: a model knows the place of each page, and a move of a page \
     always succeeds and takes no time. The cost of a model is the number of moved pages. `+worker` models \
     the background worker of the RFC, and also does compaction.",
    "`superpageblock-rfc` chooses units as the posts of the RFC describe. The RFC's lists of remote frees \
     are left out, because one thread plays all CPUs.",
];

const REASONS: [&str; 1] = [
    "Linux's rows: a request that finds no memory of its type takes the largest block of another type. The \
     block is the first of its free list, and may be in any unit. So each unit gets some pageblocks that \
     cannot be moved. A unit with one page that cannot be moved is not clean.",
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Tests the form of the JSON that programs read: the table has one row for each policy, and the course
    /// of the day has its own keys.
    #[test]
    fn a_row_a_policy_has_the_end_of_the_day() {
        let mut day = Parameters::quick();
        (day.memory_gib, day.cpus, day.steps) = (2, 2, 24);
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/policies/half-drain.toml");
        let policies = vec![own.to_str().unwrap().to_owned(), "linux-6.6".to_owned()];
        let options = Options { is_quick: true, jobs: 1, fit: None, seeds: Some(2), policies, day: None };
        let candidates = runs::candidates(&options.policies).unwrap();
        assert_eq!(
            candidates.iter().map(|of| of.name.as_str()).skip(6).collect::<Vec<_>>(),
            ["half-drain", "linux-6.6"]
        );
        let runs = runs::run(&day, &candidates, &options, &mut ()).unwrap();
        let end = serde_json::to_value(tables::end(&runs)).unwrap();
        let rows = end["rows"].as_array().unwrap();
        assert_eq!(rows.len(), candidates.len());
        for (row, candidate) in rows.iter().zip(&candidates) {
            assert_eq!(row["policy"], candidate.name);
            assert!((0.0..=2.0).contains(&row["clean_units"].as_f64().unwrap()), "{row}");
        }
        let timeline = serde_json::to_value(tables::timeline(&runs)).unwrap();
        let rows = timeline["rows"].as_array().unwrap();
        assert!(rows.len() > candidates.len());
        assert!(rows.iter().all(|row| row.get("policy").is_none() && row.get("clean_units").is_none()));
        assert!(tables::figure(&runs).to_svg().is_ok());
    }

    #[test]
    fn a_policy_that_is_not_there_or_has_a_row_already_is_named() {
        let error = |name: &str| runs::candidates(&[name.to_owned()]).unwrap_err().to_string();
        assert_eq!(error("linux-6.18"), "linux-6.18: a row with this name exists already");
        assert_eq!(error("linux-1.0"), "linux-1.0: no such policy");
        assert!(error("none.toml").contains("there is no such policy file"));
    }
}
