//! The table that no text has: page table x areas x counters, from 1 to 512 CPUs.

use anyhow::Result;
use pageset_fault::{Account, Stabilise, Strategy};
use pageset_report::{Cell, Column, Row, Table};

use super::runs::{Key, Runs};

/// Numbers of threads.
fn counts(is_quick: bool) -> &'static [u32] {
    if is_quick { &[1, 8, 64] } else { &[1, 2, 8, 32, 128, 512] }
}

/// Pages of each thread: all fit into its node, so memory is local and its bandwidth grows with the CPUs.
const THREAD_PAGES: u64 = 256;

/// Page table x areas x counters; with `is_quick` those of the text, today's, and the one without any line that all write.
fn strategies(is_quick: bool) -> Vec<Strategy> {
    const QUICK: [&str; 5] = ["P0,V1,R1", "P1,V1,R1", "P2,V1,R2", "P1,V2,R4", "P2,V7,R3"];
    if is_quick {
        return QUICK.iter().filter_map(|name| name.parse().ok()).collect();
    }
    // With V0 areas could not change: it is an upper bound, not a strategy. The other counters are in T4.
    let accounts = [Account::R1, Account::R2, Account::R3, Account::R4];
    Strategy::all()
        .filter(|strategy| strategy.stabilise() != Stabilise::V0 && accounts.contains(&strategy.account()))
        .collect()
}

fn key(strategy: Strategy, threads: u32) -> Key {
    Key::new(strategy, threads, THREAD_PAGES)
}

/// Everything that the table needs.
pub(super) fn keys(is_quick: bool) -> Vec<Key> {
    let of = |strategy| counts(is_quick).iter().map(move |threads| key(strategy, *threads));
    strategies(is_quick).into_iter().flat_map(of).collect()
}

/// Pages touched per second, for each strategy and number of threads.
pub(super) struct Matrix {
    pub(super) counts: &'static [u32],
    pub(super) rows: Vec<(Strategy, Vec<f64>)>,
}

impl Matrix {
    pub(super) fn new(runs: &Runs, is_quick: bool) -> Result<Self> {
        let counts = counts(is_quick);
        let row = |strategy| {
            let rates =
                counts.iter().map(|threads| Ok(runs.get(&key(strategy, *threads))?.touch_pages_per_s()));
            Ok((strategy, rates.collect::<Result<_>>()?))
        };
        Ok(Self { counts, rows: strategies(is_quick).into_iter().map(row).collect::<Result<_>>()? })
    }

    pub(super) fn table(&self) -> Table {
        let mut columns = vec![Column::label("strategy", "strategy")];
        for threads in self.counts {
            columns.push(
                Column::measure(&format!("pages_per_s_{threads}"), &threads.to_string()).with_unit("1000/s"),
            );
        }
        columns.push(Column::ratio("linear_percent", "linear").with_unit("%"));
        let mut table = Table::new("Pages touched per second by number of CPUs (simulated)", columns);
        for (strategy, rates) in &self.rows {
            let mut cells = vec![strategy.to_string().into()];
            cells.extend(rates.iter().map(|rate| Cell::real(rate / 1e3, 0)));
            cells.push(Cell::real(100.0 * self.linear(rates), 0));
            table.push(Row::new(cells));
        }
        table.note(
            "Touching alone, own slices, all memory local. Linear: the last column as a share of what its CPUs would do if \
             each were as fast as one alone. A thread touches 256 pages, an eighth of what its first table covers: with \
             hundreds of CPUs building that table shows.",
        );
        table
    }

    /// The last rate as a share of as many times the first.
    fn linear(&self, rates: &[f64]) -> f64 {
        match (rates.first(), rates.last(), self.counts.last()) {
            (Some(first), Some(last), Some(&most)) => last / (first * f64::from(most)),
            _ => f64::NAN,
        }
    }

    pub(super) fn sentences(&self) -> Vec<String> {
        let most = self.counts.last().copied().unwrap_or(1);
        let named = |name: &str| self.rows.iter().find(|(strategy, _)| strategy.to_string() == name);
        let share = |name| named(name).map(|(_, rates)| 100.0 * self.linear(rates));
        let linear = self.rows.iter().filter(|(_, rates)| self.linear(rates) >= 0.9).count();
        share("P2,V7,R3")
            .map(|share| {
                format!(
                    "P2,V7,R3 is {share:.0} % linear to {most} CPUs on own slices; of {} strategies {linear} reach 90 %.",
                    self.rows.len()
                )
            })
            .into_iter()
            .collect()
    }
}
