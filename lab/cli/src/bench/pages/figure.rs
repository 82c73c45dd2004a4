//! Draws total times as bars: a panel for each operation, and a colour for each load of the other CPUs.

use pageset_measure::pageops::{Load, Measurement, Operation};
use pageset_report::Origin;
use pageset_report::plot::{Axis, Figure, Mark, Panel, Series};

use super::tables::{contenders, huge, total_us};

/// Draws bars of the total time: the time to clear or copy a page, and then to touch a part of the page.
pub(crate) fn figure(rows: &[Measurement]) -> Figure {
    let mut figure = Figure::new("Clearing and copying 2 MiB, then reading 16 KiB around the target");
    for operation in Operation::ALL {
        let loads: Vec<_> = Load::all().into_iter().map(|load| (load, huge(rows, operation, load))).collect();
        let Some((_, first)) = loads.first() else { continue };
        let names = contenders(first);
        let labels = names.iter().map(|(order, kernel)| format!("{kernel} {order}"));
        let x = Axis::categories("kernel and order", labels);
        let mut panel = Panel::new(operation.name(), x, Axis::from_zero("both together", "us"));
        for (load, rows) in &loads {
            let points = names.iter().enumerate().map(|(index, name)| (index as f64, total_us(rows, *name)));
            panel.push(Series::new(load.name(), Origin::Measured, Mark::Bars, points));
        }
        figure.push(panel);
    }
    figure
}
