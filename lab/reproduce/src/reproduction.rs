//! The result of a study, as JSON and as one flat table.

use pageset_report::comparison::{Agreement, Comparison, Misses, Skill};
use pageset_report::{Cell, Column, Kind, Provenance, Row, Table};
use serde::Serialize;

use super::study::Findings;

/// Smallest rank correlation between published and simulated values that counts as agreement. If a quantity
/// has a smaller correlation, the result of the study lists this quantity among the differences.
const SPEARMAN_MIN: f64 = 0.9;

/// The whole result of a study.
#[derive(Debug, Serialize)]
pub struct Reproduction<'a> {
    /// Name of the study.
    pub study: &'a str,
    /// Counts of directions that agree with the published directions, for our values and for the null model.
    /// Withdrawn tables are left out. A direction says whether a value is higher than, lower than or equal to
    /// the value of its base row. The null model is the forecast that nothing ever changes.
    #[serde(flatten)]
    pub skill: Skill,
    /// The fraction of our directions that agree with the published directions.
    pub direction_agreement: Option<f64>,
    /// Numbers of directions that differ between our values and the published values, by kind of difference.
    pub misses: Misses,
    /// The counts of each group of tables that are judged together. Tables without a group form one group
    /// with the name of the study.
    pub groups: Vec<Group>,
    /// The published tables with our values, except the withdrawn tables.
    pub tables: Vec<&'a Comparison>,
    /// Tables that their author has withdrawn. The counts of the whole study leave withdrawn tables out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<Withdrawn<'a>>,
    /// Tables without published values.
    pub more: &'a [Table],
    /// The state of memory over time, if the study simulates days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline: Option<&'a Table>,
    /// Notes that a reader needs to understand the tables.
    pub notes: &'a [String],
    /// Sentences that say where our values differ from the published values.
    pub differences: Vec<String>,
    /// Sentences that give the reasons for the differences, as far as the reasons are known.
    pub explanations: &'a [String],
    /// The origin of our values: version, machine, options.
    pub provenance: Provenance,
}

/// Tables that are judged together: the values of all tables of the group together have skill, or have no
/// skill.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// Name of the group.
    pub group: String,
    /// The counts of directions of the group's tables, and the null model's counts.
    #[serde(flatten)]
    pub skill: Skill,
    /// The p-value of the sign test: the chance that random directions beat the null model at least as often
    /// as our values do.
    pub p_value: f64,
    /// Whether our values have skill: our values meet at least a third of the published changes, and beat the
    /// null model significantly. `has_skill` is `None` if the published values have no change.
    pub has_skill: Option<bool>,
}

impl Group {
    fn new(group: String, skill: Skill) -> Self {
        Self { group, skill, p_value: skill.p_value(), has_skill: skill.is_shown() }
    }
}

/// Tables that their author has withdrawn.
#[derive(Debug, Serialize)]
pub struct Withdrawn<'a> {
    /// The counts of directions of the withdrawn tables, and the null model's counts.
    #[serde(flatten)]
    pub skill: Skill,
    /// The withdrawn tables, with our values.
    pub tables: Vec<&'a Comparison>,
}

impl<'a> Reproduction<'a> {
    /// Makes the result of a study from its findings: counts directions, and describes differences.
    pub fn new(study: &'a str, findings: &'a Findings, provenance: Provenance) -> Self {
        let is_withdrawn = |table: &&Comparison| table.withdrawn().is_some();
        let (withdrawn, tables): (Vec<_>, Vec<_>) = findings.tables.iter().partition(is_withdrawn);
        let skill: Skill = skill_of(&tables);
        let total = Agreement {
            directions: skill.directions,
            directions_agreed: skill.directions_agreed,
            ..Agreement::default()
        };
        Self {
            study,
            skill,
            direction_agreement: total.direction_agreement(),
            misses: tables.iter().map(|table| table.misses()).sum(),
            groups: groups(study, &tables),
            withdrawn: (!withdrawn.is_empty())
                .then(|| Withdrawn { skill: skill_of(&withdrawn), tables: withdrawn }),
            tables,
            more: &findings.more,
            timeline: findings.timeline.as_ref(),
            notes: &findings.notes,
            differences: findings.tables.iter().flat_map(differences).collect(),
            explanations: &findings.explanations,
            provenance,
        }
    }

