//! Makes a table of standard deviations: the published deviations beside the deviations of our seeds.

use pageset_report::comparison::Comparison;
use pageset_report::{Cell, Column, Row, Table};

/// Makes a table with a row for each row that has a published standard deviation. The table has the
/// deviations of the first column's values, in percent of the base row's value.
pub(crate) fn variability(tables: &[Comparison]) -> Table {
    let columns = vec![
        Column::label("table", "table"),
        Column::label("row", "row"),
        Column::ratio("published_deviation_percent", "published").with_unit("%"),
        Column::ratio("deviation_percent", "ours").with_unit("%"),
    ];
    let mut table = Table::new("Variability: standard deviations, in percent of the base row", columns);
    for comparison in tables {
        let bases = comparison.base_values(0);
        for ((name, pair), base) in comparison.row_names().zip(comparison.pairs(0)).zip(bases) {
            let Some(published) = pair.variation_percent else { continue };
            let ours = pair.spread.zip(base).map(|(spread, base)| 100.0 * spread / base);
            table.push(Row::new([
                comparison.id().into(),
                name.into(),
                Cell::real(published, 2),
                ours.map_or(Cell::Absent, |ours| Cell::real(ours, 2)),
            ]));
        }
    }
    table.note(
        "Published: between repeated runs on one machine. Ours: between seeds of the simulation, which change \
         only the programs' random numbers.",
    );
    table
}

#[cfg(test)]
mod tests {
    use pageset_report::Origin;
    use pageset_report::comparison::{Pair, Quantity};

    use super::*;

    #[test]
    fn deviations_are_in_percent_of_the_base_and_rows_without_one_are_left_out() {
        let mut comparison =
            Comparison::new("t", "t", "m", vec![Quantity::relative("score", "score", "", 1)]);
        let pair = |ours, spread, variation_percent| {
            let pair = Pair::new(Some(ours), Some(ours), Origin::Simulated);
            vec![Pair { spread, variation_percent, ..pair }]
        };
        let base = comparison.push_base("4.9", pair(50.0, Some(1.0), Some(3.0)));
        comparison.push("v5", base, pair(100.0, Some(4.0), Some(6.0)));
        comparison.push("one seed", base, pair(100.0, None, Some(7.0)));
        comparison.push("no deviation", base, pair(100.0, Some(4.0), None));
        let table = variability(&[comparison]);
        let cells: Vec<_> = table.rows().iter().map(|row| row.cells[2..].to_vec()).collect();
        assert_eq!(
            cells,
            [
                [Cell::real(3.0, 2), Cell::real(2.0, 2)],
                [Cell::real(6.0, 2), Cell::real(8.0, 2)],
                [Cell::real(7.0, 2), Cell::Absent],
            ]
        );
    }
}
