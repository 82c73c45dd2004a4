//! The 2025 patch that raises the threshold of free_high: iperf3, AF_UNIX, SCTP and kbuild on 768 vCPUs.

use anyhow::Result;
use pageset_report::Progress;
use pageset_report::comparison::Quantity;
use pageset_report::plot::{Axis, Mark};

use super::kernel_build::build_time;
use super::published::{Published, published};
use super::simulated::{self, Borrowed, Case, Experiment, Figure, Fitted, Metric, Panels};
use super::study::{Findings, Options, Study};
use crate::simulate::RunSpec;

/// The study.
#[derive(Debug)]
pub(crate) struct FreeHighThreshold;

/// For each row: its printed name, and the policy that it is simulated with.
const STATES: [(&str, &str); 3] =
    [("v6.6", "linux-6.6"), ("v6.12", "linux-6.12.0"), ("v6.12+threshold", "linux-6.18.0")];
const MACHINE: &str = "epyc-768";

impl Study for FreeHighThreshold {
    fn name(&self) -> &'static str {
        "free-high-threshold"
    }

    fn summary(&self) -> &'static str {
        "the 2025 patch that raises the threshold of free_high, on 768 CPUs: 4 benchmarks"
    }

    fn run(&self, options: &Options, progress: &mut dyn Progress) -> Result<Findings> {
        let mut experiments = experiments(&published!("free-high-threshold/relative.csv")?)?;
        if options.is_quick {
            // The build takes ten times as long as the other benchmarks together.
            experiments.truncate(3);
        }
        let simulated = simulated::run(&experiments, &Fitted::bundled()?, options, progress)?;
        let panels = Panels {
            title: "The threshold of free_high: published and simulated",
            axis: Axis::categories("kernel", STATES.map(|(name, _)| name)),
            mark: Mark::Bars,
            columns: &["score_rel"],
        };
        Ok(Findings {
            figures: vec![(self.name().to_owned(), panels.draw(&simulated.tables))],
            notes: NOTES.map(str::to_owned).to_vec(),
            explanations: simulated.explanations(&EXPLANATIONS, options),
            tables: simulated.tables,
            machine: format!("simulated: {MACHINE}"),
            policies: STATES.map(|(_, policy)| policy.to_owned()).to_vec(),
            seeds: Some(options.seeds()),
            ..Findings::default()
        })
    }
}

const NOTES: [&str; 3] = [
    "Nothing was fitted here: the text gives no share of the zone lock. The cost of a message or a page is the one that was \
     chosen on the base row of the 2023 series for the same benchmark; iperf3 has our workload's own.",
    "The text compares 6.12 with and without the patch; the third row is simulated as 6.18.0, which has it.",
    "The text does not say how many CPUs AF_UNIX, SCTP and the build used: 32, 128 and all of them here.",
];

const EXPLANATIONS: [&str; 2] = [
    "iperf3: segments of our TCP model fit the page sets on every kernel, so no kernel drains them and nothing changes. On the \
     published machine runs of high-order frees drain them on 6.12; the model lacks what makes these runs.",
    "AF_UNIX, SCTP and the build: on 6.6 our model spends most of the time in the zone lock on 768 CPUs, which the published kernel \
     does not: its 6.6 is as fast as its 6.12. So too many CPUs meet at one lock in our model of this machine, whose costs are \
     guesses for the most part.",
];

/// Makes an experiment for each benchmark: its column, its workload with CPUs, and the parameter that was
/// chosen on another study's table.
fn experiments(table: &Published) -> Result<Vec<Experiment>> {
    const SCORE: Figure = |run| run.score_per_s;
    let benchmarks: [(_, _, _, _, _, Figure); 4] = [
        ("iperf3", "iperf3, 64 pairs", "iperf3_rel", ("tcp-stream", 128), None, SCORE),
        (
            "lmbench-af-unix-768",
            "lmbench3 AF_UNIX",
            "lmbench3_af_unix_rel",
            ("af-unix", 32),
            Some(("lmbench-af-unix", "copy_kib_ns")),
            SCORE,
        ),
        (
            "netperf-sctp-768",
            "netperf SCTP_STREAM_MANY",
            "netperf_sctp_rel",
            ("sctp-stream", 128),
            Some(("netperf-sctp", "send_ns")),
            SCORE,
        ),
        ("kbuild-768", "kbuild", "kbuild_rel", ("kbuild", 768), Some(("kbuild", "page_ns")), |run| {
            1.0 / build_time::<1>(run)
        }),
    ];
    benchmarks
        .into_iter()
        .map(|(id, title, column, (workload, cpus), from, score)| {
            let run = RunSpec { cpus: Some(cpus), ..RunSpec::new(MACHINE, workload, "") };
            let cases = Case::of_states(table, &STATES, &[column], &run)?;
            Ok(Experiment {
                id: id.to_owned(),
                title: format!("{title} on 2 sockets of 384 vCPUs"),
                columns: vec![(
                    Quantity::relative("score_rel", "score", "% of 6.6", 1),
                    Metric::OfBase(score),
                )],
                borrowed: from.map_or_else(Vec::new, |(table, parameter)| {
                    Borrowed::of_base(table, parameter, cases.len())
                }),
                cases,
                fits: Vec::new(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_the_kernel_that_it_says() {
        let table = published!("free-high-threshold/relative.csv").unwrap();
        for (row, (state, _)) in table.rows().zip(STATES) {
            assert_eq!(row.text("state").unwrap(), state);
        }
        let experiments = experiments(&table).unwrap();
        assert_eq!(experiments.iter().map(|one| one.cases.len()).sum::<usize>(), 12);
        assert_eq!(experiments[0].cases[1].published, [Some(69.0)]);
        assert!(experiments[0].borrowed.is_empty() && experiments[3].borrowed.len() == 3);
    }
}
