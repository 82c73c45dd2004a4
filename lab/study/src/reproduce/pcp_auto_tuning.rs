//! The 2023 series that tunes `high` by itself: kbuild, netperf SCTP and lmbench AF_UNIX, patch by patch.

use anyhow::{Context as _, Result};
use pageset_report::Progress;
use pageset_report::comparison::Quantity;
use pageset_report::plot::{Axis, Mark};
use pageset_report::{Cell, Column, Row, Table};

use super::kernel_build::build_time;
use super::published::published;
use super::recorded_build;
use super::simulated::{self, Case, Experiment, Figure, Fit, Metric, Panels, Simulated};
use super::study::{Findings, Options, Study};
use crate::simulate::RunSpec;

/// The study.
#[derive(Debug)]
pub(crate) struct PcpAutoTuning;

/// For each row: its published name, and the policy that it is simulated with.
const STATES: [(&str, &str); 7] = [
    ("base", "linux-6.6"),
    ("patch1", "patch1"),
    ("patch3", "patch3"),
    ("patch5", "patch5"),
    ("patch7", "patch7"),
    ("patch9", "patch9"),
    ("patch10", "patch10"),
];

/// The rows of the series' third version, which was merged: published names and policies.
const STATES_V3: [(&str, &str); 6] = [
    ("base", "linux-6.6"),
    ("patch1", "patch1"),
    ("patch3", "patch3"),
    ("patch5", "patch5"),
    ("patch7", "patch7"),
    ("patch9", "linux-6.7"),
];

/// Rows of a quick run.
const QUICK: [&str; 3] = ["base", "patch5", "patch7"];

/// Number of tables of the first version. These tables come first.
const TABLES_V1: usize = 3;
/// Index of the build's table among them.
const BUILD: usize = 0;

/// Builds that ran at once in the third version.
const BUILDS_V3: u32 = 8;

/// Number of drains because of high-order frees, and number of pages from zones.
const FREE_HIGH: Figure = |result| result.free_high as f64;
const ALLOC_ZONE: Figure = |result| result.alloc_zone as f64;

/// Share of time spent waiting for spin locks. The series' changelogs call this column's numbers "spinlock
/// contention (mostly for zone lock)".
const SPIN_LOCKS: Metric = Metric::Sum(|result| result.zone_wait_percent, |result| result.lru_wait_percent);

const KBUILD_MACHINE: &str = "sapphire-rapids";
const NETWORK_MACHINE: &str = "two-socket-128";

impl Study for PcpAutoTuning {
    fn name(&self) -> &'static str {
        "pcp-auto-tuning"
    }

    fn summary(&self) -> &'static str {
        "the 2023 series that tunes page sets by itself, patch by patch: 4 tables"
    }

    fn has_parameters(&self) -> bool {
        true
    }

    fn run(&self, options: &Options, progress: &mut dyn Progress) -> Result<Findings> {
        let mut experiments = experiments()?.to_vec();
        if options.is_quick {
            for experiment in &mut experiments {
                experiment.cases.retain(|case| QUICK.contains(&case.name.as_str()));
            }
        }
        let mut notes = NOTES.map(str::to_owned).to_vec();
        if options.is_quick {
            notes.push(recorded_build::LEFT_OUT.to_owned());
        } else {
            experiments.push(recorded_build::experiment(&experiments[BUILD]));
        }
        let drawn = experiments[0].cases.iter().map(|case| case.name.as_str());
        let fitted = simulated::fitted(&experiments, options, progress)?;
        let mut simulated = simulated::run(&experiments, &fitted, options, progress)?;
        let mut more = Vec::new();
        if !options.is_quick {
            // The copies' results are no further table of the text.
            let copies = simulated.tables.pop().context("copies are the last")?;
            let drains = recorded_build::base_drains(&simulated, [experiments.len() - 1, BUILD]);
            more.push(recorded_build::table(&copies, &simulated.tables[BUILD], drains));
        }
        for (table, index) in simulated.tables.iter_mut().zip(0..) {
            // The last table has the rows of another version.
            table.set_group(if index < TABLES_V1 { "first version" } else { "third version's build" });
        }
        more.push(memory(&experiments[BUILD], &simulated));
        let panels = Panels {
            title: "PCP auto-tuning, patch by patch: published and simulated",
            axis: Axis::categories("kernel", drawn),
            mark: Mark::Bars,
            columns: &["spin_lock_percent", "free_high_rel", "alloc_zone_rel"],
        };
        Ok(Findings {
            figures: vec![
                (self.name().to_owned(), panels.draw(&simulated.tables[..1])),
                (format!("{}-network", self.name()), panels.draw(&simulated.tables[1..TABLES_V1])),
            ],
            notes,
            explanations: simulated.explanations(&EXPLANATIONS, options),
            tables: simulated.tables,
            more,
            machine: format!("simulated: {KBUILD_MACHINE}, {NETWORK_MACHINE}"),
            policies: STATES.map(|(_, policy)| policy.to_owned()).to_vec(),
            timeline: None,
            seeds: Some(options.seeds()),
        })
    }
}

