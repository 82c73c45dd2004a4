//! The 2018 patches that shorten a drain's hold of the zone's lock: page_fault1 on four servers.

use anyhow::Result;
use pageset_report::Progress;
use pageset_report::comparison::Quantity;
use pageset_report::plot::{Axis, Mark};

use super::batch_size::phase_one;
use super::published::{Published, published};
use super::simulated::{self, Case, Experiment, Fitted, Metric, Panels};
use super::study::{Findings, Options, Study};
use crate::simulate::RunSpec;

/// The study.
#[derive(Debug)]
pub(crate) struct DrainPicks;

/// For each row: its printed name, and the policy that it is simulated with.
const STATES: [(&str, &str); 3] =
    [("v4.15-rc4", "linux-4.9"), ("patch 1", "linux-4.15-picks"), ("patch 2", "linux-4.15-prefetch")];
/// The kernel around the allocator, for all rows alike.
const KERNEL: &str = "linux-4.18";
/// For each machine: its name in the table, and the simulated machine. A quick run has the first two
/// machines.
const MACHINES: [(&str, &str); 4] = [
    ("Broadwell-EP", "broadwell-ep"),
    ("Skylake-EP", "skylake-ep"),
    ("Broadwell-EX", "broadwell-ex"),
    ("Skylake-EX", "skylake-ex"),
];
const QUICK: usize = 2;

impl Study for DrainPicks {
    fn name(&self) -> &'static str {
        "drain-picks"
    }

    fn summary(&self) -> &'static str {
        "the 2018 patches that pick a drain's pages before the zone's lock: page_fault1 on 4 machines"
    }

    fn run(&self, options: &Options, progress: &mut dyn Progress) -> Result<Findings> {
        let table = published!("drain-picks/page-fault1.csv")?;
        let mut experiments = experiments(&table)?;
        if options.is_quick {
            experiments.truncate(QUICK);
        }
        let simulated = simulated::run(&experiments, &Fitted::bundled()?, options, progress)?;
        let panels = Panels {
            title: "Picking a drain's pages before the lock: published and simulated",
            axis: Axis::categories("kernel", STATES.map(|(name, _)| name)),
            mark: Mark::Bars,
            columns: &["score"],
        };
        Ok(Findings {
            figures: vec![(self.name().to_owned(), panels.draw(&simulated.tables))],
            notes: NOTES.map(str::to_owned).to_vec(),
            explanations: simulated.explanations(&EXPLANATIONS, options),
            tables: simulated.tables,
            machine: format!("simulated: {}", MACHINES.map(|(_, machine)| machine).join(", ")),
            policies: STATES.map(|(_, policy)| policy.to_owned()).to_vec(),
            seeds: Some(options.seeds()),
            ..Findings::default()
        })
    }
}

const NOTES: [&str; 3] = [
    "Nothing was fitted here. Work for each fault and time under the LRU lock are those that were chosen on the rows of batch 31 of \
     the study batch-size, for the same machines with a later kernel.",
    "Scores are scaled so that the row v4.15-rc4 is as published.",
    "The text names machines by processor and sockets. They are taken for those of the study batch-size, by the same authors in the \
     same year.",
];

const EXPLANATIONS: [&str; 3] = [
    "Patch 1 gains next to nothing here. What it takes out of the lock is the work of taking a page off the page set, of which our \
     simulator only knows the page's line, and that is near. The published gain says what a real kernel pays for it.",
    "The 2-socket Broadwell waits for the LRU lock for most of its waiting, here as in the study batch-size: a shorter hold of the \
     zone's lock only brings CPUs to the LRU lock sooner.",
    "The 4-socket Broadwell gains four times what is published. Its time for a fault was chosen for the later kernel, and there \
     waiting goes over from the zone's lock to the LRU lock: a little less of one is much more of the other.",
];

/// Makes one table for each machine.
fn experiments(table: &Published) -> Result<Vec<Experiment>> {
    MACHINES.into_iter().map(|(name, machine)| experiment(table, name, machine)).collect()
}

fn experiment(table: &Published, name: &str, machine: &str) -> Result<Experiment> {
    let rows = table.rows_with("machine", name).collect::<Vec<_>>();
    let scores = rows.iter().map(|row| row.number("score")).collect::<Result<Vec<_>>>()?;
    let run = phase_one::run_at(machine, "", scores.first().copied().flatten());
    let case = |(index, (state, policy)): (usize, &(&str, &str))| Case {
        name: (*state).to_owned(),
        base: (index > 0).then_some(0),
        run: RunSpec { policy: (*policy).to_owned(), kernel_of: Some(KERNEL.to_owned()), ..run.clone() },
        published: vec![scores.get(index).copied().flatten()],
        variation_percent: None,
    };
    let cases: Vec<_> = STATES.iter().enumerate().map(case).collect();
    Ok(Experiment {
        id: format!("drain-picks-{machine}"),
        title: format!("will-it-scale page_fault1 on {name}"),
        columns: vec![(Quantity::relative("score", "score", "", 0), Metric::SCORE)],
        borrowed: (0..cases.len()).flat_map(|case| phase_one::borrowed(machine, case)).collect(),
        cases,
        fits: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_the_patch_that_it_says() {
        let table = published!("drain-picks/page-fault1.csv").unwrap();
        assert_eq!(table.rows().count(), MACHINES.len() * STATES.len());
        for (name, _) in MACHINES {
            let states = table.rows_with("machine", name).map(|row| row.text("state").unwrap().to_owned());
            assert!(states.eq(STATES.map(|(state, _)| state)), "{name}");
        }
        let fitted = Fitted::bundled().unwrap();
        for experiment in experiments(&table).unwrap() {
            let applied = fitted.applied(&experiment);
            assert!(applied.cases.iter().all(|case| case.run.settings.len() == 2), "{}", experiment.id);
            assert!(applied.cases.iter().all(|case| case.run.warmup_ms == applied.cases[0].run.warmup_ms));
        }
    }
}
