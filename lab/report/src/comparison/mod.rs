//! A published table with our values beside it, and the agreement between both.
//!
//! - [`Comparison`]: rows with a published value and our value for each quantity.
//! - `statistics`: rank correlation, direction of change, relative error.
//! - `agreement`: the statistics for one quantity and for a table.
//! - `skill`: directions compared with the forecast that nothing changes.
//! - `misses`: numbers of directions that do not agree, by the kind of difference.
//! - `export`: the comparison as a [`Table`](crate::Table) for people.

mod agreement;
mod export;
mod misses;
mod skill;
mod statistics;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

pub use agreement::{Agreement, Change};
pub use misses::Misses;
pub use skill::Skill;
pub use statistics::{Band, Direction, relative_error, spearman};

use crate::Origin;

/// One column of a published table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Quantity {
    /// Name in JSON and CSV: lower case, words joined by `_`, the unit last.
    pub key: String,
    /// Name in tables.
    pub heading: String,
    /// Unit. The text is empty if the heading contains the unit.
    pub unit: String,
    /// Number of decimal places of the published values. Our values are printed with the same number of
    /// decimal places as the published values.
    pub decimals: u8,
    /// The largest difference from the base row that still counts as unchanged.
    pub band: Band,
}

impl Quantity {
    /// Makes a quantity whose changes are given in percent: a score, a time, a count. The quantity's band is
    /// 2 %.
    #[must_use]
    pub fn relative(key: &str, heading: &str, unit: &str, decimals: u8) -> Self {
        Self::new(key, heading, unit, decimals, Band::Percent(2.0))
    }

    /// Makes a share in percent, whose changes are given in percentage points. The quantity's band is 1
    /// point.
    #[must_use]
    pub fn share(key: &str, heading: &str, decimals: u8) -> Self {
        Self::new(key, heading, "%", decimals, Band::Points(1.0))
    }

    /// The largest rounding error of a published value: half a unit of its last decimal place.
    #[must_use]
    pub fn rounding(&self) -> f64 {
        0.5 * 10.0_f64.powi(-i32::from(self.decimals))
    }

    fn new(key: &str, heading: &str, unit: &str, decimals: u8, band: Band) -> Self {
        let (key, heading, unit) = (key.to_owned(), heading.to_owned(), unit.to_owned());
        Self { key, heading, unit, decimals, band }
    }
}

/// A published value and our value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The published value. `None` if the source has no value.
    pub published: Option<f64>,
    /// Our value. `None` if there is no value of ours.
    pub ours: Option<f64>,
    /// The origin of our value.
    pub origin: Origin,
    /// Standard deviation of our value over the seeds of a simulation. Our change from the base row counts as
    /// no change unless it exceeds the deviations of both rows, added in quadrature. `None` with a single
    /// seed.
    pub spread: Option<f64>,
    /// The standard deviation that the source prints for its value, in percent. A change counts as no change
    /// unless it exceeds the printed deviations of both rows, added in quadrature. `None` if the source
    /// prints no deviation.
    pub variation_percent: Option<f64>,
}

impl Pair {
    /// Makes a pair without deviations.
    #[must_use]
    pub fn new(published: Option<f64>, ours: Option<f64>, origin: Origin) -> Self {
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        Self {
            published: finite(published),
            ours: finite(ours),
            origin,
            spread: None,
            variation_percent: None,
        }
    }
}

/// One row of a comparison: for example a policy, a batch size or a machine.
#[derive(Clone, Debug, PartialEq)]
struct ComparedRow {
    name: String,
    /// The row that this row is compared with. `None` for a base row.
    base: Option<usize>,
    pairs: Vec<Pair>,
}

/// A published table with our values beside it.
///
/// # Invariants
///
/// Every row has as many pairs as there are quantities, and its base is a base row above it.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    id: String,
    title: String,
    machine: String,
    group: Option<String>,
    withdrawn: Option<String>,
    fitted_on: Vec<String>,
    quantities: Vec<Quantity>,
    rows: Vec<ComparedRow>,
}

impl Comparison {
    /// Makes a comparison without rows. `id` is the name of the comparison in JSON. `machine` describes the
    /// origin of our values.
    #[must_use]
    pub fn new(
        id: impl Into<String>,
        title: impl Into<String>,
        machine: impl Into<String>,
        quantities: Vec<Quantity>,
    ) -> Self {
        let (id, title, machine) = (id.into(), title.into(), machine.into());
        Self {
            id,
            title,
            machine,
            group: None,
            withdrawn: None,
            fitted_on: Vec::new(),
            quantities,
            rows: Vec::new(),
        }
    }

