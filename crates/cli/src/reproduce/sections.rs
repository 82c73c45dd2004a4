//! A reproduced study as text.

use std::io::{self, Write};

use anyhow::Result;
use pageset_lab::reproduce::{Findings, Reproduction};
use pageset_report::Format;
use pageset_report::comparison::Misses;

use crate::paragraph;

/// Tables, what to know about them, how well they agree, and what did not reproduce.
pub(crate) fn write(
    reproduction: &Reproduction<'_>,
    findings: &Findings,
    format: Format,
    out: &mut dyn Write,
) -> Result<()> {
    let exporter = format.exporter();
    for comparison in &findings.tables {
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
    if is_published {
        heading(out, format, "Agreement")?;
        if let Some(agreement) = reproduction.direction_agreement {
            let (agreed, all) = (reproduction.directions_agreed, reproduction.directions);
            let percent = agreement * 100.0;
            paragraph::write(out, 0, &format!("Direction of change: {agreed} of {all} ({percent:.1} %)."))?;
            if reproduction.misses.total() > 0 {
                paragraph::write(out, 0, &misses(&reproduction.misses))?;
            }
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

fn misses(misses: &Misses) -> String {
    let Misses { only_published, only_ours, opposite, close, .. } = misses;
    format!(
        "Of the others, {only_published} change only as published, {only_ours} only here, {opposite} the opposite way. In \
         {close} of them both changes are nearer to each other than what counts as no change."
    )
}

/// What stands above the differences and their reasons; a study of our own has no published tables.
pub(super) fn differences_heading(findings: &Findings) -> &'static str {
    if findings.tables.is_empty() { "What was missed, and why" } else { "What did not reproduce, and why" }
}

const NOTES: [&str; 3] = [
    "The first value of a pair is the published one, the second is ours.",
    "Direction: a value goes up, down or stays the same, counted from the base row; changes of at most 2 % (of scores, \
     times and counts) or 1 point (of shares), or of what the text itself calls its variation, are none. Nor are changes of ours \
     that the seeds' spread covers.",
    "Spearman: 1 if both have the same order. Where published values are equal, ours that differ cannot reach 1: the \
     most that they can reach is printed then. The base row is included unless a table has several.",
];

fn heading(out: &mut dyn Write, format: Format, text: &str) -> io::Result<()> {
    if format == Format::Markdown {
        return writeln!(out, "## {text}\n");
    }
    writeln!(out, "{text}\n{}", "-".repeat(text.len()))
}

/// Command, version, commit, machine: as below every table.
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
