//! The results as one JSON document.

use pageset_report::Spread;
use serde::Serialize;

use crate::args::Args;
use crate::machine::Machine;
use crate::row::RowInfo;
use crate::runner::{JobOutcome, Measured};
use crate::target::Side;

/// The whole document.
#[derive(Debug, Serialize)]
pub(crate) struct Document {
    /// The machine of the measurement.
    pub(crate) machine: Machine,
    /// Commit of the program.
    pub(crate) commit: &'static str,
    /// Whether windows and bursts were short.
    pub(crate) quick: bool,
    /// How often a quick job was measured. Jobs with much preparation were measured half or a third as often.
    pub(crate) rounds: u32,
    /// The measured allocators.
    pub(crate) allocators: Vec<Allocator>,
    /// The results. In every row less is better.
    pub(crate) rows: Vec<Row>,
}

/// One allocator and how it was built.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Allocator {
    /// Its name in the rows.
    pub(crate) allocator: &'static str,
    /// Its version.
    pub(crate) version: String,
    /// How it was built and called.
    pub(crate) build: &'static str,
}

/// One row.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    /// Its name.
    pub(crate) row: &'static str,
    /// Threads that worked.
    pub(crate) threads: usize,
    /// The unit of the values.
    pub(crate) unit: &'static str,
    /// The values of each allocator that could do it, best first.
    pub(crate) results: Vec<Value>,
    /// The allocators that could not do it.
    pub(crate) absent: Vec<Absent>,
    /// The peer with the smallest median.
    pub(crate) best_peer: Option<&'static str>,
    /// The best peer's median divided by that of pageset. If this is above 1, pageset is better.
    pub(crate) pageset_vs_best: Option<f64>,
}

/// The result of one allocator.
#[derive(Debug, Serialize)]
pub(crate) struct Value {
    /// Its name.
    pub(crate) allocator: &'static str,
    /// Its version.
    pub(crate) version: String,
    /// The median of all rounds.
    pub(crate) median: f64,
    /// The best round.
    pub(crate) min: f64,
    /// The worst round.
    pub(crate) max: f64,
    /// Rounds that were measured.
    pub(crate) rounds: u64,
    #[serde(skip)]
    side: Side,
}

impl Value {
    /// Whether this is the floor's value, without an allocator.
    pub(crate) fn is_floor(&self) -> bool {
        self.side == Side::Floor
    }
}

/// Why an allocator has no value.
#[derive(Debug, Serialize)]
pub(crate) struct Absent {
    /// Its name.
    pub(crate) allocator: &'static str,
    /// The reason.
    pub(crate) reason: String,
}

impl Document {
    /// The document of a run.
    pub(crate) fn new(args: &Args, machine: Machine, outcome: &[JobOutcome]) -> Self {
        let rows = outcome.iter().flat_map(|outcome| {
            let rows = outcome.job.rows.iter().enumerate();
            rows.filter(|(_, row)| args.wants(row.name))
                .map(|(index, row)| Row::new(row, outcome.job.threads, index, &outcome.measured))
        });
        Self {
            machine,
            commit: env!("PEERS_COMMIT"),
            quick: args.quick,
            rounds: args.rounds(),
            allocators: allocators(outcome),
            rows: rows.collect(),
        }
    }
}

/// All allocators that were measured, in the order of the list.
fn allocators(outcome: &[JobOutcome]) -> Vec<Allocator> {
    let Some(first) = outcome.first() else { return Vec::new() };
    let named = |measured: &Measured| Allocator {
        allocator: measured.target.name,
        version: version(measured),
        build: measured.target.build,
    };
    first.measured.iter().map(named).collect()
}

fn version(measured: &Measured) -> String {
    measured.version.clone().unwrap_or_else(|| measured.target.version.to_owned())
}

