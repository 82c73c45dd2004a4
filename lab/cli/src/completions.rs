//! `pageset completions` prints a script for a shell. A shell that has read the script completes commands and
//! options. The shells bash, zsh and fish also complete names of policies.

use anyhow::Result;

use crate::args::{CompletionsArgs, definition};
use crate::output;

pub(crate) fn run(args: &CompletionsArgs) -> Result<()> {
    output::print(|mut out| {
        clap_complete::generate(args.shell, &mut definition(), "pageset", &mut out);
        Ok(())
    })
}