/// The text's figures of used memory: the peak of a build with page sets that tune themselves is higher, and
/// then all return to the base. Source: the text of the series' first version.
const MEMORY_PRINTED: (f64, f64) = (150.6, 100.0);
/// The rows with these figures in the text.
const MEMORY_STATES: [&str; 3] = ["patch7", "patch9", "patch10"];

/// Makes a table of the memory that the build's machine uses. It is no table of the text, so its directions
/// do not count.
fn memory(kbuild: &Experiment, simulated: &Simulated) -> Table {
    let names = || kbuild.cases.iter().map(|case| case.name.as_str());
    let mut columns = vec![Column::label("memory", "memory")];
    columns.extend(names().map(|name| Column::ratio(name, name)));
    let mut table = Table::new("kbuild: used memory, base at the peak = 100", columns);
    let printed = |value: f64| {
        move |name: &str| match name {
            "base" => Cell::real(100.0, 1),
            name if MEMORY_STATES.contains(&name) => Cell::real(value, 1),
            _ => Cell::Absent,
        }
    };
    let base_pages = simulated.spread(0, 0, Metric::Result(USED_PEAK)).map(|spread| spread.mean);
    let ours = |figure: Figure| {
        (0..kbuild.cases.len()).map(move |case| {
            let pages = simulated.spread(0, case, Metric::Result(figure));
            pages
                .zip(base_pages)
                .map_or(Cell::Absent, |(pages, base)| Cell::real(100.0 * pages.mean / base, 1))
        })
    };
    let spread = (0..kbuild.cases.len())
        .filter_map(|case| simulated.spread(0, case, Metric::OfBase(USED_PEAK)))
        .map(|spread| spread.stddev)
        .fold(0.0, f64::max);
    let pages = (0..kbuild.cases.len()).map(|case| {
        let pages = simulated.spread(0, case, Metric::Result(|result| result.pcp_pages_peak as f64));
        pages.map_or(Cell::Absent, |pages| Cell::real(pages.mean / 1000.0, 1))
    });
    let mut push = |name: &str, cells: Vec<Cell>| {
        table.push(Row::new(std::iter::once(Cell::from(name)).chain(cells)));
    };
    push("peak, published", names().map(printed(MEMORY_PRINTED.0)).collect());
    push("peak, ours", ours(USED_PEAK).collect());
    push("base level again", names().map(printed(MEMORY_PRINTED.1)).collect());
    push("back, ours", ours(|result| result.pcp_pages_idle as f64).collect());
    push("page sets, 1000s", pages.collect());
    table.note(format!(
        "At the peak: pages in use and in page sets; ours is simulated, the largest standard deviation over seeds is {spread:.1}. \
         `base level again` says the text of the end of its run, in words: 100 is the base's own level then. `back` is what page \
         sets keep 30 s after the load is gone, in percent of the base's peak. The last row is the peak of page sets alone, in \
         thousands of pages."
    ));
    table.note(
        "Why they differ, as far as we can tell: high of all CPUs together may rise to an eighth of the memory, and nothing takes \
         pages back while the build runs, since there is no reclaim here. Nor is there a whole kernel: its page cache of sources and \
         objects is not in the base's memory, so the same pages are a larger share of it.",
    );
    table
}

const USED_PEAK: Figure = |result| result.shared.used_peak as f64;

/// The experiments of the first version, then the build of the third.
pub(super) fn experiments() -> Result<[Experiment; TABLES_V1 + 1]> {
    Ok([kbuild()?, sctp()?, unix()?, kbuild_v3()?])
}

const NOTES: [&str; 3] = [
    "Spin locks is the share of busy CPU time spent waiting for zone locks and LRU lists' locks, since profiles count a \
     contended lock's cycles as waiting, and the series' changelogs say of these numbers \"spinlock contention (mostly for zone \
     lock)\".",
    "kbuild builds a fixed amount, so its counts are compared for each finished process. netperf runs for a fixed time, and \
     lmbench's harness repeats until an interval is over (lmbench(8), timing(3)), so their counts are compared as they are.",
    "The base row of all relative columns is 100 by definition and counts as fitted.",
];