impl Row {
    fn new(row: &RowInfo, threads: usize, index: usize, measured: &[Measured]) -> Self {
        let mut results = Vec::new();
        let mut absent = Vec::new();
        for measured in measured {
            let allocator = measured.target.name;
            match Spread::of(&measured.values[index]) {
                Some(Spread { runs: rounds, median, min, max, .. }) => {
                    let (version, side) = (version(measured), measured.target.side);
                    results.push(Value { allocator, version, median, min, max, rounds, side });
                }
                None => {
                    let reason =
                        measured.absent.clone().unwrap_or_else(|| "not measured with --quick".to_owned());
                    absent.push(Absent { allocator, reason });
                }
            }
        }
        results.sort_by(|left, right| left.median.total_cmp(&right.median));
        let best = results.iter().find(|value| value.side.is_peer());
        let ours = results.iter().find(|value| value.side == Side::Pageset);
        let ratio = best.zip(ours).map(|(best, ours)| best.median / ours.median);
        Self {
            row: row.name,
            threads,
            unit: row.unit,
            best_peer: best.map(|value| value.allocator),
            pageset_vs_best: ratio.filter(|ratio| ratio.is_finite()),
            results,
            absent,
        }
    }

    /// The values of pageset.
    pub(crate) fn ours(&self) -> Option<&Value> {
        self.results.iter().find(|value| value.side == Side::Pageset)
    }

    /// The values of the peers, best first.
    pub(crate) fn peers(&self) -> impl Iterator<Item = &Value> {
        self.results.iter().filter(|value| value.side.is_peer())
    }

    /// The values of the best peer.
    pub(crate) fn best(&self) -> Option<&Value> {
        self.peers().next()
    }
}

#[cfg(test)]
impl Document {
    /// A document of these rows, as if they had been measured here.
    pub(crate) fn of_rows(rows: Vec<Row>) -> Self {
        let machine = Machine::here();
        Self { machine, commit: "0000000", quick: true, rounds: 1, allocators: Vec::new(), rows }
    }
}

/// A row `pair-0` made of allocators and their values.
#[cfg(test)]
pub(crate) fn example(values: &[(&str, &[f64])]) -> Row {
    let measured: Vec<_> = values.iter().map(|(name, values)| tests::measured(name, values)).collect();
    tests::row(&measured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::TARGETS;

    pub(super) fn measured(name: &str, values: &[f64]) -> Measured {
        let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
        let absent = values.is_empty().then(|| "cannot".to_owned());
        Measured { target, values: vec![values.to_vec()], absent, version: None }
    }

    pub(super) fn row(measured: &[Measured]) -> Row {
        Row::new(&RowInfo { name: "pair-0", unit: "ns/pair" }, 1, 0, measured)
    }

    #[test]
    fn the_ratio_is_that_of_the_best_peer() {
        let row = row(&[
            measured("pageset", &[2.0, 2.0, 9.0]),
            measured("pageset-core", &[1.0]),
            measured("glibc", &[30.0]),
            measured("snmalloc", &[4.0, 5.0, 6.0]),
            measured("mmap", &[]),
        ]);
        assert_eq!((row.best_peer, row.pageset_vs_best), (Some("snmalloc"), Some(2.5)));
        assert_eq!(row.absent[0].reason, "cannot");
        assert_eq!(row.results[0].allocator, "pageset-core");
    }

    #[test]
    fn the_keys_are_those_that_readers_rely_on() {
        let row = row(&[measured("glibc", &[1.0, 2.0, 4.0])]);
        let json = serde_json::to_value(&row).expect("plain values");
        assert_eq!(json["row"], "pair-0");
        assert_eq!(json["threads"], 1);
        assert_eq!(json["unit"], "ns/pair");
        assert!(json["pageset_vs_best"].is_null());
        let result = &json["results"][0];
        assert_eq!(result["allocator"], "glibc");
        assert!(result["version"].is_string());
        assert_eq!(
            (&result["median"], &result["min"], &result["max"]),
            (&2.0.into(), &1.0.into(), &4.0.into())
        );
    }
}
