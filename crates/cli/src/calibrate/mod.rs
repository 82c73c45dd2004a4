//! `pageset calibrate`: measures this machine, to choose what suits it.

mod pageops;

use anyhow::Result;
use clap::Subcommand;

use pageops::CalibratePageopsArgs;

/// Measure this machine, and choose what suits it
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, subcommand_help_heading = "Calibrations")]
pub(crate) struct CalibrateArgs {
    #[command(subcommand)]
    calibration: Calibration,
}

/// What can be calibrated.
#[derive(Debug, Subcommand)]
enum Calibration {
    Pageops(CalibratePageopsArgs),
}

pub(crate) fn run(args: &CalibrateArgs) -> Result<()> {
    match &args.calibration {
        Calibration::Pageops(args) => pageops::run(args),
    }
}