const EXPLANATIONS: [&str; 8] = [
    "Cache misses are those of the last level, of pages and their metadata only; a processor's counter sees everything. \
     They rise where high tunes itself up, as published, but more: our tasks exchange their CPUs in pairs, so all that a \
     receiver's page set keeps waits there until a sender comes.",
    "netperf SCTP: published scores rise by 4 to 7 %, ours by 1 %, while the share of spin locks falls alike: most of that gain \
     is not in our model. What is left of the zone lock after patch3 are packets of order 4, which no page set holds. \
     Published counts of alloc_zone follow the score until high tunes itself up; ours fall by 6 % with patch3 already, since \
     in our model messages whose memory is freed on the sender's CPU are made of that again.",
    "lmbench: published alloc_zone rises by 9 to 13 % while the score doubles; ours doubles with the score. So a page of theirs \
     carries more bytes after patch3, or comes from somewhere else: their slabs, or tasks that are moved. Ours have fixed sizes \
     of messages, and exchange CPUs seldom.",
    "kbuild: nearly all that is left of the spin locks after patch7 is the LRU list's here: one for all CPUs of a node. It takes \
     over as it does in the 2018 study. In the third version each build is in a cgroup, which has lists of its own: there nearly \
     nothing is left, as published.",
    "kbuild: patch5 gains too much in both versions. It lets a refill fetch up to 298 pages at once, so that a quarter of the \
     refills remain. The zone's lock is held nearly all the time before and after, so what counts is for how long it is held for each \
     page. Here that falls by 16 %; published shares need 4 %. A quarter of ours is that a refill begins anew less often, the rest that \
     larger refills leave more of a page's neighbours with the CPU that frees it. If half of the memory around is in use, it is 10 %. \
     Nor is it that our CPUs seldom free in between: nine tenths of the pages of a recorded build are \
     allocated in runs of 128 and more without a free.",
    "kbuild: published patch1 leaves half of free_high's drains, so every other one follows another high-order free. Here it leaves \
     2 %: nearly all are of the top of a process's page tables, of which two pages are freed after single ones. If it is one page, as in \
     the recorded builds, 24 of 807 drains are left, and 33 % of these after patch1; but then patch1 takes nothing off alloc_zone. \
     Recorded builds have no runs of high-order frees, so none are put into the model. It is not that what dead processes leave is freed \
     too evenly: if grace periods end at the same moments for all, patch1 leaves 2.4 % and not 2.3. (All with seed 1.)",
    "The published machines run a whole kernel; ours runs the allocator, the locks around it and a model of each \
     workload. Work outside the allocator takes the same time in every row. A build's time counts that one CPU at a time does \
     1.1 % of its work, as in five published builds. It still gains too much: locks are a larger part of our processes' time.",
    "The texts give no rate of work per CPU; one parameter for each table was chosen so that the base row's spin locks \
     come out, all other rows follow from it. For kbuild that is 4.9 us for each page, where a recorded build on a \
     faster processor computes for 15.",
];

/// Chooses a parameter so that the base row reaches the published share of spin locks, the second column of
/// each table.
const fn spin_locks_by(parameter: &'static str, range: (u64, u64)) -> Fit {
    Fit { case: 0, parameter, range, column: 1, rises: false }
}

/// Columns of the tables of builds.
fn build_columns(time: Figure) -> Vec<(Quantity, Metric)> {
    vec![
        (Quantity::relative("build_time_rel", "build time", "% of base", 1), Metric::OfBase(time)),
        (Quantity::share("spin_lock_percent", "spin locks", 1), SPIN_LOCKS),
        (Quantity::relative("free_high_rel", "free_high", "% of base", 1), Metric::PerWorkOfBase(FREE_HIGH)),
        (
            Quantity::relative("alloc_zone_rel", "alloc_zone", "% of base", 1),
            Metric::PerWorkOfBase(ALLOC_ZONE),
        ),
    ]
}

fn kbuild() -> Result<Experiment> {
    let printed = ["build_time_rel", "zone_lock_pct", "free_high_rel", "alloc_zone_rel"];
    let table = published!("pcp-auto-tuning/kbuild.csv")?;
    let run = RunSpec { cpus: Some(112), ..RunSpec::new(KBUILD_MACHINE, "kbuild", "") };
    Ok(Experiment {
        id: "kbuild".to_owned(),
        title: "kbuild on one socket of a 2-socket server, make -j 112".to_owned(),
        columns: build_columns(build_time::<1>),
        cases: Case::of_states(&table, &STATES, &printed, &run)?,
        fits: vec![spin_locks_by("page_ns", (500, 64_000))],
        borrowed: Vec::new(),
    })
}

