//! `pageset export`: a trace in the formats of other programs.

mod perfetto;

use anyhow::Result;
use clap::Subcommand;

use perfetto::PerfettoArgs;

/// Write a trace in a format of another program
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct ExportArgs {
    #[command(subcommand)]
    format: Exported,
}

/// The formats.
#[derive(Debug, Subcommand)]
enum Exported {
    Perfetto(PerfettoArgs),
}

pub(crate) fn run(args: &ExportArgs) -> Result<()> {
    match &args.format {
        Exported::Perfetto(args) => perfetto::run(args),
    }
}
