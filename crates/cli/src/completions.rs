//! `pageset completions`: what a shell needs to complete commands, options and names of policies.

use anyhow::Result;
use clap::CommandFactory as _;

use crate::args::{Args, CompletionsArgs};
use crate::output;

pub(crate) fn run(args: &CompletionsArgs) -> Result<()> {
    output::print(|mut out| {
        clap_complete::generate(args.shell, &mut Args::command(), "pageset", &mut out);
        Ok(())
    })
}
