//! `pageset export perfetto`: a trace as the Perfetto UI shows it.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::ValueHint;
use pageset_core::Policy;
use pageset_lab::export::{FOLLOWED_ONE_IN, PerfettoOptions, PerfettoSummary, perfetto};
use pageset_trace::{TraceError, TraceReader};
use pageset_workload::Candidate;

use crate::args::policy;
use crate::convert::size;
use crate::hint;
use crate::layouts::{self, LayoutOrigin};
use crate::options::{MachineArgs, SourceArgs};
use crate::origin;
use crate::output::{self, AtomicFile, Existing};
use crate::paragraph;
use crate::progress::Progress;
use crate::record::print_not_recorded;
use crate::source::Source;

const READING: &str = "\
How to look at it:
  Open https://ui.perfetto.dev and drop the file there. The page reads it in
  your browser: nothing is uploaded.

How to read this:
  node 0 Normal           free pages against the watermarks
  node 0 Normal CPU 1     a page set: its refills and drains, `count`, `high`
  CPU 1                   ticks, and arrows from where pages are allocated to
                          where another CPU frees them: one allocation in 16
                          is followed
  kswapd, threads         reclaim, and waits for locks, with the holder where
                          it is known
  replay under ...        the same load under a policy of -p

Examples:
  pageset export perfetto -o lua.pftrace
  pageset export perfetto my.pgtrace -o my.pftrace -p linux-6.6,linux-6.12";

/// Write a trace for the Perfetto UI and its trace processor
///
/// Page sets, zones, CPUs, threads and reclaim become tracks, on which one can scroll. Policies are shown beside the
/// recorded kernel, each as a group of its own.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING)]
pub(super) struct PerfettoArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Policy to show beside the recorded kernel. May be repeated, or be a list with commas [default: none]
    #[arg(short, long = "policy", value_name = "NAME", value_delimiter = ',', hide_possible_values = true)]
    #[arg(value_parser = policy())]
    policies: Vec<&'static Policy>,
    #[command(flatten)]
    machine: MachineArgs,
    /// File to write; it appears whole or not at all
    #[arg(short, long, value_name = "FILE", help_heading = "Output", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// Replace the file if it exists
    #[arg(long, help_heading = "Output")]
    force: bool,
}

pub(super) fn run(args: &PerfettoArgs) -> Result<()> {
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    let source = Source::open(&args.source)?;
    let path = args.source.trace.as_deref();
    if !args.policies.is_empty() && path.is_some_and(|path| !path.is_file()) {
        bail!(
            "{}: a pipe cannot be read twice, which --policy needs; save the trace to a file first",
            source.argument
        );
    }
    let (machine, layout_origin) = layouts::find(&source, &args.source, &args.machine)?;
    let not_recorded = source.info().not_recorded.clone();
    let assumed = source.info().assumptions(Some(&machine));
    let options = PerfettoOptions {
        machine,
        policies: args.policies.iter().map(|policy| Candidate::from(**policy)).collect(),
        written_by: format!("pageset {}", env!("CARGO_PKG_VERSION")),
    };
    let mut first = Some(source);
    let mut open = || -> Result<Box<dyn TraceReader>> {
        Ok(Box::new(first.take().map_or_else(|| Source::open(&args.source), Ok)?))
    };
    let mut file = AtomicFile::create(&args.output, existing)?;
    let summary = perfetto(&mut open, &options, &mut file, &mut Progress::on_terminal())
        .map_err(|error| error.downcast::<TraceError>().map_or_else(|other| other, hint::of_trace))?;
    file.finish()?;
    output::print(|out| print(args, &options, &summary, (layout_origin, &not_recorded, &assumed), out))
}

fn print(
    args: &PerfettoArgs,
    options: &PerfettoOptions,
    summary: &PerfettoSummary,
    (layout_origin, not_recorded, assumed): (LayoutOrigin, &[String], &[String]),
    out: &mut dyn Write,
) -> Result<()> {
    writeln!(
        out,
        "{}: {} events, {} packets, {}",
        args.output.display(),
        summary.events,
        summary.packets,
        size(summary.bytes)
    )?;
    let mut made = |who: &str, (refills, drains): (u64, u64)| {
        writeln!(out, "  {who}: {refills} refills, {drains} drains")
    };
    made("recorded kernel", summary.recorded)?;
    for (candidate, decisions) in options.policies.iter().zip(&summary.replayed) {
        made(&candidate.name(), *decisions)?;
    }
    let followed = &summary.followed;
    let mut text = format!(
        "Allocations followed to their free: {}, one in {FOLLOWED_ONE_IN}. Arrows to another CPU that freed them: {}.",
        followed.allocations - followed.given_up,
        followed.arrows
    );
    if followed.given_up > 0 {
        text += &format!(" Not followed, since too many blocks were in use: {}.", followed.given_up);
    }
    if summary.samples.taken > 0 {
        text += &format!(
            " Of {} samples of page sets, {} differed from the count by events, by {:.1} pages on average.",
            summary.samples.taken,
            summary.samples.off,
            summary.samples.off_pages as f64 / summary.samples.off.max(1) as f64
        );
    }
    if summary.unpaired > 0 {
        text += &format!(
            " Waits, work items and reclaims without a beginning or an end in the recording: {}.",
            summary.unpaired
        );
    }
    paragraph::write(out, 0, &text)?;
    for note in origin::lost_notes(&summary.lost) {
        writeln!(out, "{note}")?;
    }
    print_not_recorded(out, not_recorded)?;
    for note in assumed {
        writeln!(out, "{note}")?;
    }
    if layout_origin == LayoutOrigin::Guessed {
        writeln!(out, "The trace does not describe its machine: zones are made up from the events.")?;
    }
    writeln!(out, "Open it at https://ui.perfetto.dev, which uploads nothing.")?;
    Ok(())
}
