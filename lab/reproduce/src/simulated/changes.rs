//! Makes a table of changes. Each row has the published size and the simulated size of a change, and says
//! whether the published interval contains the simulated value.

use pageset_report::comparison::{Band, Comparison, Direction};
use pageset_report::{Cell, Column, Row, Table};

/// Makes a table with a row for each change of a relative quantity, in percent of the base row.
pub(crate) fn changes(tables: &[Comparison]) -> Table {
    let columns = vec![
        Column::label("change", "change of"),
        Column::label("row", "in"),
        Column::ratio("published_percent", "published").with_unit("%"),
        Column::ratio("variation_percent", "+/-").with_unit("%"),
        Column::ratio("ours_percent", "ours").with_unit("%"),
        Column::ratio("spread_percent", "+/-").with_unit("%"),
        Column::label("direction", "direction"),
        Column::label("is_covered", "covered"),
    ];
    let mut table = Table::new(
        "Changes: size, direction, and whether the published interval contains our value",
        columns,
    );
    for comparison in tables {
        for (index, quantity) in comparison.quantities().iter().enumerate() {
            let Band::Percent(band) = quantity.band else { continue };
            if !quantity.unit.starts_with("% of") {
                continue;
            }
            for (row, (name, pair)) in comparison.row_names().zip(comparison.pairs(index)).enumerate() {
                let Some(change) = comparison.change(row, index) else { continue };
                let Some((published, ours)) = pair.published.zip(pair.ours) else { continue };
                let cell = |value: Option<f64>| value.map_or(Cell::Absent, |value| Cell::real(value, 2));
                let is_covered = (published - ours).abs() <= band.hypot(pair.spread.unwrap_or(0.0));
                table.push(Row::new([
                    format!("{}, {}", comparison.id(), quantity.heading).into(),
                    name.into(),
                    cell(Some(published - 100.0)),
                    cell(Some(band)),
                    cell(Some(ours - 100.0)),
                    cell(pair.spread),
                    direction(change.published, change.ours).into(),
                    if is_covered { "yes" } else { "no" }.into(),
                ]));
            }
        }
    }
    table.note(
        "The first +/- is the largest published change that counts as no change: the printed \
         variation, or 2 %. The second +/- is the standard deviation of our change between seeds. \
         Covered: the square of the difference between both changes is at most the sum of the squares \
         of both figures.",
    );
    table
}

fn direction(published: Direction, ours: Direction) -> String {
    let word = |direction| match direction {
        Direction::Up => "up",
        Direction::Same => "no change",
        Direction::Down => "down",
    };
    if published == ours {
        return word(ours).to_owned();
    }
    format!("{}, ours {}", word(published), word(ours))
}

#[cfg(test)]
mod tests {
    use pageset_report::Origin;
    use pageset_report::comparison::{Pair, Quantity};

    use super::*;

    #[test]
    fn a_difference_within_both_variations_is_covered() {
        let quantity =
            Quantity { band: Band::Percent(3.0), ..Quantity::relative("sys", "sys", "% of base", 1) };
        let mut comparison = Comparison::new("t", "t", "m", vec![quantity]);
        let pair = |published, ours, spread| {
            vec![Pair { spread, ..Pair::new(Some(published), Some(ours), Origin::Simulated) }]
        };
        let base = comparison.push_base("base", pair(100.0, 100.0, None));
        comparison.push("far", base, pair(90.0, 95.0, None));
        comparison.push("near", base, pair(90.0, 95.0, Some(4.0)));
        let table = changes(&[comparison]);
        let cells = |row: usize| table.rows()[row].cells[6..].to_vec();
        assert_eq!(cells(0), [Cell::from("down"), Cell::from("no")]);
        assert_eq!(cells(1), [Cell::from("down"), Cell::from("yes")]);
    }
}
