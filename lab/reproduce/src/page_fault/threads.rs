//! Estimates from the printed rows how many threads ran when the rows were measured.
//!
//! The published text reports linear scaling from 128 to 512 threads, although about 85 CPUs were busy in
//! each of these rows. The test program has arrays for only 128 threads, and computes the number of faults
//! from the requested memory. So perhaps only 128 threads ran even if a row asks for n threads, and these
//! threads touched only 128 / n of the requested memory. Two figures can tell how many threads ran: the time
//! per page, and the time of serial work per page. If 128 threads ran, both times depend on the memory of one
//! thread and not on n.

use pageset_report::{Cell, Column, Row, Table};

use super::printed::{PrintedRow, THREADS_OF_LISTING};

/// Makes the table of rows with 128 threads or more and without deltas, sorted by the memory of one thread.
pub(super) fn table(rows: &[PrintedRow]) -> Table {
    let columns = vec![
        Column::label("table", "printed row"),
        Column::count("threads", "Thr"),
        Column::count("thread_mib", "share of a thread").with_unit("MiB"),
        Column::ratio("busy_cpus", "busy CPUs"),
        Column::measure("wall_us_per_page", "wall per page").with_unit("us"),
        Column::measure("wall_us_if_128_run", "if 128 run").with_unit("us"),
        Column::measure("residue_us_per_page", "residue per page").with_unit("us"),
        Column::measure("residue_us_if_128_run", "if 128 run ").with_unit("us"),
    ];
    let title = format!("Did {THREADS_OF_LISTING} threads run? (from the printed rows alone)");
    let mut table = Table::new(title, columns);
    let is_large = |row: &&PrintedRow| row.threads >= THREADS_OF_LISTING && !row.table.contains("delta");
    let mut rows: Vec<_> = rows.iter().filter(is_large).collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(thread_mib(row)), row.threads));
    for row in rows {
        let (printed, listing) = (Residue::new(row, row.threads), Residue::new(row, THREADS_OF_LISTING));
        table.push(Row::new([
            row.table.as_str().into(),
            u64::from(row.threads).into(),
            thread_mib(row).into(),
            Cell::real(row.busy_cpus(), 1),
            Cell::real(printed.wall_us, 2),
            Cell::real(listing.wall_us, 2),
            Cell::real(printed.residue_us, 2),
            Cell::real(listing.residue_us, 2),
        ]));
    }
    table.note(
        "Rows are sorted by the memory of one thread. If as many threads ran as printed, wall time per page should fall with \
         the number of threads. If 128 threads ran, wall time per page should depend on the memory of one thread. The residue \
         is the time of serial work that explains the wall time, if all other CPU time is spread evenly over the threads: \
         (W - C/N) / (1 - 1/N).",
    );
    table
}

fn thread_mib(row: &PrintedRow) -> u64 {
    u64::from(row.gib) * 1024 / u64::from(row.threads)
}

/// Two times per touched page, computed for an assumed number of threads that ran: the wall time, and the
/// time of serial work (`residue_us`).
struct Residue {
    wall_us: f64,
    residue_us: f64,
}

impl Residue {
    fn new(row: &PrintedRow, threads: u32) -> Self {
        let n = f64::from(threads);
        let pages = row.pages() * n / f64::from(row.threads);
        let residue_s = (row.wall_s - row.cpu_s / n) / (1.0 - 1.0 / n);
        Self { wall_us: row.wall_s * 1e6 / pages, residue_us: residue_s * 1e6 / pages }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_share_agree_if_128_threads_ran() {
        let rows = super::super::printed::rows().unwrap();
        let row = |table: &str, threads| {
            rows.iter().find(|row| row.table == table && row.threads == threads).expect("a printed row")
        };
        let pair = [row("page_locking_256gb", 256), row("page_locking_512gb", 512)];
        assert_eq!(pair.map(thread_mib), [1024, 1024]);
        let [one, other] = pair.map(|row| Residue::new(row, THREADS_OF_LISTING).wall_us);
        assert!((one / other - 1.0).abs() < 0.01, "{one} {other}");
        let [one, other] = pair.map(|row| Residue::new(row, row.threads).wall_us);
        assert!(one / other > 1.9, "{one} {other}");
    }
}
