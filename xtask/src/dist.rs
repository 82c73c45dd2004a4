//! Builds the command `pageset` as one static file, for machines that have no Rust.

use std::fs;
use std::path::PathBuf;

use crate::installed;
use crate::repository::target;
use crate::run::{Context, Result};

const TARGET: &str = "x86_64-unknown-linux-musl";

/// Builds the static file, and checks that it runs in an empty root directory. Returns the file's path.
pub(crate) fn build(context: &Context) -> Result<PathBuf> {
    installed::rust_target(context, TARGET)?;
    // Compression libraries are C.
    installed::programs(context, &[("musl-gcc", "musl-tools"), ("unshare", "util-linux")])?;
    context.run(&format!("cargo build --profile dist --target {TARGET} --package pageset-cli"))?;
    let program = target().join(TARGET).join("dist/pageset");
    let shown = program.display();
    let bytes = fs::metadata(&program).map_err(|error| format!("{shown}: {error}"))?.len();
    context.say(&format!("{shown}: {:.1} MB", bytes as f64 / 1e6));
    // The new root directory has no library and no /proc, and the environment is empty.
    let alone = target().join("alone");
    let copied = fs::create_dir_all(&alone).and_then(|()| fs::copy(&program, alone.join("pageset")));
    copied.map_err(|error| format!("{}: {error}", alone.display()))?;
    if !context.command("unshare --map-root-user true").succeeds() {
        context.say("NOT RUN: this system gives no program a root directory of its own");
        return Ok(program);
    }
    let run = context.command("env --ignore-environment unshare --map-root-user --root").arguments([&alone]);
    let table = run.arguments(["/pageset", "replay"]).output()?;
    if !table.contains("linux-6.18") {
        return Err(format!("{shown} replay prints no table:\n{table}"));
    }
    Ok(program)
}

pub(crate) fn command() -> Result {
    build(&Context { log: None, arguments: Vec::new() }).map(|_| ())
}
