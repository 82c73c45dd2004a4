//! One figure of several tables: published values and ours.

use pageset_report::Origin;
use pageset_report::comparison::{Comparison, Pair};
use pageset_report::plot::{Axis, Figure, Mark, Panel, Point, Scale, Series};

/// What a figure shows of each table.
pub(crate) struct Panels<'a> {
    /// Title of the figure.
    pub(crate) title: &'a str,
    /// The axis of rows: their names, or numbers if the rows are named so.
    pub(crate) axis: Axis,
    /// How values are drawn.
    pub(crate) mark: Mark,
    /// Columns that are drawn, those that a table has.
    pub(crate) columns: &'a [&'a str],
}

impl Panels<'_> {
    /// One panel for each table.
    pub(crate) fn draw(&self, tables: &[Comparison]) -> Figure {
        let mut figure = Figure::new(self.title);
        for table in tables {
            let drawn = |key: &str| self.columns.contains(&key);
            let columns: Vec<_> =
                table.quantities().iter().enumerate().filter(|(_, quantity)| drawn(&quantity.key)).collect();
            let Some((_, first)) = columns.first() else { continue };
            let same = columns.iter().all(|(_, quantity)| quantity.unit == first.unit);
            let (label, unit) = match columns.as_slice() {
                [(_, only)] => (only.heading.as_str(), only.unit.as_str()),
                _ if same => ("share", first.unit.as_str()),
                _ => ("percent", ""),
            };
            let mut panel = Panel::new(table.title(), self.axis.clone(), Axis::from_zero(label, unit));
            for (column, quantity) in columns {
                for (origin, value) in [
                    (Origin::Published, (|pair: &Pair| pair.published) as fn(&Pair) -> Option<f64>),
                    (Origin::Simulated, |pair: &Pair| pair.ours),
                ] {
                    let points = self.points(table, column, value);
                    if !points.is_empty() {
                        panel.push(Series::new(&quantity.heading, origin, self.mark, points));
                    }
                }
            }
            figure.push(panel);
        }
        figure
    }

    fn points(&self, table: &Comparison, column: usize, value: fn(&Pair) -> Option<f64>) -> Vec<Point> {
        let rows = table.row_names().zip(table.pairs(column)).enumerate();
        let point = |(index, (name, pair)): (usize, (&str, &Pair))| {
            let x = match self.axis.scale() {
                Scale::Categories(_) => index as f64,
                _ => name.parse().unwrap_or(index as f64),
            };
            Some(Point { x, y: value(pair)?, range: None })
        };
        rows.filter_map(point).collect()
    }
}
