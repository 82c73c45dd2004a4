//! `pageset reproduce`: a published study run again, its tables with our values beside the printed ones.
//!
//! `study` says what a study is, and lists them; there is one file for each. `published` reads the printed tables.
//! `simulated` runs studies whose values come from simulations. `document` is the result as JSON, `sections` as text.

mod batch_size;
mod document;
mod high_order_pcp;
mod huge_copy;
mod page_fault;
mod pcp_auto_tuning;
mod published;
mod sections;
mod simulated;
mod study;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use pageset_report::{Format, Provenance};

use crate::args::{self, ReproduceArgs};
use crate::invocation::Invocation;
use crate::jobs;
use crate::output::{self, Existing};
use document::Document;
pub(crate) use simulated::Fitted;
pub(crate) use study::names;
use study::{Findings, Options};

pub(crate) fn run(args: &ReproduceArgs, invocation: &Invocation) -> Result<()> {
    let study = study::named(&args.study).expect("the parser allows only names of studies");
    if args.fit.is_some() && !study.has_parameters() {
        let name = study.name();
        args::refuse(format!("{name} has no parameters that could be chosen again: leave --fit out"));
    }
    let existing = args.output.target.existing();
    let options = Options { is_quick: args.quick, jobs: jobs::count(args.jobs), fit: args.fit.clone() };
    if let Some(directory) = &args.svg {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("{}: cannot make this directory", directory.display()))?;
        for name in study.figures() {
            output::check_file(&drawing(directory, name), existing)?;
        }
    }
    let mut findings = study.run(&options)?;
    let provenance = provenance(invocation, &mut findings);
    if let Some(directory) = &args.svg {
        draw(&findings, &provenance, directory, existing)?;
    }
    let document = Document::new(study.name(), &findings, provenance);
    output::write(&args.output.target, |out| match args.output.format() {
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, &document)?;
            Ok(writeln!(out)?)
        }
        format @ (Format::Table | Format::Markdown) => sections::write(&document, &findings, format, out),
        Format::Csv => Ok(Format::Csv.exporter().export(&document.flat_table(), out)?),
    })
}

fn provenance(invocation: &Invocation, findings: &mut Findings) -> Provenance {
    let mut provenance = invocation.provenance();
    provenance.machine = std::mem::take(&mut findings.machine);
    provenance.policies = std::mem::take(&mut findings.policies);
    provenance.seed = findings.seed;
    provenance
}

fn drawing(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.svg"))
}

/// One file for each figure.
fn draw(findings: &Findings, provenance: &Provenance, directory: &Path, existing: Existing) -> Result<()> {
    for (name, figure) in &findings.figures {
        let path = drawing(directory, name);
        let svg = figure.clone().with_provenance(provenance).to_svg();
        let svg = svg.with_context(|| format!("{}: cannot be drawn", path.display()))?;
        output::write_file(&path, existing, |out| Ok(out.write_all(svg.as_bytes())?))?;
    }
    Ok(())
}