    /// Returns all published tables with our values. The withdrawn tables come last.
    pub fn all_tables(&self) -> impl Iterator<Item = &'a Comparison> {
        let withdrawn = self.withdrawn.iter().flat_map(|withdrawn| &withdrawn.tables);
        self.tables.iter().chain(withdrawn).copied()
    }

    /// Makes a table of directions, with a row for each group, for all groups together, and for withdrawn
    /// tables. Returns `None` if the study has no published values.
    pub fn skill_table(&self) -> Option<Table> {
        let columns = vec![
            Column::label("group", "directions"),
            Column::count("directions", "all"),
            Column::count("directions_agreed", "right"),
            Column::count("null_model", "null model"),
            Column::count("changes_published", "changes"),
            Column::count("changes_met", "met"),
            Column::count("changes_seen_only_here", "only here"),
            Column::count("steps_published", "steps"),
            Column::count("steps_met", "met"),
            Column::label("verdict", ""),
        ];
        let mut table = Table::new("Directions, beside the forecast that nothing ever changes", columns);
        for group in self.groups.iter().filter(|group| group.skill.directions > 0) {
            let verdict = match group.has_skill {
                Some(true) => "",
                Some(false) => "no skill here",
                None => "no change published",
            };
            table.push(skill_row(&group.group, &group.skill, verdict));
        }
        if self.groups.len() > 1 {
            table.push(skill_row("all", &self.skill, ""));
        }
        if let Some(withdrawn) = &self.withdrawn {
            table.push(skill_row("withdrawn, not counted above", &withdrawn.skill, ""));
        }
        (!table.rows().is_empty()).then_some(table)
    }

    /// Makes one table with the values of all tables of the study. A row has the published value and our
    /// value, or an empty cell if a value does not exist. The values of tables without published values come
    /// after all other values.
    pub fn flat_table(&self) -> Table {
        let columns = vec![
            Column::label("table", "table"),
            Column::label("row", "row"),
            Column::label("column", "column"),
            Column::measure("published", "published"),
            Column::measure("ours", "ours"),
            Column::label("origin", "origin"),
        ];
        let mut table = Table::new(self.study, columns);
        for comparison in self.all_tables() {
            for (index, quantity) in comparison.quantities().iter().enumerate() {
                for (row, pair) in comparison.row_names().zip(comparison.pairs(index)) {
                    let cell = |value: Option<f64>| {
                        value.map_or(Cell::Absent, |value| Cell::real(value, quantity.decimals))
                    };
                    table.push(Row::new([
                        comparison.id().into(),
                        row.into(),
                        quantity.key.as_str().into(),
                        cell(pair.published),
                        cell(pair.ours),
                        pair.origin.name().into(),
                    ]));
                }
            }
        }
        for own in self.more {
            own.rows().iter().for_each(|row| push_own(&mut table, own, row));
        }
        table.with_provenance(self.provenance.clone())
    }
}

fn skill_of(tables: &[&Comparison]) -> Skill {
    tables.iter().map(|table| table.skill()).sum()
}

/// Makes one group for each group name, in the order of the tables.
fn groups(study: &str, tables: &[&Comparison]) -> Vec<Group> {
    let mut groups: Vec<(&str, Skill)> = Vec::new();
    for table in tables {
        let name = table.group().unwrap_or(study);
        match groups.iter_mut().find(|(group, _)| *group == name) {
            Some((_, skill)) => *skill = [*skill, table.skill()].into_iter().sum(),
            None => groups.push((name, table.skill())),
        }
    }
    groups.into_iter().map(|(name, skill)| Group::new(name.to_owned(), skill)).collect()
}

fn skill_row(name: &str, skill: &Skill, verdict: &str) -> Row {
    let counts = [
        skill.directions,
        skill.directions_agreed,
        skill.null_model,
        skill.changes_published,
        skill.changes_met,
        skill.changes_seen_only_here,
        skill.steps_published,
        skill.steps_met,
    ];
    let cells = std::iter::once(name.into()).chain(counts.map(Cell::from)).chain([verdict.into()]);
    Row::new(cells)
}

/// Adds the numbers of one row of a table without published values. The row's labels are its name. If two
/// rows of a table have the same labels, a row's first number is also part of its name.
fn push_own(table: &mut Table, own: &Table, row: &Row) {
    let labels = |row: &Row| {
        let cells = own.columns().iter().zip(&row.cells);
        let text =
            cells.filter_map(|(_, cell)| if let Cell::Text(text) = cell { Some(text.clone()) } else { None });
        text.collect::<Vec<_>>().join(" ")
    };
    let numbers = || own.columns().iter().zip(&row.cells).filter(|(column, _)| column.kind != Kind::Label);
    let mut name = labels(row);
    if own.rows().iter().filter(|other| labels(other) == name).count() > 1
        && let Some((_, Cell::Count(first))) = numbers().next()
    {
        name += &format!(" {first}");
    }
    for (column, cell) in numbers().filter(|(_, cell)| **cell != Cell::Absent) {
        let (title, key) = (own.title(), column.key.as_str());
        table.push(Row::new([
            title.into(),
            name.as_str().into(),
            key.into(),
            Cell::Absent,
            cell.clone(),
            "computed".into(),
        ]));
    }
}

