//! The command as one static file, for machines that have no Rust.

use std::path::PathBuf;

use crate::installed;
use crate::repository::target;
use crate::run::{Context, Result};

const TARGET: &str = "x86_64-unknown-linux-musl";

/// Builds it, and sees that it runs and needs no library. Returns its path.
pub(crate) fn build(context: &Context) -> Result<PathBuf> {
    installed::rust_target(context, TARGET)?;
    // Compression libraries are C.
    installed::programs(context, &[("musl-gcc", "musl-tools"), ("file", "file")])?;
    context.run(&format!("cargo build --profile dist --target {TARGET} --package pageset-cli"))?;
    let program = target().join(TARGET).join("dist/pageset");
    let kind = context.command("file --brief").arguments([&program]).output()?;
    context.say(kind.trim());
    if !kind.contains("static") {
        return Err(format!("{} is not static: {kind}", program.display()));
    }
    // Without the host's libraries and environment.
    let run =
        context.command("env --ignore-environment").arguments([&program]).arguments(["replay"]).output()?;
    if !run.contains("linux-6.18") {
        return Err(format!("{} replay prints no table:\n{run}", program.display()));
    }
    let bytes = program.metadata().map_err(|error| format!("{}: {error}", program.display()))?.len();
    context.say(&format!("{}: {:.1} MB", program.display(), bytes as f64 / 1e6));
    Ok(program)
}

pub(crate) fn command() -> Result {
    build(&Context { log: None, arguments: Vec::new() }).map(|_| ())
}