    /// Records a parameter that was chosen so that a value agrees with the published value. An example is
    /// "think time 1200 ns, on the base row's zone lock".
    pub fn fitted_on(&mut self, what: impl Into<String>) {
        self.fitted_on.push(what.into());
    }

    /// Sets the group that the table belongs to, among the tables of a study. Skill is judged for each group.
    pub fn set_group(&mut self, group: impl Into<String>) {
        self.group = Some(group.into());
    }

    /// Records that the author has withdrawn the table, and why. A withdrawn table is shown, but counted
    /// separately.
    pub fn withdraw(&mut self, reason: impl Into<String>) {
        self.withdrawn = Some(reason.into());
    }

    /// Adds a row that other rows are compared with. Returns the number of the row.
    ///
    /// # Panics
    ///
    /// Panics unless there is one pair for each quantity.
    #[track_caller]
    pub fn push_base(&mut self, name: impl Into<String>, pairs: Vec<Pair>) -> usize {
        self.add(name.into(), None, pairs)
    }

    /// Adds a row that is compared with the base row of this number.
    ///
    /// # Panics
    ///
    /// Panics if there is no such base row, or not one pair for each quantity.
    #[track_caller]
    pub fn push(&mut self, name: impl Into<String>, base: usize, pairs: Vec<Pair>) {
        assert!(self.rows.get(base).is_some_and(|row| row.base.is_none()), "row {base} is a base row");
        self.add(name.into(), Some(base), pairs);
    }

    #[track_caller]
    fn add(&mut self, name: String, base: Option<usize>, pairs: Vec<Pair>) -> usize {
        assert_eq!(pairs.len(), self.quantities.len(), "a row has one pair for each quantity");
        // INVARIANT: this function has checked that there is a pair for each quantity. `push_base` gives no
        // base, and `push` has checked that `base` is a base row.
        self.rows.push(ComparedRow { name, base, pairs });
        self.rows.len() - 1
    }

    /// Multiplies our values of a quantity by a factor, so that the value in each base row agrees. Each base
    /// row has its own factor. Scores in units that a simulation does not know need this function. Our value
    /// in a base row is then marked as fitted.
    pub fn scale_to_base(&mut self, key: &str) {
        let Some(column) = self.quantities.iter().position(|quantity| quantity.key == key) else { return };
        for index in 0..self.rows.len() {
            if self.rows[index].base.is_some() {
                continue;
            }
            let pair = &mut self.rows[index].pairs[column];
            let Some(factor) = pair.published.zip(pair.ours).map(|(published, ours)| published / ours) else {
                continue;
            };
            if !factor.is_finite() {
                continue;
            }
            pair.origin = Origin::Fitted;
            let family = self.rows.iter_mut().enumerate();
            for (_, row) in family.filter(|(at, row)| *at == index || row.base == Some(index)) {
                let pair = &mut row.pairs[column];
                pair.ours = pair.ours.map(|ours| ours * factor);
                pair.spread = pair.spread.map(|spread| spread * factor);
            }
        }
    }

    /// Name of the comparison in JSON.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The title.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The group of the table among the tables of the study. `None` if all tables of the study are one group.
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// The reason why the author has withdrawn the table. `None` if the author has not withdrawn the table.
    #[must_use]
    pub fn withdrawn(&self) -> Option<&str> {
        self.withdrawn.as_deref()
    }

    /// The columns.
    #[must_use]
    pub fn quantities(&self) -> &[Quantity] {
        &self.quantities
    }

    /// Names of the rows.
    pub fn row_names(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|row| row.name.as_str())
    }

    /// The pairs of one quantity, one for each row.
    pub fn pairs(&self, quantity: usize) -> impl Iterator<Item = &Pair> {
        self.rows.iter().filter_map(move |row| row.pairs.get(quantity))
    }

    /// For each row, returns our value of one quantity in the row's base row. A base row is its own base row.
    pub fn base_values(&self, quantity: usize) -> impl Iterator<Item = Option<f64>> {
        self.rows.iter().map(move |row| {
            let base = row.base.map_or(row, |base| &self.rows[base]);
            base.pairs.get(quantity).and_then(|pair| pair.ours)
        })
    }
}

