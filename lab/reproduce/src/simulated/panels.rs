//! Draws one figure of several tables, with published and simulated values.

use pageset_report::Origin;
use pageset_report::comparison::{Comparison, Pair, Quantity};
use pageset_report::plot::{Axis, Figure, Mark, Panel, Point, Scale, Series};

/// The contents of a figure with one or more panels for each table.
pub(crate) struct Panels<'a> {
    /// Title of the figure.
    pub(crate) title: &'a str,
    /// The axis of rows. On an axis of names, rows are in the order of the table. On an axis of numbers, the
    /// names of rows are numbers, which give the positions of the rows.
    pub(crate) axis: Axis,
    /// How values are drawn.
    pub(crate) mark: Mark,
    /// The keys of the columns to draw. A table may lack some of the columns.
    pub(crate) columns: &'a [&'a str],
}

impl Panels<'_> {
    /// Draws one panel for each table. If a table's columns have different units, each column gets its own
    /// panel.
    pub(crate) fn draw(&self, tables: &[Comparison]) -> Figure {
        let mut figure = Figure::new(self.title);
        for table in tables {
            let drawn = |key: &str| self.columns.contains(&key);
            let columns: Vec<_> =
                table.quantities().iter().enumerate().filter(|(_, quantity)| drawn(&quantity.key)).collect();
            let Some((_, first)) = columns.first() else { continue };
            if columns.iter().all(|(_, quantity)| quantity.unit == first.unit) {
                let label = if let [(_, only)] = columns.as_slice() { words(only) } else { "share" };
                figure.push(self.panel(
                    table,
                    table.title().to_owned(),
                    Axis::from_zero(label, &first.unit),
                    &columns,
                ));
            } else {
                for column in &columns {
                    let (_, quantity) = column;
                    let (title, axis) = (
                        format!("{}: {}", table.title(), words(quantity)),
                        Axis::from_zero("", &quantity.unit),
                    );
                    figure.push(self.panel(table, title, axis, std::slice::from_ref(column)));
                }
            }
        }
        figure
    }

    fn panel(&self, table: &Comparison, title: String, axis: Axis, columns: &[(usize, &Quantity)]) -> Panel {
        let mut panel = Panel::new(title, self.axis.clone(), axis);
        for (column, quantity) in columns {
            for (origin, value) in [
                (Origin::Published, (|pair: &Pair| pair.published) as fn(&Pair) -> Option<f64>),
                (Origin::Simulated, |pair: &Pair| pair.ours),
            ] {
                let points = self.points(table, *column, value);
                if !points.is_empty() {
                    panel.push(Series::new(words(quantity), origin, self.mark, points));
                }
            }
        }
        panel
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

/// Returns the name of a column in figures. If the heading of a column is a name from the kernel, returns
/// plain words in place of the heading.
fn words(quantity: &Quantity) -> &str {
    match quantity.key.as_str() {
        "spin_lock_percent" => "CPU time in spin locks",
        "free_high_rel" => "frees that drained (free_high)",
        "alloc_zone_rel" => "pages from the zone (alloc_zone)",
        _ => &quantity.heading,
    }
}
