//! Tests that the counts of directions in the book agree with the published tables, and with the book's list
//! of directions that differ between simulation and publication. A direction says whether a value is higher
//! than, lower than or equal to the value of its base row.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pageset_report::Origin;
use pageset_report::comparison::{Comparison, Pair, Skill};

use super::simulated::Experiment;
use super::study::Study as _;
use super::study_file::StudyFile;

/// Compares a published table with the null model, the forecast that nothing ever changes.
fn null_model(experiment: &Experiment) -> Skill {
    let quantities = experiment.columns.iter().map(|(quantity, _)| quantity.clone()).collect();
    let mut table = Comparison::new(&experiment.id, "", "", quantities);
    for case in &experiment.cases {
        let base = case.base.map_or(case, |base| &experiment.cases[base]);
        let pairs = case.published.iter().zip(&base.published).map(|(published, base)| {
            let pair = Pair::new(*published, *base, Origin::Simulated);
            Pair { variation_percent: case.variation_percent, ..pair }
        });
        let pairs = pairs.collect();
        match case.base {
            None => _ = table.push_base(&case.name, pairs),
            Some(base) => table.push(&case.name, base, pairs),
        }
    }
    let skill = table.skill();
    assert_eq!((skill.directions_agreed, skill.changes_met), (skill.null_model, 0), "{}", experiment.id);
    skill
}

/// Returns the counts of the three large studies, by the names of groups of tables in the book.
fn published() -> BTreeMap<String, Skill> {
    let mut groups: BTreeMap<String, Skill> = BTreeMap::new();
    let mut add = |group: String, experiment: &Experiment| {
        let skill = groups.entry(group).or_default();
        *skill = [*skill, null_model(experiment)].into_iter().sum();
    };
    let studies = ["batch-size", "pcp-auto-tuning", "high-order-pcp"];
    for study in StudyFile::bundled().filter(|study| studies.contains(&study.name())) {
        for experiment in study.experiments(false).unwrap() {
            let part = experiment.withdrawn.as_ref().map(|_| "withdrawn").or(experiment.group.as_deref());
            let group =
                part.map_or(format!("`{}`", study.name()), |part| format!("`{}`, {part}", study.name()));
            add(group, &experiment);
        }
    }
    groups
}

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src").join(name)).unwrap()
}

/// Reads `reference/directions.md`, the list of directions that differ between simulation and publication.
/// Returns two counts for each group of tables: the number of all directions that differ, and the number of
/// directions that differ because only the simulated value changes.
fn listed() -> BTreeMap<&'static str, (u64, u64)> {
    let mut groups = BTreeMap::new();
    for line in page("reference/directions.md").lines() {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [_, table, unit @ ("%" | "points"), entries, _, _] = cells[..] else { continue };
        let group = match table {
            _ if table.contains("page_fault1") => "`batch-size`, page_fault1",
            _ if table.contains("page_fault2") || table.contains("page_fault3") => {
                "`batch-size`, page_fault2 and page_fault3"
            }
            _ if table.contains("kbuild-v3") => "`pcp-auto-tuning`, third version's build",
            _ if ["kbuild", "sctp", "af-unix"].iter().any(|part| table.contains(part)) => {
                "`pcp-auto-tuning`, first version"
            }
            _ if table.contains("netperf-udp") => "`high-order-pcp`, withdrawn",
            _ if table.contains("sockperf") || table.contains("hackbench") => "`high-order-pcp`",
            _ => "`batch-size`, other programs",
        };
        let (all, only_here) = groups.entry(group).or_insert((0, 0));
        let band = if unit == "%" { 2.0 } else { 1.0 };
        for entry in entries.split(';') {
            let (_, values) = entry.rsplit_once(": ").unwrap_or_else(|| panic!("{entry}"));
            let size = |text: &str| text.trim().trim_start_matches(['+', '−']).parse::<f64>().unwrap();
            let (published, ours) = values.split_once('/').unwrap();
            let ours = ours.split_once('±').unwrap().0;
            *all += 1;
            *only_here += u64::from(size(published) <= band && size(ours) >= band);
        }
    }
    groups
}

/// Tests the counts of the null model against numbers that were counted by hand. The null model is right for
/// 646 of 1167 directions.
#[test]
fn nothing_ever_changes_has_more_than_half_of_the_directions() {
    let published = published();
    let studies = published.iter().filter(|(group, _)| !group.contains("third version"));
    let all: Skill = studies.map(|(_, skill)| *skill).sum();
    assert_eq!((all.directions, all.null_model, all.changes_published), (1167, 646, 521));
    let counts = |group: &str| {
        let skill: Skill = published[group];
        (skill.directions, skill.null_model)
    };
    assert_eq!(counts("`batch-size`, page_fault1"), (684, 310));
    assert_eq!(counts("`batch-size`, page_fault2 and page_fault3"), (72, 61));
    assert_eq!(counts("`batch-size`, other programs"), (287, 249));
    assert_eq!(counts("`pcp-auto-tuning`, first version"), (84, 16));
    assert_eq!(counts("`high-order-pcp`, withdrawn"), (18, 0));
    assert_eq!(counts("`high-order-pcp`"), (22, 10));
}

#[test]
fn the_books_counts_follow_from_the_tables_and_from_its_list_of_misses() {
    let (published, listed, guide) = (published(), listed(), page("guide/reproduce.md"));
    for (group, skill) in published {
        let (missed, only_here) = listed.get(group.as_str()).copied().unwrap_or_default();
        let met = skill.changes_published - (missed - only_here);
        let skill = Skill {
            directions_agreed: skill.directions - missed,
            changes_met: met,
            changes_seen_only_here: only_here,
            ..skill
        };
        let verdict = if skill.is_shown() == Some(false) { "no skill here" } else { "" };
        let Skill { directions, directions_agreed, null_model, changes_published, .. } = skill;
        let row = format!(
            "| {group} | {directions_agreed} of {directions} | {null_model} | {met} of {changes_published} | {only_here} |"
        );
        let line = guide.lines().find(|line| line.starts_with(&row));
        let line = line.unwrap_or_else(|| panic!("no line begins with `{row}` in guide/reproduce.md"));
        assert_eq!(line.contains("no skill here"), !verdict.is_empty(), "{line}");
    }
}
