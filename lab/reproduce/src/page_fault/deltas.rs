//! Tests the published explanation of why deltas (separate counts of pages for each task) made the kernel
//! slower. The test simulates kernels with and without deltas, on several kinds of planes (the networks
//! between groups of nodes).
//!
//! With deltas, no thread writes the cache line of the counters, but the published kernel became slower. The
//! author explains the slower kernel by planes. With atomic operations, two cache lines move, each over its
//! own plane. With deltas, only one cache line moves, over one plane. Each case of this test combines a kind
//! of planes with a placement of the counters in cache lines. The cases are chosen so that the explanation
//! could hold.

use anyhow::Result;
use pageset_report::{Cell, Column, Row, Table};

use super::printed::{PrintedRow, THREADS_OF_LISTING};
use super::runs::{Key, Runs, Wiring};
use super::tables::{AsPrinted, Reading, key};

/// The cases of the test, each with its key, its description, its planes, and whether the counters have their
/// own cache line.
const CASES: [(&str, &str, Wiring, bool); 6] = [
    ("one_line", "one line", wiring(false, false), false),
    ("two_lines", "two lines", wiring(false, false), true),
    ("two_lines_one_plane", "one plane", wiring(true, false), true),
    ("two_lines_requests", "requests", wiring(false, true), true),
    ("two_lines_one_plane_requests", "one plane, requests", wiring(true, true), true),
    ("one_line_requests", "one line, requests", wiring(false, true), false),
];

const fn wiring(has_one_plane: bool, has_requests: bool) -> Wiring {
    Wiring { has_one_plane, has_requests }
}

/// Returns pairs of rows that the published text compares: a row without deltas, and a row with deltas.
fn pairs(rows: &[PrintedRow]) -> Vec<(&PrintedRow, &PrintedRow)> {
    let has_deltas = |row: &PrintedRow| row.table.contains("delta");
    let with = rows.iter().filter(|row| has_deltas(row));
    let partner = |row: &PrintedRow| {
        let is_alike =
            |other: &&PrintedRow| !has_deltas(other) && (other.gib, other.threads) == (row.gib, row.threads);
        // If both kernels without deltas have a matching row, take the last one: the row of the kernel with
        // atomic operations.
        rows.iter().rfind(is_alike)
    };
    with.filter_map(|row| Some((partner(row)?, row))).collect()
}

fn case_key(row: &PrintedRow, reading: Reading, case: usize) -> Key {
    let (_, _, wiring, own_line) = CASES[case];
    Key { wiring, own_line, ..key(row, reading) }
}

/// Returns the assumptions about the number of threads that ran when a row was measured. The published
/// program has arrays for 128 threads. If a row names more than 128 threads, either all of these threads ran,
/// or only 128. For a row that names more than 128 threads, a quick run simulates only 128 threads.
fn readings(row: &PrintedRow, is_quick: bool) -> impl Iterator<Item = Reading> + use<> {
    let has_all = row.threads <= THREADS_OF_LISTING;
    let is_wanted = move |reading: &Reading| match reading {
        Reading::Printed => has_all || !is_quick,
        Reading::Listing => !has_all,
    };
    Reading::ALL.into_iter().filter(is_wanted)
}

/// Returns the simulations that the table needs.
pub(super) fn keys(rows: &[PrintedRow], is_quick: bool) -> Vec<Key> {
    let mut keys = Vec::new();
    for (without, with) in pairs(rows) {
        for reading in readings(with, is_quick) {
            for case in 0..CASES.len() {
                keys.extend([without, with].map(|row| case_key(row, reading, case)));
            }
        }
    }
    keys
}

/// How much deltas change the column fault/wsec, in percent, for each pair of rows.
pub(super) struct Deltas(Vec<Change>);

/// The printed change and the simulated changes of one row, in percent.
struct Change {
    gib: u32,
    threads: String,
    printed: f64,
    /// The simulated changes, one for each of [`CASES`].
    ours: Vec<f64>,
}

