//! The 2025 series whose frees drain page sets in slices: a kernel build on three machines.

use anyhow::{Context as _, Result};
use pageset_report::Progress;
use pageset_report::comparison::{Band, Quantity};
use pageset_report::plot::{Axis, Mark};

use super::kernel_build::build_time;
use super::published::{Published, PublishedRow, published};
use super::simulated::{self, Borrowed, Case, Experiment, Fitted, Metric, Panels, changes};
use super::study::{Findings, Options, Study};
use crate::simulate::RunSpec;

/// The study.
#[derive(Debug)]
pub(crate) struct SlicedFrees;

/// The kernels before and after the series.
const STATES: [&str; 2] = ["linux-6.18", "linux-6.19"];
/// For each machine: its published name, and the simulated machine. The quickest comes first.
const MACHINES: [(&str, &str); 3] = [("small", "xeon-36"), ("medium", "zen-176"), ("large", "zen-316")];
/// For each metric: its published name, its key, its heading, and our figure. Our figure is the time for each
/// page that the build allocates: the published build has a fixed amount of work, and our runs have a fixed
/// time.
const TIMES: [(&str, &str, &str, Metric); 3] = [
    ("real", "real_rel", "real time", Metric::OfBase(build_time::<1>)),
    ("user", "user_rel", "user time", Metric::OfBase(|run| run.user_ms / run.allocated_pages as f64)),
    (
        "sys",
        "system_rel",
        "system time",
        Metric::OfBase(|run| (run.busy_ms - run.user_ms) / run.allocated_pages as f64),
    ),
];
/// Measured time of a run. Guess: enough for thousands of frees that drain.
const DURATION_MS: u64 = 400;

impl Study for SlicedFrees {
    fn name(&self) -> &'static str {
        "sliced-frees"
    }

    fn summary(&self) -> &'static str {
        "the 2025 series whose frees drain page sets in slices: a kernel build on 3 machines"
    }

    fn run(&self, options: &Options, progress: &mut dyn Progress) -> Result<Findings> {
        let mut experiments = experiments(&published!("sliced-frees/kbuild.csv")?)?;
        if options.is_quick {
            // The other machines take many times as long.
            experiments.truncate(1);
        }
        let simulated = simulated::run(&experiments, &Fitted::bundled()?, options, progress)?;
        let panels = Panels {
            title: "Frees in slices: published and simulated",
            axis: Axis::categories("kernel", STATES),
            mark: Mark::Bars,
            columns: &["real_rel", "user_rel", "system_rel"],
        };
        Ok(Findings {
            figures: vec![(self.name().to_owned(), panels.draw(&simulated.tables))],
            more: vec![changes(&simulated.tables)],
            notes: NOTES.map(str::to_owned).to_vec(),
            explanations: simulated.explanations(&EXPLANATIONS, options),
            tables: simulated.tables,
            machine: format!("simulated: {}", MACHINES.map(|(_, machine)| machine).join(", ")),
            policies: STATES.map(str::to_owned).to_vec(),
            timeline: None,
            seeds: Some(options.seeds()),
        })
    }
}

const NOTES: [&str; 4] = [
    "Nothing was fitted here. A compiler's time for each page is the one that was chosen on the base row of the 2023 series.",
    "The text prints changes only; its base row is 100 here, and the other 100 and the change. A change within the variation that \
     it prints (standard deviation by mean, of both rows: times the root of 2) is none.",
    "Times are for each page that the build allocates. Real time is that of a build of which 1.1 % is done by one CPU at a time, as \
     five published builds have it; system time is busy time besides the compilers' own work.",
    "The text gives CPUs and memory of its machines, and no processor: ours are extrapolated from others, as their files say.",
];

const EXPLANATIONS: [&str; 2] = [
    "On 316 CPUs our build loses what the published one gains. Slices are more visits to the zone's lock, and in our model, in \
     which every CPU is busy all the time, a visit costs more in a longer queue. On 176 and 36 CPUs that is little.",
    "User time changes in the text, also where the kernel has nothing to gain. A user's program takes the same time in every row \
     here, except where the other thread of its core is idle.",
];

/// Makes one experiment for each machine, with two rows: the base, and the series.
fn experiments(table: &Published) -> Result<Vec<Experiment>> {
    MACHINES.iter().map(|(name, machine)| experiment(table, name, machine)).collect()
}

fn experiment(table: &Published, name: &str, machine: &str) -> Result<Experiment> {
    let mut columns = Vec::new();
    let mut published = Vec::new();
    let mut cpus = 0.0;
    for (printed, key, heading, metric) in TIMES {
        let row = row(table, name, printed)?;
        let variation = row.number("variation_pct")?.context("no variation is printed")?;
        let band = Band::Percent(variation * std::f64::consts::SQRT_2);
        columns.push((Quantity { band, ..Quantity::relative(key, heading, "% of base", 2) }, metric));
        published.push(row.number("delta_pct")?.map(|change| 100.0 + change));
        cpus = row.number("cpus")?.context("no number of CPUs is printed")?;
    }
    let case = |policy: &str, base, published| Case {
        name: policy.to_owned(),
        base,
        run: RunSpec { duration_ms: Some(DURATION_MS), ..RunSpec::new(machine, "kbuild", policy) },
        published,
        variation_percent: None,
    };
    let base = vec![Some(100.0); TIMES.len()];
    Ok(Experiment {
        id: format!("kbuild-{name}"),
        title: format!("kernel build, make -j{cpus} on {cpus} CPUs"),
        columns,
        cases: vec![case(STATES[0], None, base), case(STATES[1], Some(0), published)],
        fits: Vec::new(),
        // The text gives no share of the zone lock to choose a compiler's time for each page on.
        borrowed: Borrowed::of_base("kbuild", "page_ns", STATES.len()),
    })
}

fn row<'a>(table: &'a Published, machine: &'a str, metric: &str) -> Result<PublishedRow<'a>> {
    let mut rows = table.rows_with("machine", machine);
    let found = rows.find(|row| row.text("metric").is_ok_and(|text| text == metric));
    found.with_context(|| format!("no row {machine} {metric}"))
}

#[cfg(test)]
mod tests {
    use pageset_sim::MACHINES as BUNDLED;

    use super::*;

    #[test]
    fn every_machine_has_as_many_cpus_and_as_much_memory_as_published() {
        let table = published!("sliced-frees/kbuild.csv").unwrap();
        for (name, machine) in MACHINES {
            let row = row(&table, name, "sys").unwrap();
            let bundled = BUNDLED.iter().find(|bundled| bundled.name == machine).unwrap().parse();
            assert_eq!(Some(f64::from(bundled.cpus())), row.number("cpus").unwrap(), "{machine}");
            let memory = format!(" {} GiB", row.text("memory_gib").unwrap());
            assert!(bundled.title.ends_with(&memory), "{}", bundled.title);
        }
    }

    #[test]
    fn published_changes_are_counted_from_100_and_within_their_variation_none() {
        let experiments = experiments(&published!("sliced-frees/kbuild.csv").unwrap()).unwrap();
        let large = &experiments[2];
        assert_eq!(large.cases[0].published, [Some(100.0); 3]);
        assert_eq!(large.cases[1].published[2], Some(100.0 - 11.8737));
        let Band::Percent(band) = large.columns[2].0.band else { panic!("a band in percent") };
        assert!((band - 7.109).abs() < 0.001, "{band}");
    }
}
