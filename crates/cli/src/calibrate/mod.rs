//! `pageset calibrate`: measures this machine, to choose what suits it.

mod machine;
mod pageops;

use anyhow::Result;
use clap::Subcommand;

use crate::invocation::Invocation;
use machine::CalibrateMachineArgs;
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
    Machine(CalibrateMachineArgs),
}

pub(crate) fn run(args: &CalibrateArgs, invocation: &Invocation) -> Result<()> {
    match &args.calibration {
        Calibration::Pageops(args) => pageops::run(args, invocation),
        Calibration::Machine(args) => machine::run(args, invocation),
    }
}
