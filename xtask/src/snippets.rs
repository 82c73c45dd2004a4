//! Tests programs of the documentation that are shown with their `[dependencies]`, as if a reader had copied
//! them. Each program becomes a package beside a link to the sources, and is run. A crate without std is
//! built for `x86_64-unknown-none`, and its function `boot` is run on this machine.

use std::fs;
use std::path::Path;

use crate::repository::{root, target, text};
use crate::run::{Context, Result};

const PAGES: [&str; 4] = [
    "docs/book/src/guide/which-allocator.md",
    "kernel/core/README.md",
    "kernel/blocks/README.md",
    "pool/pageset/README.md",
];
/// Number of programs: three on the book's page, and one in each README.
const PROGRAMS: usize = 6;

/// Returns each TOML block with `[dependencies]`, and the Rust block after it.
fn programs(page: &str) -> Vec<(&str, &str)> {
    let blocks = page.split("```toml\n[dependencies]").skip(1);
    blocks
        .filter_map(|block| {
            let (dependencies, rest) = block.split_once("```\n")?;
            let (code, _) = rest.trim_start_matches('\n').strip_prefix("```rust\n")?.split_once("```")?;
            Some((dependencies, code))
        })
        .collect()
}

fn write(path: &Path, content: &str) -> Result {
    let directory = path.parent().expect("a file is in a directory");
    let written = fs::create_dir_all(directory).and_then(|()| fs::write(path, content));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

pub(crate) fn check(context: &Context) -> Result {
    let work = target().join("snippets");
    let link = work.join("pageset");
    fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
    if !link.exists() {
        std::os::unix::fs::symlink(root(), &link).map_err(|error| format!("{}: {error}", link.display()))?;
    }
    let mut count = 0;
    for page in PAGES {
        let text = text(page);
        for (dependencies, code) in programs(&text) {
            count += 1;
            program(context, page, count, dependencies, code)?;
        }
    }
    if count == PROGRAMS { Ok(()) } else { Err(format!("{count} programs found, not {PROGRAMS}")) }
}

fn program(context: &Context, page: &str, number: usize, dependencies: &str, code: &str) -> Result {
    let name = format!("snippet-{number}");
    let package = target().join("snippets").join(&name);
    let is_bare = code.contains("#![no_std]");
    let head =
        format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n");
    write(&package.join("Cargo.toml"), &format!("{head}[dependencies]{dependencies}"))?;
    // Give the program the versions that the workspace is tested with. Cargo adds the newest versions of
    // crates that the workspace lacks.
    write(&package.join("Cargo.lock"), &text("Cargo.lock"))?;
    // Remove a program of the other kind that an earlier run may have left here.
    let _ = fs::remove_dir_all(package.join("src"));
    write(&package.join(if is_bare { "src/lib.rs" } else { "src/main.rs" }), code)?;
    context.say(&format!("{name} of {page}"));
    let cargo = |words: &str| {
        let command = context.command(&format!("cargo {words} --quiet --manifest-path"));
        let command = command.arguments([package.join("Cargo.toml")]);
        command.env("CARGO_TARGET_DIR", target().join("snippets/target"))
    };
    if !is_bare {
        return cargo("run").run();
    }
    let boot = format!("snippet_{number}::boot().unwrap().validate().unwrap()");
    write(&package.join("tests/boot.rs"), &format!("#[test]\nfn boots() {{\n    {boot};\n}}\n"))?;
    cargo("build --target x86_64-unknown-none").run()?;
    cargo("test --test boot").run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_toml_and_rust_behind_it() {
        let page = "a\n```toml\n[dependencies]\nx = \"1\"\n```\n\n```rust\nfn main() {}\n```\n```toml\n[other]\n```\n";
        assert_eq!(programs(page), [("\nx = \"1\"\n", "fn main() {}\n")]);
    }
}
