//! The 2016 series that lets page sets hold high-order pages: netperf UDP, sockperf and hackbench, before and after.

use anyhow::Result;
use pageset_report::comparison::{Band, Quantity};
use pageset_report::plot::{Axis, Mark};

use super::published::{Published, published};
use super::simulated::{self, Case, Experiment, Fitted, Metric, Panels};
use super::study::{Findings, Options, Study};
use crate::Progress;
use crate::simulate::RunSpec;

/// The study.
#[derive(Debug)]
pub(crate) struct HighOrderPcp;

const VANILLA: &str = "linux-4.9";
const PATCHED: &str = "linux-4.9-highorder-v5";
const OLD: &str = "one-socket-2010";
const NEW: &str = "two-socket-2016";

impl Study for HighOrderPcp {
    fn name(&self) -> &'static str {
        "high-order-pcp"
    }

    fn summary(&self) -> &'static str {
        "the 2016 series that gives page sets high orders: netperf, sockperf, hackbench"
    }

    fn run(&self, options: &Options, progress: &mut dyn Progress) -> Result<Findings> {
        let experiments = experiments()?;
        let simulated = simulated::run(&experiments, &Fitted::default(), options, progress)?;
        let gain = Panels {
            title: "High-order page sets: throughput or time, published and simulated",
            axis: Axis::linear("row", ""),
            mark: Mark::Points,
            columns: &["throughput", "seconds"],
        };
        Ok(Findings {
            figures: vec![(self.name().to_owned(), gain.draw(&simulated.tables))],
            notes: NOTES.map(str::to_owned).to_vec(),
            explanations: simulated.explanations(&EXPLANATIONS),
            tables: simulated.tables,
            machine: format!("simulated: {OLD}, {NEW}"),
            policies: vec![VANILLA.to_owned(), PATCHED.to_owned()],
            seeds: Some(options.seeds()),
            ..Findings::default()
        })
    }
}

const NOTES: [&str; 3] = [
    "Each size, message or group count has its own base row: 4.9 as it was. Our unit of work is another than the \
     text's, so each base row is scaled to the published one and counts as fitted; what is predicted is the change.",
    "Of netperf's rows the received throughput is compared; what was sent differs from it by less than 2 %.",
    "Where the text prints a standard deviation, no change is a change within the deviations of both rows (root of the \
     sum of squares), or 2 %. Rows of standard deviations are not simulated.",
];

const EXPLANATIONS: [&str; 3] = [
    "The text's one-socket netperf table measured v4 of the patch; v5 is simulated.",
    "Messages that come from slabs (up to 4096 bytes, sockperf, hackbench) reach the page allocator once for a whole slab \
     in our model, so the patch changes nothing there; published are 30 to 50 % for UDP. Where a message is pages of its \
     own (8192 and 16384 bytes) the gain is 17 to 38 %, published 23 to 38 %. In our model the receiver keeps up, so an \
     object is freed before the sender's slab is used up, and the slab is used again: nothing reaches the page allocator.",
    "What is published is nearly the same time for every datagram (bytes * 8 / throughput): two sockets 2.87 to 1.97 us with \
     64 bytes, 3.47 to 2.56 with 4096, 4.11 to 3.06 with 8192, 4.91 to 3.99 with 16384, that is 0.91 to 1.05 us less \
     whatever the size; one socket 1.82 to 2.05 us less; sockperf UDP 0.82 to 0.90 us less; sockperf TCP, where many \
     messages share a segment, at most 0.04 us. A 64-byte datagram takes a fraction of a slab's page, one of 16384 bytes \
     pages of its own, yet both gain alike: so most of the gain cannot be the page allocator's. We suppose that the two \
     kernels differ in something else that each datagram meets once; a model of the page allocator cannot show that.",
];