impl Deltas {
    pub(super) fn new(rows: &[PrintedRow], runs: &Runs, is_quick: bool) -> Result<Self> {
        let mut found = Vec::new();
        for (without, with) in pairs(rows) {
            for reading in readings(with, is_quick) {
                let change = |case| {
                    let rate = |row: &PrintedRow| {
                        let run = runs.get(&case_key(row, reading, case))?;
                        anyhow::Ok(AsPrinted::new(row, run).faults_per_wall_s)
                    };
                    anyhow::Ok(percent(rate(with)? / rate(without)?))
                };
                found.push(Change {
                    gib: with.gib,
                    threads: reading.name(with),
                    printed: percent(with.faults_per_wall_s / without.faults_per_wall_s),
                    ours: (0..CASES.len()).map(change).collect::<Result<_>>()?,
                });
            }
        }
        Ok(Self(found))
    }

    pub(super) fn table(&self) -> Table {
        let columns = [
            Column::count("gib", "GB"),
            Column::label("threads", "threads"),
            Column::measure("published", "published").with_unit("%"),
        ];
        let cases = CASES.map(|(key, words, ..)| Column::measure(key, words).with_unit("%"));
        let title = "The change of fault/wsec by deltas, by planes and place of the counters";
        let mut table = Table::new(title, columns.into_iter().chain(cases).collect());
        for change in &self.0 {
            let cells =
                [u64::from(change.gib).into(), change.threads.as_str().into(), Cell::real(change.printed, 1)];
            table
                .push(Row::new(cells.into_iter().chain(change.ours.iter().map(|ours| Cell::real(*ours, 1)))));
        }
        table.note(
            "One line: the counters are on the cache line of mmap_sem, as in the tables above. In the other \
             columns the counters have a line of their own on the second of two planes, as the published \
             text says. Requests: each CPU that waits for a line keeps a request on the line's plane. The \
             published change is relative to atomic operations with 512 GB, and to page locking with 256 GB.",
        );
        table
    }

    pub(super) fn sentence(&self) -> String {
        let lost = self.0.iter().filter(|change| change.printed < 0.0).flat_map(|change| &change.ours);
        let most = lost.copied().fold(f64::INFINITY, f64::min);
        let few = self.0.iter().filter(|change| change.printed > 0.0).map(|change| change.ours[1]);
        let few: Vec<_> = few.map(|ours| format!("{ours:+.1}")).collect();
        format!(
            "The published text explains the loss by deltas: without deltas, two lines use two planes, and \
             with deltas, one line uses one plane. This explanation is {}: rows with a printed loss of 25 to \
             34 % change by {most:+.1} % in the worst of six cases. A fault writes both lines one after the \
             other. So nearly all threads wait for the line with more writes, the line of mmap_sem. The \
             plane of the other line is idle, with or without deltas. Below 64 threads, counters on a line \
             of their own give the published gain of less than 10 %: {} %.",
            if most < -10.0 { "confirmed" } else { "refuted in this model" },
            few.join(", ")
        )
    }
}

fn percent(ratio: f64) -> f64 {
    100.0 * (ratio - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_of_deltas_stands_beside_the_row_that_the_text_names() {
        let rows = super::super::printed::rows().unwrap();
        let changes: Vec<_> = pairs(&rows)
            .into_iter()
            .map(|(without, with)| {
                let change = percent(with.faults_per_wall_s / without.faults_per_wall_s);
                (with.threads, without.strategy.to_string(), change.round())
            })
            .collect();
        let of = |threads, strategy: &str, change| (threads, strategy.to_owned(), change);
        let (locks, atomics) = ("P1,V1,R1", "P2,V1,R1");
        assert_eq!(
            changes,
            [
                of(64, atomics, -25.0),
                of(256, atomics, -28.0),
                of(512, atomics, -34.0),
                of(8, locks, 7.0),
                of(16, locks, 1.0),
                of(32, locks, 3.0)
            ]
        );
    }

    #[test]
    fn a_quick_run_simulates_no_more_threads_than_the_listing_has() {
        let rows = super::super::printed::rows().unwrap();
        assert!(keys(&rows, true).iter().all(|key| key.threads <= THREADS_OF_LISTING));
        assert!(keys(&rows, false).iter().any(|key| key.threads == 512));
    }
}
