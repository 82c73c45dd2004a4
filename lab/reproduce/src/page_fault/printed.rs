//! Reads the rows of the published text.

use anyhow::{Context as _, Result};
use pageset_fault::Strategy;

use crate::published::published;

/// The simulated machine in place of the published machine.
pub(super) const MACHINE: &str = "altix-512";
/// Number of threads that the test program of 2005 has room for, because the program keeps its threads in
/// arrays. Source: spec fault.md §2.1, a listing of the program from 2006.
pub(super) const THREADS_OF_LISTING: u32 = 128;

/// One row of the published text.
#[derive(Clone, Debug)]
pub(super) struct PrintedRow {
    /// Name of the row's table, for example "page_locking_64gb".
    pub(super) table: String,
    pub(super) strategy: Strategy,
    pub(super) gib: u32,
    pub(super) repetitions: u32,
    pub(super) threads: u32,
    pub(super) cpu_s: f64,
    pub(super) wall_s: f64,
    pub(super) faults_per_cpu_s: f64,
    pub(super) faults_per_wall_s: f64,
}

impl PrintedRow {
    pub(super) fn busy_cpus(&self) -> f64 {
        self.cpu_s / self.wall_s
    }

    /// Returns the number of pages of the requested memory, times the number of repetitions.
    pub(super) fn pages(&self) -> f64 {
        f64::from(self.gib) * f64::from(PAGES_PER_GIB) * f64::from(self.repetitions)
    }
}

/// Number of 16 KiB pages in a GiB.
pub(super) const PAGES_PER_GIB: u32 = 1 << 16;

/// The strategy that models the kernel of a table, by the beginning of the table's name.
const STRATEGIES: [(&str, &str); 4] = [
    ("page_locking", "P1,V1,R1"),
    ("atomic_ops_delta", "P2,V1,R2"),
    ("atomic_ops", "P2,V1,R1"),
    ("delta", "P2,V1,R2"),
];

/// Returns all rows of the published text, one table after another.
pub(super) fn rows() -> Result<Vec<PrintedRow>> {
    let published = published!("page-fault/altix.csv")?;
    published
        .rows()
        .map(|row| {
            let number = |column: &str| row.number(column)?.with_context(|| format!("`{column}` is empty"));
            let table = row.text("table")?.to_owned();
            let strategy = STRATEGIES.iter().find(|(prefix, _)| table.starts_with(prefix));
            let strategy = strategy.with_context(|| format!("no strategy is known for table {table}"))?.1;
            Ok(PrintedRow {
                table,
                strategy: strategy.parse()?,
                gib: number("Gb")? as u32,
                repetitions: number("Rep")? as u32,
                threads: number("Thr")? as u32,
                cpu_s: number("User_s")? + number("System_s")?,
                wall_s: number("Wall_s")?,
                faults_per_cpu_s: number("flt_per_cpu_s")?,
                faults_per_wall_s: number("fault_per_wsec")?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_from_the_other_columns() {
        let rows = rows().unwrap();
        assert_eq!(rows.len(), 31);
        for row in &rows {
            // The tolerance covers rounding, because the published text prints seconds with two digits after
            // the point.
            assert!((row.pages() / row.wall_s / row.faults_per_wall_s - 1.0).abs() < 1e-3, "{row:?}");
            assert!((row.pages() / row.cpu_s / row.faults_per_cpu_s - 1.0).abs() < 1e-3, "{row:?}");
        }
    }
}