fn experiments() -> Result<Vec<Experiment>> {
    let netperf = |size: &str| size.strip_prefix("recv-").map(|bytes| ("message_bytes", bytes.to_owned()));
    let bytes = |size: &str| Some(("message_bytes", size.to_owned()));
    let groups = |case: &str| Some(("groups", case.to_owned()));
    let pair =
        |machine: &str, workload: &str| RunSpec { cpus: Some(2), ..RunSpec::new(machine, workload, "") };
    let throughput = || (Quantity::relative("throughput", "throughput", "", 2), Metric::Score);
    let seconds = || (Quantity::relative("seconds", "seconds", "s", 4), Metric::Time);
    let stream = "netperf UDP_STREAM over localhost";
    let tables = [
        ("netperf-udp-1socket", format!("{stream}, one socket"), "Hmean", throughput()),
        ("netperf-udp-2socket", format!("{stream}, two sockets"), "Hmean", throughput()),
        ("sockperf-tcp", "sockperf TCP throughput, two sockets".to_owned(), "Hmean", throughput()),
        ("sockperf-udp", "sockperf UDP throughput, two sockets".to_owned(), "Hmean", throughput()),
        ("hackbench-pipes", "hackbench, processes and pipes, one socket".to_owned(), "Amean", seconds()),
        ("hackbench-sockets", "hackbench, processes and sockets, one socket".to_owned(), "Amean", seconds()),
    ];
    let cases = [
        cases(
            &published!("high-order-pcp/netperf-udp-1socket.csv")?,
            "Hmean",
            &pair(OLD, "udp-stream"),
            netperf,
        )?,
        cases(
            &published!("high-order-pcp/netperf-udp-2socket.csv")?,
            "Hmean",
            &pair(NEW, "udp-stream"),
            netperf,
        )?,
        cases(&published!("high-order-pcp/sockperf-tcp.csv")?, "Hmean", &pair(NEW, "sockperf-tcp"), bytes)?,
        cases(&published!("high-order-pcp/sockperf-udp.csv")?, "Hmean", &pair(NEW, "sockperf-udp"), bytes)?,
        cases(
            &published!("high-order-pcp/hackbench-pipes.csv")?,
            "Amean",
            &RunSpec::new(OLD, "hackbench-pipes", ""),
            groups,
        )?,
        cases(
            &published!("high-order-pcp/hackbench-sockets.csv")?,
            "Amean",
            &RunSpec::new(OLD, "hackbench-sockets", ""),
            groups,
        )?,
    ];
    let experiment = |((id, title, _, column), cases): ((&str, String, &str, _), _)| Experiment {
        id: id.to_owned(),
        title,
        columns: vec![column],
        cases,
        fits: Vec::new(),
        borrowed: Vec::new(),
    };
    Ok(tables.into_iter().zip(cases).map(experiment).collect())
}

/// Columns of before and after; the patch was called differently in different tables.
const BEFORE: &str = "vanilla_4_9_0_rc5";
const AFTER: [&str; 3] = ["hopcpu_v5", "hopcpu_v4", "highmark_v5"];

/// Two cases for each row of means: before, and after compared with it. `parameter` turns the row's name into the
/// workload's parameter, or leaves the row out.
fn cases(
    table: &Published,
    mean: &str,
    run: &RunSpec,
    parameter: impl Fn(&str) -> Option<(&'static str, String)>,
) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for row in table.rows_with("stat", mean) {
        let name = row.text("case")?;
        let Some((key, value)) = parameter(name) else { continue };
        let mut run = run.clone();
        run.settings.insert(key.to_owned(), value.parse()?);
        let after = AFTER.into_iter().find(|column| row.text(column).is_ok()).unwrap_or(AFTER[0]);
        let base = cases.len();
        let band = band(table, name, after)?;
        for (base, policy, column) in [(None, VANILLA, BEFORE), (Some(base), PATCHED, after)] {
            let kernel = if base.is_none() { "4.9" } else { "v5" };
            let run = RunSpec { policy: policy.to_owned(), ..run.clone() };
            let published = vec![row.number(column)?];
            cases.push(Case { name: format!("{name} {kernel}"), base, run, published, band });
        }
    }
    Ok(cases)
}

/// The printed standard deviations of both rows together, in percent of the first mean.
fn band(table: &Published, name: &str, after: &str) -> Result<Option<Band>> {
    let mut deviation = None;
    let mut mean = None;
    for row in table.rows_with("case", name) {
        if row.text("stat")? == "Stddev" {
            deviation = row.number(BEFORE)?.zip(row.number(after)?);
        } else {
            mean = row.number(BEFORE)?;
        }
    }
    let percent = deviation.zip(mean).map(|((before, after), mean)| before.hypot(after) / mean * 100.0);
    Ok(percent.map(|percent| Band::Percent(percent.max(2.0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mean_has_its_base_and_its_band() {
        let experiments = experiments().unwrap();
        let rows: Vec<_> = experiments.iter().map(|experiment| experiment.cases.len()).collect();
        assert_eq!(rows, [18, 18, 10, 10, 12, 12]);
        let pipes = &experiments[4].cases;
        assert_eq!((pipes[6].name.as_str(), pipes[7].base), ("7 4.9", Some(6)));
        assert_eq!(pipes[7].published, [Some(23.0550)]);
        // hypot(0.5310, 0.6680) / 24.5690
        assert!(matches!(pipes[7].band, Some(Band::Percent(percent)) if (percent - 3.473).abs() < 0.001));
        assert!(experiments[0].cases[0].band.is_none(), "netperf prints no deviation");
    }
}
