//! Options that several subcommands have.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::ValueHint;
use pageset_lab::file::Existing;
use pageset_report::Format;

use crate::choice::one_of;
use crate::columnar::Columnar;

/// Which trace, and how it is opened.
#[derive(Debug, clap::Args)]
pub(crate) struct SourceArgs {
    /// Trace to read, of any known format; `-` is the standard input [default: the bundled one]
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) trace: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) opening: OpeningArgs,
}

/// How a trace is opened.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct OpeningArgs {
    /// The recorder's side file, if it does not lie beside the trace
    #[arg(long, value_name = "FILE", help_heading = "Reading", value_hint = ValueHint::FilePath)]
    pub(crate) sidecar: Option<PathBuf>,
    /// Skip damaged lines, samples and ring-buffer pages, and count them as lost
    #[arg(long, help_heading = "Reading")]
    pub(crate) lenient: bool,
    /// Read a damaged .pgtrace up to the damage, and count the rest as lost
    #[arg(long, help_heading = "Reading")]
    pub(crate) recover: bool,
}

/// How a result is written.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct OutputArgs {
    /// How to write the result: `table` is for people, 80 columns of plain ASCII; the others have every digit
    #[arg(short, long, default_value = "table", help_heading = "Output", value_name = "FORMAT")]
    #[arg(value_parser = one_of(Format::ALL.map(|format| (format.name(), format))))]
    format: Format,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// How rows are written, as columns too.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RowsOutputArgs {
    /// How to write the result: `table` is for people, 80 columns of plain ASCII; the others have every digit
    #[arg(short, long, default_value = "table", help_heading = "Output", value_name = "FORMAT")]
    #[arg(value_parser = one_of(RowsFormat::named()))]
    pub(crate) format: RowsFormat,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// A format that rows can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowsFormat {
    Printed(Format),
    Columnar(Columnar),
}

impl RowsFormat {
    fn named() -> impl Iterator<Item = (&'static str, Self)> {
        let printed = Format::ALL.map(|format| (format.name(), Self::Printed(format)));
        printed.into_iter().chain(Columnar::ALL.map(|format| (format.name(), Self::Columnar(format))))
    }
}

impl RowsOutputArgs {
    /// Refuses what this build cannot write, before hours of work go into it.
    pub(crate) fn check(&self) -> Result<()> {
        let RowsFormat::Columnar(format) = self.format else { return Ok(()) };
        format.check()?;
        if self.target.output.is_none() && io::stdout().is_terminal() {
            bail!("{} is not for a terminal: name a file with --output", format.name());
        }
        Ok(())
    }
}

/// Where a result goes.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct TargetArgs {
    /// Write to FILE instead of the standard output; it appears whole or not at all
    #[arg(short, long, value_name = "FILE", help_heading = "Output", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Replace files that exist
    #[arg(long, help_heading = "Output")]
    force: bool,
}

impl TargetArgs {
    /// What becomes of files that exist.
    pub(crate) fn existing(&self) -> Existing {
        if self.force { Existing::Replace } else { Existing::Refuse }
    }
}

impl OutputArgs {
    pub(crate) fn format(&self) -> Format {
        self.format
    }
}

/// The number of jobs asked for, or one for each CPU of this machine.
pub(crate) fn jobs(asked: Option<u16>) -> usize {
    asked.map_or_else(pageset_lab::jobs_of_this_machine, usize::from)
}
