//! `pageset report` writes recordings as one HTML file.
//!
//! Each section of the page has a file. In the order of the page, these files are `comparison` (of several
//! recordings), `verdict`, `over_time`, `traffic` (blocks by CPU, lifetimes), `elsewhere` (other kernels and
//! settings) and `evidence`. `cpu_rows` names the rows of charts with a row for each CPU. `settings` prints
//! the settings in force and their changes.

pub(crate) mod args;
mod comparison;
mod cpu_rows;
mod elsewhere;
mod evidence;
mod over_time;
mod settings;
mod traffic;
mod verdict;

use std::io::{self, IsTerminal as _};

use anyhow::{Result, bail};
use pageset_replay::report_data::{ReportData, report_data};
use pageset_report::Provenance;
use pageset_report::page::Page;
use pageset_study::latency::simulated;

use crate::advise;
use crate::args::exit_with_usage;
use crate::invocation::Invocation;
use crate::options::SourceArgs;
use crate::output;
use crate::progress::Progress;
use crate::source::{self, Source};
use crate::units::size;
use args::ReportArgs;

pub(crate) fn run(args: &ReportArgs, invocation: &Invocation) -> Result<()> {
    let mut sources: Vec<SourceArgs> = args
        .traces
        .iter()
        .map(|trace| SourceArgs { recording: Some(trace.clone()), opening: args.opening.clone() })
        .collect();
    if args.traces.iter().any(|trace| trace.as_os_str() == "-") {
        exit_with_usage(
            "a report reads a recording three times, so the recording cannot come from the standard input: \
             give a file",
        );
    }
    if let Some(folder) = args.traces.iter().find(|trace| trace.is_dir()) {
        let files = folder.join("*.pgtrace");
        bail!("{}: is a directory; name its files, as in {}", folder.display(), files.display());
    }
    if sources.is_empty() {
        sources.push(SourceArgs { recording: None, opening: args.opening.clone() });
    }
    if args.target.output.is_none() && io::stdout().is_terminal() {
        exit_with_usage(
            "a report is a page for a browser: name a file with -o, or send the page through a pipe",
        );
    }
    let mut dossiers = Vec::new();
    for source in &sources {
        let gathered = report_data(|| Source::open(source), simulated, &mut Progress::on_terminal());
        dossiers.push(gathered.map_err(advise::of_reading)?);
    }
    let html = page(&dossiers, &invocation.provenance()).to_html()?;
    output::write(&args.target, |out| Ok(out.write_all(html.as_bytes())?))?;
    if let Some(path) = &args.target.output {
        output::print(|out| Ok(writeln!(out, "{}: {}", path.display(), size(html.len() as u64))?))?;
    }
    Ok(())
}

/// Makes the whole page. The sections of one recording stand together.
fn page(dossiers: &[ReportData], provenance: &Provenance) -> Page {
    let names: Vec<String> = dossiers.iter().map(name).collect();
    let mut page = Page::new(names.join(", "));
    let order = if dossiers.len() > 1 {
        let (order, section) = comparison::section(dossiers, &names);
        page.push(section);
        order
    } else {
        vec![0]
    };
    for at in order {
        let report_data = &dossiers[at];
        let is_one = dossiers.len() == 1;
        let heading = |words: &str| if is_one { words.to_owned() } else { format!("{}: {words}", names[at]) };
        let first = verdict::section(report_data, heading("Verdict"));
        // If there are several recordings, the page's list of sections has one entry for each recording: the
        // recording's verdict.
        let rest = [
            over_time::section(report_data, at, heading("Over time")),
            over_time::map(report_data, at, heading("Which CPU, and when")),
            traffic::section(report_data, heading("Who frees what, and how soon")),
            elsewhere::section(report_data, heading("Other kernels and settings")),
            evidence::section(report_data, provenance, heading("Evidence")),
        ];
        page.push(if is_one { first } else { first.listed(Some(&names[at])) });
        rest.into_iter().for_each(|section| page.push(if is_one { section } else { section.listed(None) }));
    }
    page
}

fn name(report_data: &ReportData) -> String {
    source::title(&report_data.examined.info)
}
