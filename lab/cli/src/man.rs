//! `pageset man` prints manual pages, made from the help texts.

use std::fs;

use anyhow::{Context as _, Result};
use clap_mangen::Man;

use crate::args::{ManArgs, definition};
use crate::output;

pub(crate) fn run(args: &ManArgs) -> Result<()> {
    match &args.output {
        None => output::print(|mut out| Ok(Man::new(definition()).render(&mut out)?)),
        Some(directory) => fs::create_dir_all(directory)
            .and_then(|()| clap_mangen::generate_to(definition(), directory))
            .with_context(|| format!("{}: cannot write the pages", directory.display())),
    }
}
