//! Turns a comparison into a table for people.

use super::{Agreement, Comparison, Skill};
use crate::{Cell, Column, Origin, Row, Table};

impl Comparison {
    /// Shows published values beside ours. The notes have the agreement of each quantity.
    #[must_use]
    pub fn to_table(&self) -> Table {
        let mut columns = vec![Column::label("row", "")];
        for (index, quantity) in self.quantities.iter().enumerate() {
            let published = format!("{}_published", quantity.key);
            let ours = format!("{}_ours", quantity.key);
            columns.push(Column::ratio(&published, &quantity.heading).with_unit("published"));
            columns.push(Column::ratio(&ours, &quantity.heading).with_unit("ours"));
            if self.has_spread(index) {
                columns.push(Column::ratio(&format!("{}_spread", quantity.key), "+/-"));
            }
        }
        columns.push(Column::label("differs", "other direction"));
        let mut table = Table::new(self.title.clone(), columns);
        for index in 0..self.rows.len() {
            table.push(self.row(index));
        }
        let units = self.quantities.iter().filter(|quantity| !quantity.unit.is_empty());
        let units: Vec<_> =
            units.map(|quantity| format!("{} in {}", quantity.heading, quantity.unit)).collect();
        if !units.is_empty() {
            table.note(format!("{}.", units.join(", ")));
        }
        table.note(format!("Ours: {}, {}.", self.origins().join(" and "), self.machine));
        if (0..self.quantities.len()).any(|column| self.has_spread(column)) {
            table.note("+/-: standard deviation of ours between seeds. A change within it is none.");
        }
        if let Some(how) = &self.withdrawn {
            table.note(format!("Withdrawn {how}. Counted apart."));
        }
        self.fitted_on.iter().for_each(|what| table.note(format!("Fitted: {what}.")));
        for (column, quantity) in self.quantities.iter().enumerate() {
            let words = words(&self.agreement_of(column), &self.skill_of(column));
            table.note(format!("{}: {words}", quantity.heading));
        }
        table
    }

    /// Words for the origins of our values. Fitted values are left out, because other sentences name them.
    fn origins(&self) -> Vec<&'static str> {
        let pairs = self.rows.iter().flat_map(|row| &row.pairs);
        let known = pairs.filter(|pair| pair.ours.is_some() && pair.origin != Origin::Fitted);
        let mut origins: Vec<_> = known.map(|pair| pair.origin.name()).collect();
        origins.sort_unstable();
        origins.dedup();
        if origins.is_empty() { vec!["nothing"] } else { origins }
    }

    /// Whether a quantity was simulated with several seeds.
    fn has_spread(&self, column: usize) -> bool {
        self.pairs(column).any(|pair| pair.spread.is_some())
    }

    fn row(&self, index: usize) -> Row {
        let row = &self.rows[index];
        let mut cells = vec![Cell::from(row.name.as_str())];
        let mut differing = Vec::new();
        for (column, (quantity, pair)) in self.quantities.iter().zip(&row.pairs).enumerate() {
            let cell =
                |value: Option<f64>| value.map_or(Cell::Absent, |value| Cell::real(value, quantity.decimals));
            cells.extend([cell(pair.published), cell(pair.ours)]);
            if self.has_spread(column) {
                cells.push(cell(pair.spread));
            }
            if self.change(index, column).is_some_and(|change| !change.agrees()) {
                differing.push(quantity.heading.as_str());
            }
        }
        cells.push(differing.join(", ").into());
        Row::new(cells)
    }
}

/// A ceiling of the rank correlation is printed only if the ceiling is below this value. A ceiling above
/// 0.995 would be printed as 1.00.
const WORTH_TELLING: f64 = 0.995;

/// Writes the agreement in words: `Spearman 0.96, direction 5 of 6 (null model 2; 3 of 4 changes, 0 only
/// here; 4 of 5 steps), median error 12 %.`
fn words(agreement: &Agreement, skill: &Skill) -> String {
    let mut parts = Vec::new();
    match agreement.spearman {
        Some(spearman) => {
            let ceiling =
                agreement.spearman_ceiling.filter(|ceiling| *ceiling < WORTH_TELLING && spearman <= *ceiling);
            let at_most = ceiling.map_or(String::new(), |ceiling| format!(" of at most {ceiling:.2}"));
            parts.push(format!("Spearman {spearman:.2}{at_most}"));
        }
        None => parts.push("no order to rank".to_owned()),
    }
    if agreement.directions > 0 {
        parts.push(directions(skill));
    }
    if let Some(error) = agreement.median_rel_error {
        parts.push(format!("median error {:.0} %", error * 100.0));
    }
    if agreement.missing > 0 {
        parts.push(format!("{} without ours", agreement.missing));
    }
    format!("{}.", parts.join(", "))
}

/// Writes the number of agreeing directions beside the number that the null model reaches.
fn directions(skill: &Skill) -> String {
    let Skill { directions, directions_agreed, null_model, changes_published, changes_met, .. } = skill;
    let Skill { changes_seen_only_here, steps_published, steps_met, .. } = skill;
    format!(
        "direction {directions_agreed} of {directions} (null model {null_model}; {changes_met} of {changes_published} changes, \
         {changes_seen_only_here} only here; {steps_met} of {steps_published} steps)"
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use crate::Format;

    #[test]
    fn the_text_has_both_values_and_the_agreement() {
        let mut comparison = example();
        comparison.fitted_on("score, scaled so that the base row agrees");
        comparison.withdraw("by its author");
        let text = Format::Table.exporter().to_string(&comparison.to_table());
        assert_eq!(text.lines().next(), Some("Title"));
        let row = text.lines().find(|line| line.starts_with("127")).unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["127", "1180", "10", "3", "5", "score"]);
        for line in [
            "zone lock in %.",
            "Ours: simulated, a machine.",
            "Withdrawn by its author. Counted apart.",
            "Fitted: score, scaled so that the base row agrees.",
            "score: Spearman 0.50, direction 1 of 2 (null model 0; 1 of 2 changes, 0 only here; 1 of 1 steps), median error \
             99 %.",
            "zone lock: Spearman 1.00, direction 2 of 2 (null model 0; 2 of 2 changes, 0 only here; 2 of 2 steps), median \
             error 25 %.",
        ] {
            assert!(text.replace('\n', " ").contains(line), "{line} in\n{text}");
        }
    }
}
