//! `pageset convert` writes a recording of any format as a native file, as a trace for Perfetto, or as the
//! layout of its machine.

pub(crate) mod args;
mod layout;
mod perfetto;

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Result, anyhow, bail};
use pageset_trace::{
    CONVERT_WRITES, RECORDER_UNKNOWN, TraceError, TraceReader, WithoutRecorder, WriteOptions, convert,
};

use crate::args::exit_with_usage;
use crate::convert::args::{ConvertArgs, ConvertTo};
use crate::hint;
use crate::origin;
use crate::origin::print_not_recorded;
use crate::output::{self, AtomicFile, Existing};
use crate::progress::Progress;
use crate::source::Source;
use crate::units::size;

pub(crate) fn run(args: &ConvertArgs) -> Result<()> {
    if !args.policies.is_empty() && args.to != ConvertTo::Perfetto {
        exit_with_usage("--policy needs --to perfetto");
    }
    if args.without_recorder && args.to != ConvertTo::Pgtrace {
        exit_with_usage("--without-recorder needs --to pgtrace");
    }
    if args.without_names && args.to != ConvertTo::Pgtrace {
        exit_with_usage("--without-names needs --to pgtrace");
    }
    if args.machine.layout.is_some() && args.to == ConvertTo::Layout {
        exit_with_usage("--layout needs --to pgtrace or --to perfetto");
    }
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    match args.to {
        ConvertTo::Pgtrace => native(args, &output_of(args, "pgtrace"), existing),
        ConvertTo::Perfetto => perfetto::run(args, &output_of(args, "pftrace"), existing),
        ConvertTo::Layout => layout::run(args),
    }
}

/// Returns the output file that the user named. If the user named no output file, returns a path in the
/// current directory: the input's name with `extension`.
fn output_of(args: &ConvertArgs, extension: &str) -> PathBuf {
    args.output.clone().unwrap_or_else(|| {
        let stem = args.input.file_stem().filter(|stem| *stem != "-");
        Path::new(stem.unwrap_or("recording".as_ref())).with_extension(extension)
    })
}

fn native(args: &ConvertArgs, output: &Path, existing: Existing) -> Result<()> {
    let input = &args.input;
    output::check_file(output, existing)?;
    let facts = &args.machine.facts;
    if args.machine.layout.is_none() && (facts.page_size.is_some() || facts.node_cpus.is_some()) {
        exit_with_usage(
            "--page-size and --node-cpus complete a copy of /proc/zoneinfo: give the copy with --layout",
        );
    }
    let layout = args.machine.layout.as_deref().map(|path| (path, facts.options()));
    let mut source = Source::open_path(input, &args.opening, layout)?;
    if args.without_names {
        source = source.forget_names();
    }
    let mut file = AtomicFile::create(output, existing)?;
    let amount = source.amount();
    let mut progress = Progress::of_amount("converting", &amount);
    let info = source.info().clone();
    let mut left_out = None;
    // Use at most 8 encoders, because more encoders would wait for the thread that reads the recording.
    let encoders = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(8);
    let options = WriteOptions::default().encoders(encoders);
    let mut write = |reader: &mut dyn TraceReader| {
        convert(reader, &mut file, options, |events| progress.show(amount.done(events))).map_err(|error| {
            match error {
                TraceError::Io { source, action: CONVERT_WRITES, .. } => {
                    // Return only this error's source, because the source already names the file.
                    anyhow!(source)
                }
                error => hint::of_trace(error),
            }
        })
    };
    let summary = if args.without_recorder {
        if info.recorder_pids.is_empty() {
            let why = info.not_recorded.iter().find(|what| what.starts_with(RECORDER_UNKNOWN));
            let why = why
                .map_or("only recordings of `pageset record` name these threads".to_owned(), |why| {
                    format!("not recorded: {why}")
                });
            bail!("{}: the recording does not name its recorder's threads; {why}", input.display());
        }
        let mut reader = WithoutRecorder::new(source);
        let summary = write(&mut reader)?;
        left_out = Some(reader.left_out());
        summary
    } else {
        write(&mut source)?
    };
    drop(progress);
    file.finish()?;
    let from = fs::metadata(input).map(|metadata| metadata.len()).ok().filter(|bytes| *bytes > 0);
    output::print(|out| {
        writeln!(
            out,
            "{}: {} events, {}{}",
            output.display(),
            summary.events,
            from.map(|bytes| format!("{} -> ", size(bytes))).unwrap_or_default(),
            size(summary.bytes)
        )?;
        if let Some(events) = left_out {
            writeln!(out, "Left out: {events} events of pages that the recorder used.")?;
        }
        for note in origin::lost_notes(&summary.lost) {
            writeln!(out, "{note}")?;
        }
        print_not_recorded(out, &info.not_recorded)?;
        for note in info.assumptions(info.machine.as_ref()) {
            writeln!(out, "{note}")?;
        }
        if info.machine.is_none() {
            writeln!(out, "The recording does not describe its machine; --layout FILE adds a description.")?;
        }
        Ok(())
    })
}