/// If values of a quantity differ from the published values, makes a sentence about this quantity of the
/// table.
fn differences(comparison: &Comparison) -> Vec<String> {
    let mut found = Vec::new();
    for (index, quantity) in comparison.quantities().iter().enumerate() {
        let agreement = comparison.agreement_of(index);
        let mut what = Vec::new();
        if agreement.directions_agreed < agreement.directions {
            let rows = comparison.row_names().enumerate().filter_map(|(row, name)| {
                let change = comparison.change(row, index)?;
                (!change.agrees()).then_some(name)
            });
            what.push(format!("other direction in {}", rows.collect::<Vec<_>>().join(", ")));
        }
        let wanted = agreement.spearman_ceiling.map_or(SPEARMAN_MIN, |ceiling| ceiling.min(SPEARMAN_MIN));
        if let Some(spearman) = agreement.spearman.filter(|spearman| *spearman < wanted - 1e-9) {
            what.push(format!("other order (Spearman {spearman:.2})"));
        }
        if agreement.missing > 0 {
            what.push(format!("{} values that we do not have", agreement.missing));
        }
        if !what.is_empty() {
            found.push(format!("{}, {}: {}.", comparison.id(), quantity.heading, what.join("; ")));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use pageset_report::Origin;
    use pageset_report::comparison::{Pair, Quantity};

    use super::*;

    /// Makes a table with a base row and one row for each pair of a published value and our value. The base
    /// row has the value 100.
    fn table(id: &str, changes: &[(f64, f64)]) -> Comparison {
        let pair = |published, ours| vec![Pair::new(Some(published), Some(ours), Origin::Simulated)];
        let mut table = Comparison::new(id, id, "m", vec![Quantity::relative("score", "score", "", 0)]);
        let base = table.push_base("base", pair(100.0, 100.0));
        for (index, (published, ours)) in changes.iter().enumerate() {
            table.push(format!("row {index}"), base, pair(*published, *ours));
        }
        table
    }

    #[test]
    fn the_top_of_the_json_counts_directions_beside_nothing_ever_changes() {
        let met = [(110.0, 120.0), (120.0, 130.0), (130.0, 140.0), (140.0, 150.0), (150.0, 160.0)];
        let mut good = table("good", &met);
        good.set_group("good ones");
        let mut bad = table("bad", &[(110.0, 100.0), (100.0, 100.0), (100.0, 110.0)]);
        bad.set_group("others");
        let mut withdrawn = table("withdrawn", &[(110.0, 100.0), (110.0, 120.0)]);
        withdrawn.withdraw("by its author");
        let findings = Findings { tables: vec![good, withdrawn, bad], ..Findings::default() };
        let reproduction = Reproduction::new("study", &findings, Provenance::default());
        let json = serde_json::to_value(&reproduction).unwrap();
        for (key, count) in [
            ("directions", 8),
            ("directions_agreed", 6),
            ("null_model", 2),
            ("changes_published", 6),
            ("changes_met", 5),
            ("changes_seen_only_here", 1),
            ("steps_published", 7),
            ("steps_met", 5),
        ] {
            assert_eq!(json[key], count, "{key}");
        }
        assert_eq!(json["groups"][0]["group"], "good ones");
        assert_eq!(json["groups"][0]["has_skill"], true);
        assert_eq!(json["groups"][1]["has_skill"], false, "our values meet none of the published changes");
        assert_eq!(json["withdrawn"]["directions"], 2);
        assert_eq!(json["withdrawn"]["tables"][0]["id"], "withdrawn");
        assert_eq!(json["tables"].as_array().unwrap().len(), 2);

        let table = reproduction.skill_table().unwrap();
        let verdict = |row: usize| table.rows()[row].cells.last().unwrap().clone();
        assert_eq!(verdict(0), Cell::from(""));
        assert_eq!(verdict(1), Cell::from("no skill here"));
    }

    #[test]
    fn numbers_of_our_own_tables_are_in_the_flat_one() {
        let columns = vec![
            Column::label("kernel", "kernel"),
            Column::count("threads", "Thr"),
            Column::measure("ns", "ns"),
        ];
        let mut own = Table::new("own", columns);
        for (kernel, threads) in [("old", 1_u64), ("old", 2), ("new", 1)] {
            own.push(Row::new([kernel.into(), threads.into(), Cell::real(0.5, 1)]));
        }
        let findings = Findings { more: vec![own], ..Findings::default() };
        let flat = Reproduction::new("study", &findings, Provenance::default()).flat_table();
        let rows: Vec<_> =
            flat.rows().iter().map(|row| (row.cells[1].clone(), row.cells[4].clone())).collect();
        let row = |name: &str, ours: Cell| (Cell::from(name), ours);
        assert_eq!(rows[..2], [row("old 1", 1_u64.into()), row("old 1", Cell::real(0.5, 1))]);
        assert_eq!(rows[2..4], [row("old 2", 2_u64.into()), row("old 2", Cell::real(0.5, 1))]);
        assert_eq!(rows[4..], [row("new", 1_u64.into()), row("new", Cell::real(0.5, 1))]);
    }
}
