//! Makes a table that was not published: the rates of combinations of page table, areas and counters, from 1
//! to 512 CPUs. The table leaves out the area rule V0 and the counters R0, R1b and R1p.

use anyhow::Result;
use pageset_fault::{Account, Stabilise, Strategy};
use pageset_report::{Cell, Column, Row, Table};

use super::runs::{Key, Runs};

/// Returns the numbers of threads in the table.
fn counts(is_quick: bool) -> &'static [u32] {
    if is_quick { &[1, 8, 64] } else { &[1, 2, 8, 32, 128, 512] }
}

/// Number of pages of each thread. The pages fit into the memory of the thread's node, so all memory is
/// local, and the bandwidth of memory grows with the number of CPUs.
const THREAD_PAGES: u64 = 256;

/// Returns the combinations of page table, areas and counters in the table: all combinations with the
/// counters R1 to R4 and without the area rule V0. With `is_quick`, returns only five combinations. The five
/// combinations include Linux 6.12, and a combination without a cache line that all CPUs write.
fn strategies(is_quick: bool) -> Vec<Strategy> {
    const QUICK: [&str; 5] = ["P0,V1,R1", "P1,V1,R1", "P2,V1,R2", "P1,V2,R4", "P2,V7,R3"];
    if is_quick {
        return QUICK.iter().filter_map(|name| name.parse().ok()).collect();
    }
    // The table leaves out V0, which no kernel could use, because V0 does not allow areas to change. The test
    // of prediction T4 covers the counters R1b and R1p.
    let accounts = [Account::R1, Account::R2, Account::R3, Account::R4];
    Strategy::all()
        .filter(|strategy| strategy.stabilise() != Stabilise::V0 && accounts.contains(&strategy.account()))
        .collect()
}

fn key(strategy: Strategy, threads: u32) -> Key {
    Key::new(strategy, threads, THREAD_PAGES)
}

/// Number of pages of each thread in the runs with whole leaf tables: as many 16 KiB pages as one leaf table
/// maps. So the cost of building the leaf table is negligible in these runs.
const TABLE_PAGES: u64 = 2048;
/// The strategies without cache lines that several CPUs write, except for a counter that CPUs seldom change.
const APART: [&str; 3] = ["P1,V7,R3", "P2,V7,R3", "P3,V7,R3"];

/// Returns the runs with threads that each fill a whole leaf table: for each strategy of [`APART`], a run
/// with one thread and a run with the most threads.
fn whole_tables(is_quick: bool) -> impl Iterator<Item = (Strategy, [Key; 2])> {
    let most = counts(is_quick).last().copied().unwrap_or(1);
    APART.iter().filter_map(|name| name.parse().ok()).map(move |strategy| {
        let key = |threads| {
            let pages_max = TABLE_PAGES * u64::from(threads);
            Key { pages_max, ..Key::new(strategy, threads, TABLE_PAGES) }
        };
        (strategy, [key(1), key(most)])
    })
}

/// The simulations that the table needs.
pub(super) fn keys(is_quick: bool) -> Vec<Key> {
    let of = |strategy| counts(is_quick).iter().map(move |threads| key(strategy, *threads));
    let whole = whole_tables(is_quick).flat_map(|(_, keys)| keys);
    strategies(is_quick).into_iter().flat_map(of).chain(whole).collect()
}

/// The numbers of pages touched per second, for each strategy and number of threads.
pub(super) struct Matrix {
    pub(super) counts: &'static [u32],
    pub(super) rows: Vec<(Strategy, Vec<f64>)>,
    /// For each strategy of [`APART`], the rate with the most threads divided by the rate of linear scaling,
    /// if each thread fills a whole leaf table.
    whole_tables: Vec<(Strategy, f64)>,
}

impl Matrix {
    pub(super) fn new(runs: &Runs, is_quick: bool) -> Result<Self> {
        let counts = counts(is_quick);
        let row = |strategy| {
            let rates =
                counts.iter().map(|threads| Ok(runs.get(&key(strategy, *threads))?.touch_pages_per_s()));
            Ok((strategy, rates.collect::<Result<_>>()?))
        };
        let whole = |(strategy, [one, most]): (Strategy, [Key; 2])| {
            let ideal = runs.get(&one)?.touch_pages_per_s() * f64::from(most.threads);
            Ok((strategy, runs.get(&most)?.touch_pages_per_s() / ideal))
        };
        Ok(Self {
            counts,
            rows: strategies(is_quick).into_iter().map(row).collect::<Result<_>>()?,
            whole_tables: whole_tables(is_quick).map(whole).collect::<Result<_>>()?,
        })
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
            "The rates only count the time in which threads touch pages. Each thread touches a region of its \
             own, and all memory is local. Linear: the last rate as a share of the rate that as many CPUs \
             would reach if each were as fast as a single CPU. A thread touches 256 pages, an eighth of the \
             pages that its first leaf table covers. So with hundreds of CPUs the time to build a leaf table \
             matters. The sentences below have the shares with a whole leaf table for each thread.",
        );
        table
    }

    /// Returns the rate with the most threads, divided by the rate of linear scaling: the rate of one thread
    /// times the number of threads.
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
        let short = share("P2,V7,R3").map(|share| {
            format!(
                "With {THREAD_PAGES} pages for each thread, P2,V7,R3 reaches {share:.0} % of linear scaling to {most} CPUs. \
                 {linear} of {} strategies reach 90 %.",
                self.rows.len()
            )
        });
        let whole = self.whole_tables.iter().map(|(name, share)| format!("{name} {:.0} %", 100.0 * share));
        let whole = whole.collect::<Vec<_>>().join(", ");
        let whole = format!(
            "With {TABLE_PAGES} pages for each thread, which fill a leaf table, strategies reach these shares of \
             linear scaling to {most} CPUs: {whole}."
        );
        short.into_iter().chain([whole]).collect()
    }
}
