//! `pageset completions`: what a shell needs to complete commands, options and names of policies.

use anyhow::Result;
use clap::CommandFactory as _;

use crate::args::{Args, CompletionsArgs};
use crate::output;

pub(crate) fn run(args: &CompletionsArgs) -> Result<()> {
    // Into memory first: the generator panics where a pipe ends early.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "pageset", &mut script);
    output::write(None, |out| Ok(out.write_all(&script)?))
}
