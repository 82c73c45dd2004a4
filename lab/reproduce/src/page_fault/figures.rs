//! Draws the figures of this study: fault/wsec by number of threads, the main strategies of the matrix, and
//! prefaulting.

use anyhow::Result;
use pageset_report::Origin;
use pageset_report::plot::{Axis, Figure, Mark, Panel, Series};

use super::ahead::Promises;
use super::matrix::Matrix;
use super::printed::PrintedRow;
use super::runs::Runs;
use super::tables::{AsPrinted, Reading, key};

/// File names of the figures, without extension.
pub(super) const NAMES: [&str; 3] = ["page-fault-printed", "page-fault-matrix", "page-fault-prefault"];

pub(super) fn all(
    rows: &[PrintedRow],
    runs: &Runs,
    matrix: &Matrix,
    promises: &Promises,
) -> Result<Vec<(String, Figure)>> {
    let figures = [printed(rows, runs)?, strategies(matrix), promises.figure()];
    Ok(NAMES.map(str::to_owned).into_iter().zip(figures).collect())
}

/// Makes a figure with a panel for each printed table of at least four rows.
fn printed(rows: &[PrintedRow], runs: &Runs) -> Result<Figure> {
    let mut figure = Figure::new("Page faults per second of wall time, Altix with 512 CPUs");
    for rows in rows.chunk_by(|row, next| row.table == next.table).filter(|rows| rows.len() >= 4) {
        let (x, y) = (Axis::log("threads", ""), Axis::log("faults", "1/s"));
        let mut panel = Panel::new(rows[0].table.clone(), x, y);
        let points = |value: &dyn Fn(&PrintedRow) -> Result<f64>| {
            rows.iter().map(|row| Ok((f64::from(row.threads), value(row)?))).collect::<Result<Vec<_>>>()
        };
        let ours = |reading| {
            move |row: &PrintedRow| Ok(AsPrinted::new(row, runs.get(&key(row, reading))?).faults_per_wall_s)
        };
        let mut add = |name: &str, origin, points| panel.push(Series::new(name, origin, Mark::Line, points));
        add("printed", Origin::Published, points(&|row| Ok(row.faults_per_wall_s))?);
        add("as printed", Origin::Simulated, points(&ours(Reading::Printed))?);
        add("at most 128 threads", Origin::Simulated, points(&ours(Reading::Listing))?);
        figure.push(panel);
    }
    figure.note("Fitted on the row of 1 thread only.");
    Ok(figure)
}

/// The strategies in the figure. A fault takes the lock of all page tables with `P0`, the lock of one leaf
/// table with `P1`, and no lock with `P2`. `P1,V2,R4` is Linux 6.12, and `P2,V7,R3` has no cache line that
/// all threads write.
const DRAWN: [&str; 5] = ["P0,V1,R1", "P1,V1,R1", "P2,V1,R2", "P1,V2,R4", "P2,V7,R3"];

fn strategies(matrix: &Matrix) -> Figure {
    let mut figure = Figure::new("Pages touched per second, own slices");
    let mut panel = Panel::new("", Axis::log("CPUs", ""), Axis::log("pages", "1/s"));
    for (strategy, rates) in
        matrix.rows.iter().filter(|(strategy, _)| DRAWN.contains(&strategy.to_string().as_str()))
    {
        let points = matrix.counts.iter().zip(rates).map(|(threads, rate)| (f64::from(*threads), *rate));
        panel.push(Series::new(strategy.to_string(), Origin::Simulated, Mark::Line, points));
    }
    figure.push(panel);
    figure
}
