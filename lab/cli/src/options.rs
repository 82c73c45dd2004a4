//! Options that several subcommands have.

use std::io::{self, IsTerminal as _, Write};
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::ValueHint;
use pageset_replay::file::Existing;
use pageset_report::{Format, Provenance, Table};
use pageset_trace::LayoutOptions;

use crate::choice::one_of;
use crate::columnar::Columnar;

/// Arguments that name one recording, and options for opening it.
#[derive(Clone, Debug)]
pub(crate) struct SourceArgs {
    /// `-` is the standard input; `None` is the bundled recording.
    pub(crate) recording: Option<PathBuf>,
    pub(crate) opening: OpeningArgs,
}

/// Arguments that name several recordings, and options for opening them.
#[derive(Debug, clap::Args)]
pub(crate) struct SourcesArgs {
    /// Recording to read, of any known format; `-` is the standard input. For several recordings, or a folder
    /// with .pgtrace files, prints a line for each and a summary [default: the bundled one]
    #[arg(value_name = "RECORDING", value_hint = ValueHint::AnyPath)]
    pub(crate) recordings: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) opening: OpeningArgs,
}

impl SourcesArgs {
    /// Returns the recording that the user named, or the bundled recording if the user named none.
    pub(crate) fn single(&self) -> SourceArgs {
        SourceArgs { recording: self.recordings.first().cloned(), opening: self.opening.clone() }
    }
}

/// Options for opening a recording.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct OpeningArgs {
    /// Skip damaged lines, samples and ring-buffer pages, read a truncated .gz, .xz, .zst or perf.data up
    /// to its end, and count the missing events as lost
    #[arg(long, help_heading = "Reading")]
    pub(crate) lenient: bool,
    /// Read a damaged .pgtrace up to the damage, and count all later events as lost
    #[arg(long, help_heading = "Reading")]
    pub(crate) recover: bool,
}

/// Options for a machine other than the recorded one.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct MachineArgs {
    /// Machine to use, instead of the recorded one: a file as `pageset convert --to layout` writes it, or a
    /// copy of /proc/zoneinfo
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) layout: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) facts: MachineFacts,
}

/// Options for facts about a machine that neither a text of events nor a copy of /proc/zoneinfo contains.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct MachineFacts {
    /// Size of a page, such as 4K, 16K or 64K: `getconf PAGESIZE` prints it, /proc/zoneinfo does not
    #[arg(long, value_name = "SIZE", value_parser = page_size)]
    pub(crate) page_size: Option<u32>,
    /// CPUs of each node, such as 0=0-3,1=4-7: `lscpu` prints them, /proc/zoneinfo does not
    #[arg(long, value_name = "LIST", value_parser = node_cpus)]
    pub(crate) node_cpus: Option<LayoutOptions>,
}

impl MachineFacts {
    /// Turns the facts about the machine into options for reading a layout.
    pub(crate) fn options(&self) -> LayoutOptions {
        let options = self.node_cpus.clone().unwrap_or_default();
        match self.page_size {
            Some(bytes) => options.page_size(bytes),
            None => options,
        }
    }
}

/// Parses the size of a page, such as `64K` or `65536`, in bytes.
fn page_size(typed: &str) -> Result<u32, String> {
    let (digits, unit) = match typed.trim_end_matches("iB").strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1 << 10),
        None => (typed, 1),
    };
    let bytes = digits.parse::<u32>().ok().and_then(|number| number.checked_mul(unit));
    let is_size = |bytes: &u32| bytes.is_power_of_two() && (4096..=1 << 20).contains(bytes);
    bytes.filter(is_size).ok_or_else(|| "use a power of two from 4K to 1024K, such as 64K".to_owned())
}

fn node_cpus(typed: &str) -> Result<LayoutOptions, String> {
    LayoutOptions::new().node_cpus(typed)
}

/// Options for writing a result.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct OutputArgs {
    /// How to write the result: `table` is for people, 80 columns of plain ASCII; other formats have all
    /// digits
    #[arg(short, long, default_value = "table", help_heading = "Output", value_name = "FORMAT")]
    #[arg(value_parser = one_of(Format::ALL.map(|format| (format.name(), format))))]
    format: Format,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// Options for writing rows, also in formats that store columns.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RowsOutputArgs {
    /// How to write the result: `table` is for people, 80 columns of plain ASCII; other formats have all
    /// digits
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

    /// Writes rows as Parquet or Arrow. Returns any other format, so that the caller prints the rows.
    pub(crate) fn write_rows(
        self,
        rows: impl FnOnce() -> Table,
        provenance: &Provenance,
        out: &mut dyn Write,
    ) -> Result<Option<Format>> {
        match self {
            Self::Columnar(format) => {
                format.write_table(&rows().with_provenance(provenance.clone()), out)?;
                Ok(None)
            }
            Self::Printed(format) => Ok(Some(format)),
        }
    }
}

impl RowsOutputArgs {
    /// Returns an error for a format that this build cannot write, and for Parquet or Arrow on a terminal.
    /// Subcommands call this function before hours of work go into the result.
    pub(crate) fn check(&self) -> Result<()> {
        let RowsFormat::Columnar(format) = self.format else { return Ok(()) };
        format.check()?;
        if self.target.output.is_none() && io::stdout().is_terminal() {
            bail!("{} is not for a terminal: name a file with --output", format.name());
        }
        Ok(())
    }

    /// The format for the result of a single recording, which is not a row.
    pub(crate) fn of_one(&self) -> Result<Format> {
        match self.format {
            RowsFormat::Printed(format) => Ok(format),
            RowsFormat::Columnar(format) => bail!(
                "{} has a row for each recording: name a folder or several recordings, or use --format json",
                format.name()
            ),
        }
    }
}

/// Options that name the file for a result.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct TargetArgs {
    /// Write to FILE instead of the standard output; FILE appears only when it is complete
    #[arg(short, long, value_name = "FILE", help_heading = "Output", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Replace files that exist
    #[arg(long, help_heading = "Output")]
    force: bool,
}

impl TargetArgs {
    /// Makes the options that name this file; `None` is the standard output.
    pub(crate) const fn to(output: Option<PathBuf>, force: bool) -> Self {
        Self { output, force }
    }

    /// Whether the result replaces a file that exists.
    pub(crate) fn existing(&self) -> Existing {
        if self.force { Existing::Replace } else { Existing::Refuse }
    }
}

impl OutputArgs {
    pub(crate) fn format(&self) -> Format {
        self.format
    }
}

/// The number of jobs that the user wants, or one for each CPU of this machine.
pub(crate) fn jobs(asked: Option<u16>) -> usize {
    asked.map_or_else(pageset_study::jobs_of_this_machine, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_size_that_pages_have() {
        for (typed, bytes) in
            [("4K", 4096), ("64k", 65_536), ("16KiB", 16_384), ("4096", 4096), ("256K", 1 << 18)]
        {
            assert_eq!(page_size(typed), Ok(bytes), "{typed}");
        }
        for wrong in ["", "K", "5K", "2K", "64M", "-4K", "4KB", "4294967296K", "2M"] {
            assert!(page_size(wrong).is_err(), "{wrong}");
        }
    }
}