fn kbuild_v3() -> Result<Experiment> {
    let printed = ["build_time_rel", "lock_contend_pct", "free_high_rel", "alloc_zone_rel"];
    let table = published!("pcp-auto-tuning/kbuild-v3.csv")?;
    let mut run = RunSpec::new(KBUILD_MACHINE, "kbuild", "");
    run.settings.insert("cgroups".to_owned(), BUILDS_V3.into());
    Ok(Experiment {
        id: "kbuild-v3".to_owned(),
        title: "kbuild on all of that server, 8 builds at once, in the series' third version".to_owned(),
        columns: build_columns(build_time::<BUILDS_V3>),
        cases: Case::of_states(&table, &STATES_V3, &printed, &run)?,
        ..kbuild()?
    })
}

/// Columns of both network tables.
fn network_columns() -> Vec<(Quantity, Metric)> {
    let relative = |key, heading| Quantity::relative(key, heading, "% of base", 1);
    vec![
        (relative("score_rel", "score"), Metric::OfBase(|result| result.score_per_s)),
        (Quantity::share("spin_lock_percent", "spin locks", 1), SPIN_LOCKS),
        (relative("free_high_rel", "free_high"), Metric::OfBase(FREE_HIGH)),
        (relative("alloc_zone_rel", "alloc_zone"), Metric::OfBase(ALLOC_ZONE)),
        (
            Quantity::share("cache_miss_rate_percent", "cache miss rate", 1),
            Metric::Result(|result| result.cache_miss_percent),
        ),
    ]
}

const NETWORK_PRINTED: [&str; 5] =
    ["score_rel", "zone_lock_pct", "free_high_rel", "alloc_zone_rel", "cache_miss_rate_pct"];

fn sctp() -> Result<Experiment> {
    let table = published!("pcp-auto-tuning/netperf-sctp.csv")?;
    let run = RunSpec { cpus: Some(128), ..RunSpec::new(NETWORK_MACHINE, "sctp-stream", "") };
    Ok(Experiment {
        id: "netperf-sctp".to_owned(),
        title: "netperf SCTP_STREAM_MANY on a 2-socket server, 128 CPUs, 64 pairs".to_owned(),
        columns: network_columns(),
        cases: Case::of_states(&table, &STATES, &NETWORK_PRINTED, &run)?,
        fits: vec![spin_locks_by("send_ns", (500, 200_000))],
        borrowed: Vec::new(),
    })
}

fn unix() -> Result<Experiment> {
    let table = published!("pcp-auto-tuning/lmbench3-af-unix.csv")?;
    let run = RunSpec { cpus: Some(32), ..RunSpec::new(NETWORK_MACHINE, "af-unix", "") };
    Ok(Experiment {
        id: "lmbench-af-unix".to_owned(),
        title: "lmbench3 UNIX on a 2-socket server, 128 CPUs, 16 pairs".to_owned(),
        columns: network_columns(),
        cases: Case::of_states(&table, &STATES, &NETWORK_PRINTED, &run)?,
        fits: vec![spin_locks_by("copy_kib_ns", (10, 20_000))],
        borrowed: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::simulated::Fitted;

    #[test]
    fn memory_at_the_peak_and_after_it_stands_beside_what_is_printed() {
        let mut kbuild = kbuild().unwrap();
        kbuild.cases.retain(|case| ["base", "patch7"].contains(&case.name.as_str()));
        for case in &mut kbuild.cases {
            case.run = RunSpec {
                cpus: None,
                warmup_ms: Some(5),
                duration_ms: Some(20),
                policy: case.run.policy.clone(),
                ..RunSpec::new("epyc-2", "kbuild", "")
            };
        }
        let options = Options { is_quick: true, jobs: 1, fit: None, seeds: Some(1) };
        let experiments = [kbuild];
        let simulated = simulated::run(&experiments, &Fitted::default(), &options, &mut ()).unwrap();
        assert_eq!(simulated.failures, Vec::<String>::new());
        let rows = serde_json::to_value(memory(&experiments[0], &simulated)).unwrap();
        let row = |name: &str| {
            let rows = rows["rows"].as_array().unwrap();
            rows.iter().find(|row| row["memory"] == name).unwrap_or_else(|| panic!("{rows:?}")).clone()
        };
        assert_eq!(row("peak, published")["patch7"], 150.6);
        assert_eq!(row("peak, ours")["base"], 100.0);
        assert!(row("peak, ours")["patch7"].as_f64().unwrap() > 50.0);
        // No memory is in use any more, and no page set can keep more than was ever taken.
        assert!(row("back, ours")["patch7"].as_f64() <= row("peak, ours")["patch7"].as_f64(), "{rows}");
        assert!(row("page sets, 1000s")["base"].as_f64().unwrap() > 0.0);
    }
}
