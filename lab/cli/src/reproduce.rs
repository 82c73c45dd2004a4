//! `pageset reproduce` runs a published study again. `sections` writes the result as text.

pub(crate) mod args;
mod sections;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use pageset_report::comparison::Comparison;
use pageset_report::page::Page;
use pageset_report::{Format, Provenance};
use pageset_reproduce::{Findings, Options, Reproduction, Study, StudyFile};

use crate::args::exit_with_usage;
use crate::invocation::Invocation;
use crate::options::jobs;
use crate::output::{self, Existing};
use crate::page;
use crate::progress::Progress;
use crate::reproduce::args::{Chosen, ReproduceArgs};

pub(crate) fn run(args: &ReproduceArgs, invocation: &Invocation) -> Result<()> {
    let of_user;
    let study: &dyn Study = match &args.study {
        Chosen::Named(study) => *study,
        Chosen::File(path) => {
            of_user = StudyFile::read(path)?;
            &of_user
        }
    };
    if args.fit.is_some() && !study.has_parameters() {
        let name = study.name();
        exit_with_usage(format!("{name} has no parameters to choose again: leave out --fit"));
    }
    if args.seeds.is_some() && !study.has_seeds() {
        exit_with_usage(format!("{} has no runs with seeds: leave out --seeds", study.name()));
    }
    if !study.plays_days() && (args.day.is_some() || !args.policies.is_empty()) {
        exit_with_usage(format!("{} does not simulate days: leave out --policy and --day", study.name()));
    }
    let existing = args.output.target.existing();
    let options = Options {
        is_quick: args.quick,
        jobs: jobs(args.jobs),
        fit: args.fit.clone(),
        seeds: args.seeds,
        policies: args.policies.clone(),
        day: args.day.clone(),
    };
    if let Some(directory) = &args.svg {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("{}: cannot make this directory", directory.display()))?;
        for name in study.figures() {
            output::check_file(&drawing(directory, name), existing)?;
        }
    }
    let mut findings = study.run(&options, &mut Progress::on_terminal())?;
    let provenance = provenance(invocation, &mut findings);
    if let Some(directory) = &args.svg {
        draw(&findings, &provenance, directory, existing)?;
    }
    let reproduction = Reproduction::new(study.name(), &findings, provenance);
    args.page.write(existing, || as_page(&findings, &reproduction))?;
    output::write(&args.output.target, |out| match args.output.format() {
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, &reproduction)?;
            Ok(writeln!(out)?)
        }
        format @ (Format::Table | Format::Markdown) => sections::write(&reproduction, &findings, format, out),
        Format::Csv => Ok(Format::Csv.exporter().export(&reproduction.flat_table(), out)?),
    })
}

fn provenance(invocation: &Invocation, findings: &mut Findings) -> Provenance {
    let mut provenance = invocation.provenance();
    provenance.machine = std::mem::take(&mut findings.machine);
    provenance.policies = std::mem::take(&mut findings.policies);
    provenance.seeds = findings.seeds;
    provenance
}

/// Makes a page of published and simulated values side by side: first as figures, then as tables.
fn as_page(findings: &Findings, reproduction: &Reproduction<'_>) -> Result<Page> {
    let tables = reproduction.all_tables().map(Comparison::to_table).chain(findings.more.iter().cloned());
    let agreement = sections::agreement(reproduction);
    let differences = reproduction.differences.iter().chain(reproduction.explanations);
    let mut sections = vec![
        page::figures(findings.figures.iter().map(|(_, figure)| figure))?,
        page::tables(reproduction.skill_table().into_iter().chain(tables)),
    ];
    if !agreement.is_empty() {
        sections.push(page::sentences("Agreement", agreement.iter().map(String::as_str)));
    }
    sections.extend([
        page::sentences("How to read this", reproduction.notes.iter().map(String::as_str)),
        page::sentences(sections::differences_heading(findings), differences.map(String::as_str)),
        page::origin(&reproduction.provenance),
    ]);
    Ok(page::page(reproduction.study, sections))
}

fn drawing(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.svg"))
}

/// Draws each figure into a separate file.
fn draw(findings: &Findings, provenance: &Provenance, directory: &Path, existing: Existing) -> Result<()> {
    for (name, figure) in &findings.figures {
        let path = drawing(directory, name);
        let svg = figure.clone().with_provenance(provenance).to_svg();
        let svg = svg.with_context(|| format!("{}: cannot be drawn", path.display()))?;
        output::write_file(&path, existing, |out| Ok(out.write_all(svg.as_bytes())?))?;
    }
    Ok(())
}
