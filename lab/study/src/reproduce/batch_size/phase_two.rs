//! Phase two: 21 benchmarks with three batches.

use anyhow::Result;
use pageset_report::comparison::Quantity;

use super::{MACHINES, POLICY, phase_one};
use crate::reproduce::kernel_build::build_time;
use crate::reproduce::published::{PublishedRow, published};
use crate::reproduce::simulated::{Borrowed, Case, Experiment, Fit, Metric};
use crate::simulate::RunSpec;

/// For each benchmark: its published name, the workload that stands for it, and whether its value is a time.
const BENCHMARKS: [(&str, &str, Metric); 21] = [
    ("ebizzy.throughput", "ebizzy", Metric::SCORE),
    ("kbuild.buildtime", "kbuild", Metric::Scaled(build_time::<1>)),
    ("netperf/TCP_STREAM.Throughput_total_Mbps", "tcp-stream", Metric::SCORE),
    ("oltp.transactions", "oltp", Metric::SCORE),
    ("pigz.throughput", "pigz", Metric::SCORE),
    ("will-it-scale.malloc1.processes", "malloc1", Metric::SCORE),
    ("will-it-scale.malloc1.threads", "malloc1-threads", Metric::SCORE),
    ("will-it-scale.malloc2.processes", "malloc2", Metric::SCORE),
    ("will-it-scale.malloc2.threads", "malloc2", Metric::SCORE),
    ("will-it-scale.page_fault2.processes", "page_fault2", Metric::SCORE),
    ("will-it-scale.page_fault2.threads", "page_fault2-threads", Metric::SCORE),
    ("will-it-scale.page_fault3.processes", "page_fault3", Metric::SCORE),
    ("will-it-scale.page_fault3.threads", "page_fault3-threads", Metric::SCORE),
    ("will-it-scale.read1.processes", "read1", Metric::SCORE),
    ("will-it-scale.read1.threads", "read1", Metric::SCORE),
    ("will-it-scale.write1.processes", "write1", Metric::SCORE),
    ("will-it-scale.write1.threads", "write1", Metric::SCORE),
    ("vm-scalability.anon-r-rand.throughput", "anon-r-rand", Metric::SCORE),
    ("vm-scalability.anon-r-rand-mt.throughput", "anon-r-rand-mt", Metric::SCORE),
    ("vm-scalability.lru-file-mmap-read.throughput", "lru-file-mmap-read", Metric::SCORE),
    ("vm-scalability.lru-file-mmap-read-rand.throughput", "lru-file-mmap-read-rand", Metric::SCORE),
];

/// Benchmarks of a quick run.
const QUICK: [&str; 4] = ["page_fault2", "malloc2", "read1", "pigz"];
/// Workloads with the parameter `fault_ns`, which phase one has fitted for each machine.
const FAULTING: [&str; 4] = ["page_fault2", "page_fault2-threads", "page_fault3", "page_fault3-threads"];
/// The workload of `FAULTING` that copies as `page_fault2` does. The work for copying is chosen on its rows
/// of batch 31.
const COPYING_ALIKE: &str = "page_fault2-threads";
/// The table on whose base rows the work for copying is chosen, by `copying`.
pub(super) const COPYING: &str = "phase2-will-it-scale.page_fault2.processes";
/// The parameter that is the work for copying.
pub(super) const COPY_PARAMETER: &str = "copy_fault_ns";
/// Smallest and largest value that is tried for the work for copying.
pub(super) const COPY_RANGE: (u64, u64) = (100, 20_000);
/// Pages of the mappings of workloads in `FAULTING`: 32 MiB instead of 128. So the first pass, which fills
/// the file, ends before measuring.
const MAPPING_PAGES: u64 = 8192;
/// The batches. The first one is the base.
const BATCHES: [u32; 3] = [31, 63, 127];

/// The group of tables that a table is judged with. The other programs take few pages, or none, while they
/// are measured.
pub(in crate::reproduce) fn group(table: &str) -> &'static str {
    let is_faulting = ["page_fault2", "page_fault3"].iter().any(|program| table.contains(program));
    if is_faulting { "page_fault2 and page_fault3" } else { "other programs" }
}

