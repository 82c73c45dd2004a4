//! `pageset convert --to perfetto` writes a recording as a trace for the Perfetto UI.

use std::io::Write;
use std::path::Path;

use anyhow::{Result, bail};
use pageset_replay::export::{FOLLOWED_ONE_IN, PerfettoOptions, PerfettoSummary, perfetto};
use pageset_replay::{Candidate, RecordedKinds};
use pageset_trace::{EventKind, TraceError, TraceReader};

use super::args::ConvertArgs;
use crate::hint;
use crate::layouts::{self, LayoutOrigin};
use crate::options::SourceArgs;
use crate::origin;
use crate::origin::print_not_recorded;
use crate::output::{self, AtomicFile, Existing};
use crate::paragraph;
use crate::progress::Progress;
use crate::source::Source;
use crate::units::size;

pub(super) fn run(args: &ConvertArgs, output: &Path, existing: Existing) -> Result<()> {
    let from = SourceArgs { recording: Some(args.input.clone()), opening: args.opening.clone() };
    let mut source = Source::open(&from)?;
    if source.info().counts.is_some() {
        let kinds = RecordedKinds::at_the_start(&mut source).map_err(hint::of_trace)?;
        kinds.require(&[EventKind::MmPageAlloc], source.info())?;
    }
    if !args.policies.is_empty() && !args.input.is_file() {
        bail!(
            "{}: a pipe cannot be read twice, which --policy needs; save the recording to a file first",
            source.argument
        );
    }
    let (machine, layout_origin) = layouts::find(&source, &from, &args.machine)?;
    let not_recorded = source.info().not_recorded.clone();
    let assumed = source.info().assumptions(Some(&machine));
    let options = PerfettoOptions {
        machine,
        policies: args.policies.iter().map(|policy| Candidate::from(**policy)).collect(),
        written_by: format!("pageset {}", env!("CARGO_PKG_VERSION")),
    };
    let mut first = Some(source);
    let mut open = || -> Result<Box<dyn TraceReader>> {
        Ok(Box::new(first.take().map_or_else(|| Source::open(&from), Ok)?))
    };
    let mut file = AtomicFile::create(output, existing)?;
    let summary = perfetto(&mut open, &options, &mut file, &mut Progress::on_terminal())
        .map_err(|error| error.downcast::<TraceError>().map_or_else(|other| other, hint::of_trace))?;
    file.finish()?;
    output::print(|out| print(output, &options, &summary, (layout_origin, &not_recorded, &assumed), out))
}

fn print(
    output: &Path,
    options: &PerfettoOptions,
    summary: &PerfettoSummary,
    (layout_origin, not_recorded, assumed): (LayoutOrigin, &[String], &[String]),
    out: &mut dyn Write,
) -> Result<()> {
    writeln!(
        out,
        "{}: {} events, {} packets, {}",
        output.display(),
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
        "Allocations followed to their free: {}, one in {FOLLOWED_ONE_IN}. Arrows to another CPU that freed the block: {}.",
        followed.allocations - followed.given_up,
        followed.arrows
    );
    if followed.given_up > 0 {
        text += &format!(
            " Allocations not followed, because too many were followed at the time: {}.",
            followed.given_up
        );
    }
    if summary.samples.taken > 0 {
        text += &format!(
            " Of {} samples of page sets, {} differed from the number that follows from events, by {:.1} pages on average.",
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
        writeln!(
            out,
            "The recording does not describe its machine, so the zones are guessed from the events."
        )?;
    }
    writeln!(out, "Open the file at https://ui.perfetto.dev, which uploads nothing.")?;
    Ok(())
}
