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

use std::path::Path;

use anyhow::{Context as _, Result};
use pageset_report::{Format, Provenance};

use crate::args::ReproduceArgs;
use crate::output;
use crate::{jobs, origin};
use document::Document;
pub(crate) use study::names;
use study::{Findings, Options, Study};

pub(crate) fn run(args: &ReproduceArgs) -> Result<()> {
    let study = study::named(&args.study).expect("the parser allows only names of studies");
    let options = Options { is_quick: args.quick, jobs: jobs::count(args.jobs), fit: args.fit.clone() };
    if let Some(directory) = &args.svg {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("{}: cannot make this directory", directory.display()))?;
    }
    let mut findings = study.run(&options)?;
    let provenance = provenance(study, args, &mut findings);
    if let Some(directory) = &args.svg {
        draw(&findings, &provenance, directory)?;
    }
    let document = Document::new(study.name(), &findings, provenance);
    output::write(args.output.output.as_deref(), |out| match args.output.format() {
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, &document)?;
            Ok(writeln!(out)?)
        }
        format @ (Format::Table | Format::Markdown) => sections::write(&document, &findings, format, out),
        Format::Csv => Ok(Format::Csv.exporter().export(&document.flat_table(), out)?),
    })
}

/// The command line that gives the same result; `--jobs`, `--svg` and `-o` do not change it.
fn provenance(study: &dyn Study, args: &ReproduceArgs, findings: &mut Findings) -> Provenance {
    let quick = if args.quick { " --quick" } else { "" };
    let mut provenance = origin::of_command(format!("pageset reproduce {}{quick}", study.name()));
    provenance.machine = std::mem::take(&mut findings.machine);
    provenance.policies = std::mem::take(&mut findings.policies);
    provenance.seed = findings.seed;
    provenance
}

/// One file for each figure.
fn draw(findings: &Findings, provenance: &Provenance, directory: &Path) -> Result<()> {
    for (name, figure) in &findings.figures {
        let path = directory.join(format!("{name}.svg"));
        let svg = figure.clone().with_provenance(provenance).to_svg();
        let svg = svg.with_context(|| format!("{}: cannot be drawn", path.display()))?;
        output::write(Some(&path), |out| Ok(out.write_all(svg.as_bytes())?))?;
    }
    Ok(())
}