/// Writes `{"id", "title", "group", "machine", "fitted_on", "rows": [{"row", "column", "published", "ours",
/// "origin"}], "columns": […], "spearman", "direction_agreement", "median_rel_error", "skill"}`. `rows` has
/// an entry for each pair, which may also have `spread`, `change` and `step`. `columns` has an entry for each
/// quantity.
impl Serialize for Comparison {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let agreement = self.agreement();
        let mut map = serializer.serialize_struct("Comparison", 11)?;
        map.serialize_field("id", &self.id)?;
        map.serialize_field("title", &self.title)?;
        map.serialize_field("group", &self.group)?;
        map.serialize_field("machine", &self.machine)?;
        map.serialize_field("fitted_on", &self.fitted_on)?;
        map.serialize_field("rows", &self.flat())?;
        map.serialize_field("columns", &self.columns())?;
        map.serialize_field("spearman", &agreement.spearman)?;
        map.serialize_field("direction_agreement", &agreement.direction_agreement())?;
        map.serialize_field("median_rel_error", &agreement.median_rel_error)?;
        map.serialize_field("skill", &self.skill())?;
        map.end()
    }
}

/// One pair in JSON.
#[derive(Serialize)]
struct FlatPair<'a> {
    row: &'a str,
    column: &'a str,
    published: Option<f64>,
    ours: Option<f64>,
    origin: Origin,
    #[serde(skip_serializing_if = "Option::is_none")]
    spread: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<Change>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<Change>,
}

/// One quantity in JSON.
#[derive(Serialize)]
struct FlatColumn<'a> {
    #[serde(flatten)]
    quantity: &'a Quantity,
    #[serde(flatten)]
    agreement: Agreement,
    direction_agreement: Option<f64>,
}

impl Comparison {
    fn flat(&self) -> Vec<FlatPair<'_>> {
        let mut flat = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            for (column, (quantity, pair)) in self.quantities.iter().zip(&row.pairs).enumerate() {
                let &Pair { published, ours, origin, spread, .. } = pair;
                let change = self.change(index, column);
                flat.push(FlatPair {
                    row: &row.name,
                    column: &quantity.key,
                    published,
                    ours,
                    origin,
                    spread,
                    change,
                    step: self.step(index, column),
                });
            }
        }
        flat
    }

    fn columns(&self) -> Vec<FlatColumn<'_>> {
        let columns = self.quantities.iter().enumerate().map(|(index, quantity)| {
            let agreement = self.agreement_of(index);
            FlatColumn { quantity, agreement, direction_agreement: agreement.direction_agreement() }
        });
        columns.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn example() -> Comparison {
        let quantities = vec![
            Quantity::relative("score", "score", "", 0),
            Quantity::share("zone_lock_percent", "zone lock", 0),
        ];
        let mut comparison = Comparison::new("t", "Title", "a machine", quantities);
        let pair = |published, ours| Pair::new(Some(published), Some(ours), Origin::Simulated);
        let base = comparison.push_base("31", vec![pair(1000.0, 10.0), pair(64.0, 60.0)]);
        comparison.push("63", base, vec![pair(1170.0, 11.0), pair(24.0, 30.0)]);
        comparison.push("127", base, vec![pair(1180.0, 10.1), pair(3.0, 5.0)]);
        comparison
    }

    #[test]
    fn scores_are_scaled_by_the_base_row_and_it_is_marked() {
        let mut comparison = example();
        comparison.scale_to_base("score");
        let scores: Vec<_> = comparison.pairs(0).map(|pair| (pair.ours, pair.origin)).collect();
        assert_eq!(
            scores,
            [
                (Some(1000.0), Origin::Fitted),
                (Some(1100.0), Origin::Simulated),
                (Some(1010.0), Origin::Simulated),
            ]
        );
    }

    #[test]
    fn json_has_the_agreed_keys() {
        let json = serde_json::to_value(example()).unwrap();
        for key in ["id", "machine", "fitted_on", "spearman", "direction_agreement", "median_rel_error"] {
            assert!(json.get(key).is_some(), "{key}");
        }
        assert_eq!(json["rows"][3]["row"], "63");
        assert_eq!(json["rows"][3]["column"], "zone_lock_percent");
        assert_eq!((&json["rows"][3]["published"], &json["rows"][3]["ours"]), (&24.0.into(), &30.0.into()));
        assert_eq!(json["rows"][3]["change"]["ours"], "down");
        assert_eq!(json["columns"][1]["spearman"], 1.0);
    }

    #[test]
    #[should_panic(expected = "row 1 is a base row")]
    fn only_base_rows_are_bases() {
        let mut comparison = example();
        comparison.push("255", 1, vec![Pair::new(None, None, Origin::Simulated); 2]);
    }
}
