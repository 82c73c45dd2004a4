//! `pageset completions` prints scripts for shells, which then complete commands, options and names of policies.

use anyhow::Result;

use crate::args::{CompletionsArgs, definition};
use crate::output;

pub(crate) fn run(args: &CompletionsArgs) -> Result<()> {
    output::print(|mut out| {
        clap_complete::generate(args.shell, &mut definition(), "pageset", &mut out);
        Ok(())
    })
}