/// Makes one table for each benchmark.
pub(in crate::reproduce) fn experiments(is_quick: bool) -> Result<Vec<Experiment>> {
    let table = published!("batch-size/phase2.csv")?;
    let mut experiments = Vec::new();
    for (benchmark, workload, metric) in BENCHMARKS {
        if is_quick && !QUICK.contains(&workload) {
            continue;
        }
        let mut cases = Vec::new();
        for row in table.rows_with("benchmark", benchmark) {
            add(&mut cases, row, workload)?;
        }
        let id = format!("phase2-{benchmark}");
        experiments.push(Experiment {
            fits: if id == COPYING { copy_fits(&cases) } else { Vec::new() },
            borrowed: borrowed(&cases, workload),
            id,
            title: format!("{benchmark}, by machine and batch"),
            columns: vec![(Quantity::relative("value", "value", "", 0), metric)],
            cases,
        });
    }
    Ok(experiments)
}

/// Adds the three cases of one machine.
fn add(cases: &mut Vec<Case>, row: PublishedRow<'_>, workload: &str) -> Result<()> {
    let printed = row.text("machine")?;
    // One table has a misprint; see ERRATA.csv.
    let name = if printed == "lk-bdw-ep2" { "lkp-bdw-ep2" } else { printed };
    let machine = MACHINES.iter().find(|(_, known, _)| *known == name);
    let (_, _, machine) = machine.ok_or_else(|| anyhow::anyhow!("no machine stands for {name}"))?;
    let base = cases.len();
    let score = row.number(&format!("batch{}", BATCHES[0]))?;
    for batch in BATCHES {
        let mut run = RunSpec { batch: Some(batch), ..RunSpec::new(machine, workload, POLICY) };
        if FAULTING.contains(&workload) {
            run.settings.insert("mapping_pages".to_owned(), MAPPING_PAGES);
            run.warmup_ms = phase_one::warmup_ms(machine, MAPPING_PAGES, score);
        }
        cases.push(Case {
            name: format!("{name} {batch}"),
            base: (batch != BATCHES[0]).then_some(base),
            run,
            published: vec![corrected(row.number(&format!("batch{batch}"))?)],
            variation_percent: row.number(&format!("batch{batch}_stddev_pct"))?,
        });
    }
    Ok(())
}

/// The parameter of each base row, whose value [`copying::fit`](super::copying::fit) seeks.
fn copy_fits(cases: &[Case]) -> Vec<Fit> {
    let bases = (0..cases.len()).filter(|&case| cases[case].base.is_none());
    let fit = |case| Fit { case, parameter: COPY_PARAMETER, range: COPY_RANGE, column: 0, rises: false };
    bases.map(fit).collect()
}

/// Parameters that the rows take from other tables: from phase one's of their machine, and the work for
/// copying.
fn borrowed(cases: &[Case], workload: &str) -> Vec<Borrowed> {
    let mut borrowed = Vec::new();
    for (case, Case { name, base, run, .. }) in cases.iter().enumerate() {
        if FAULTING.contains(&workload) {
            borrowed.extend(phase_one::borrowed(&run.machine, case));
        }
        if workload == COPYING_ALIKE {
            let row = base.map_or(name, |base| &cases[base].name).clone();
            borrowed.push(Borrowed { case, parameter: COPY_PARAMETER, table: COPYING.to_owned(), row });
        }
    }
    borrowed
}

/// Returns the value with its missing digit; see ERRATA.csv.
fn corrected(value: Option<f64>) -> Option<f64> {
    if value == Some(418_485.0) { Some(4_418_485.0) } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_row_is_simulated() {
        let experiments = experiments(false).unwrap();
        let rows: usize = experiments.iter().map(|experiment| experiment.cases.len()).sum();
        assert_eq!(rows, 181 * BATCHES.len());
        assert!(experiments.iter().all(|experiment| experiment.cases[0].base.is_none()));
    }
}
