//! Writes a reproduced study as text.

use std::io::{self, Write};

use anyhow::Result;
use pageset_report::Format;
use pageset_report::comparison::Skill;
use pageset_reproduce::{Findings, Group, Reproduction};

use crate::paragraph;

/// Writes the tables with their notes, how well published and simulated values agree, and the differences
/// that remain.
pub(crate) fn write(
    reproduction: &Reproduction<'_>,
    findings: &Findings,
    format: Format,
    out: &mut dyn Write,
) -> Result<()> {
    let exporter = format.exporter();
    for comparison in reproduction.all_tables() {
        exporter.export(&comparison.to_table(), out)?;
        writeln!(out)?;
    }
    for table in &findings.more {
        exporter.export(table, out)?;
        writeln!(out)?;
    }
    let is_published = !findings.tables.is_empty();
    heading(out, format, "How to read this")?;
    for note in
        NOTES.iter().copied().filter(|_| is_published).chain(reproduction.notes.iter().map(String::as_str))
    {
        paragraph::write(out, 0, note)?;
    }
    writeln!(out)?;
    if let Some(table) = reproduction.skill_table() {
        heading(out, format, "Agreement")?;
        exporter.export(&table, out)?;
        writeln!(out)?;
        for text in agreement(reproduction) {
            paragraph::write(out, 0, &text)?;
        }
        writeln!(out)?;
    }
    heading(out, format, differences_heading(findings))?;
    if is_published && reproduction.differences.is_empty() {
        paragraph::write(out, 0, "Every direction and every order agrees.")?;
    }
    for text in reproduction.differences.iter().chain(reproduction.explanations) {
        paragraph::write(out, 0, text)?;
    }
    writeln!(out)?;
    Ok(provenance(reproduction, format, out)?)
}

/// Sentences on how many directions of change agree, and on the groups of tables without skill: their
/// directions mean nothing.
pub(super) fn agreement(reproduction: &Reproduction<'_>) -> Vec<String> {
    let Skill { directions, directions_agreed, null_model, changes_published, changes_met, .. } =
        reproduction.skill;
    let Skill { changes_seen_only_here, steps_published, steps_met, .. } = reproduction.skill;
    let mut sentences = Vec::new();
    if let Some(part) = reproduction.direction_agreement {
        let percent = part * 100.0;
        sentences.push(format!(
            "Direction of change: {directions_agreed} of {directions} ({percent:.1} %). The null model would have \
             {null_model} right. Of {changes_published} published changes {changes_met} are met; {changes_seen_only_here} changes are \
             seen where none is published. From one row to the next, {steps_met} of {steps_published} published steps are met."
        ));
    }
    let without = reproduction.groups.iter().filter(|group| group.has_skill == Some(false));
    sentences.extend(without.map(no_skill));
    let misses = &reproduction.misses;
    if misses.opposite + misses.close > 0 {
        sentences.push(format!(
            "{} changes have the opposite direction of the published change. In {} of the directions that differ, the two changes differ by less than \
             what counts as no change.",
            misses.opposite, misses.close
        ));
    }
    sentences
}

/// A sentence that says why a group's directions mean nothing.
fn no_skill(group: &Group) -> String {
    let Skill { changes_published, changes_met, changes_seen_only_here, .. } = group.skill;
    format!(
        "No skill here: {}. Of {changes_published} published changes {changes_met} are met, and {changes_seen_only_here} changes \
         are seen only here (sign test against \"nothing ever changes\": p = {:.2}). Do not rely on a simulation for such a \
         question.",
        group.group, group.p_value
    )
}

/// The heading above the differences and their reasons. A study of this project has another heading, because
/// it has no published tables to reproduce.
pub(super) fn differences_heading(findings: &Findings) -> &'static str {
    if findings.tables.is_empty() { "What was missed, and why" } else { "What did not reproduce, and why" }
}

const NOTES: [&str; 4] = [
    "The first value of a pair is the published one, the second is ours.",
    "Direction: a value goes up, down or stays the same, counted from the base row. Changes of at most 2 % (of scores, \
     times and counts) or 1 point (of shares), or of what the text itself calls its variation, count as no change. Changes of \
     ours that the seeds' spread covers count as no change, too.",
    "Null model: the forecast that nothing ever changes. Its directions are right wherever no change is published. A group of \
     tables has skill if at least a third of its published changes are met, and if its directions beat the null model's by a \
     sign test (p < 0.05).",
    "Spearman: 1 if the published values and ours have the same order. If published values are equal and ours differ, the \
     largest possible value is less than 1, and is printed too. The base row is included unless a table has several.",
];

fn heading(out: &mut dyn Write, format: Format, text: &str) -> io::Result<()> {
    if format == Format::Markdown {
        return writeln!(out, "## {text}\n");
    }
    writeln!(out, "{text}\n{}", "-".repeat(text.len()))
}

/// Writes the provenance (command, version, commit, machine), as below every table.
fn provenance(reproduction: &Reproduction<'_>, format: Format, out: &mut dyn Write) -> io::Result<()> {
    for (name, value) in reproduction.provenance.facts() {
        if format == Format::Markdown {
            writeln!(out, "- {name}: `{value}`")?;
        } else {
            paragraph::write(out, 0, &format!("{name}: {value}"))?;
        }
    }
    Ok(())
}
