//! The legs of `quick` and `full`.

use std::thread;
use std::time::Duration;

use crate::leg::{Leg, command, leg};
use crate::repository::{root, target};
use crate::workspace::{Package, tested_together};
use crate::{book, circles, installed, night, page_links, snippets, tidy, words};

/// Targets without an operating system: for the allocators, the page operations and the fault engine.
const BARE: [&str; 2] = ["x86_64-unknown-none", "riscv64gc-unknown-none-elf"];
/// Targets of 32 bits: for the allocators alone, which need no atomics of 64 bits.
const BARE_32: [&str; 2] = ["riscv32imac-unknown-none-elf", "thumbv7em-none-eabi"];

/// What `full` runs.
pub(crate) struct Full {
    /// One after another.
    pub(crate) first: Vec<Leg>,
    /// Then these sequences, beside each other.
    pub(crate) beside: Vec<Vec<Leg>>,
}

/// The repository's own rules; no crate but this one is built for them.
fn rules() -> Vec<Leg> {
    vec![
        leg("setup", installed::toolchain),
        command("format", "cargo fmt --all --check"),
        leg("tidy", |context| {
            tidy::check()?;
            context.run("cargo test --quiet --package xtask")?;
            context.run("cargo clippy --quiet --package xtask --all-targets -- -D warnings")
        }),
        leg("words", |_| words::check()),
        leg("circles", |_| circles::check()),
    ]
}

pub(crate) fn quick(packages: &[Package]) -> Vec<Leg> {
    let all = tested_together(packages);
    let mut legs = rules();
    legs.push(command("lints", format!("cargo clippy {all} --all-targets -- -D warnings")));
    legs.push(command("unit tests", format!("cargo test {all} --lib --bins")));
    legs
}

pub(crate) fn legs(packages: &[Package]) -> Full {
    let all = tested_together(packages);
    // What is built from nothing is not built again step by step: the compiler need not prepare for it.
    let is_new = !target().join("debug/incremental").is_dir();
    let fresh = move |line: String| {
        move |context: &crate::run::Context| {
            let command = context.command(&line);
            if is_new { command.default_env("CARGO_INCREMENTAL", "0").run() } else { command.run() }
        }
    };
    let mut first = rules();
    first.push(leg("lints", fresh(format!("cargo clippy {all} --all-targets -- -D warnings"))));
    // Examples are linted above; to link them too takes 10 s. What the documentation shows is run below.
    let build = format!("cargo test {all} --lib --bins --tests --no-run");
    first.push(leg("tests, built", fresh(build)));
    let tests = vec![
        leg("tests", fresh(format!("cargo test {all} --lib --bins --test [!k]*"))),
        leg("examples in documentation", fresh(format!("cargo test {all} --doc"))),
    ];
    // Tests of the running kernel wait most of their time, so they run beside all others.
    let kernel = vec![leg("tests of the running kernel", fresh(format!("cargo test {all} --test kernel")))];
    let mut beside = vec![leg("tests begin", |_| {
        // Cargo builds one thing at a time: the tests look first whether they are built.
        thread::sleep(Duration::from_secs(5));
        Ok(())
    })];
    beside.extend(bare_metal());
    beside.push(leg("programs of the documentation", snippets::check));
    beside.push(leg("instructions", night::instructions));
    beside.push(leg("documentation", {
        let line = format!("cargo doc {all} --no-deps");
        move |context| {
            let flags = std::env::var("RUSTDOCFLAGS").unwrap_or_default();
            context.command(&line).env("RUSTDOCFLAGS", format!("{flags} -D warnings")).run()
        }
    }));
    beside.push(package_contents(packages));
    beside.push(leg("book", book::build));
    beside.push(leg("links of the book", |_| page_links::check(&root().join("docs/book/book"))));
    beside.push(leg("Python and Arrow", night::python_once));
    Full { first, beside: vec![tests, kernel, beside] }
}

/// Builds for machines without an operating system.
fn bare_metal() -> Vec<Leg> {
    let mut legs = Vec::new();
    let mut build = |what: &str, package: &str, target: &str, features: &str| {
        let line = format!("cargo build --package {package} --target {target} {features}");
        legs.push(command(format!("{what} on {target}"), line));
    };
    for target in BARE {
        build("core", "pageset-core", target, "");
        build("core with a heap", "pageset-core", target, "--all-features");
        build("blocks", "pageset-blocks", target, "");
        build("page operations", "pageset-pageops", target, "");
        build("fault engine", "pageset-fault", target, "");
    }
    for target in BARE_32 {
        build("core with a heap", "pageset-core", target, "--all-features");
        // All features but `observed`, which needs std.
        build("blocks with a heap", "pageset-blocks", target, "--features alloc,line-counts");
    }
    legs
}

/// The tarball of each published crate has sources, a README and both licences. (The night builds it.)
fn package_contents(packages: &[Package]) -> Leg {
    let published: Vec<_> =
        packages.iter().filter(|package| package.is_published).map(|package| package.name.clone()).collect();
    leg("packages, listed", move |context| {
        for name in &published {
            let list =
                context.command(&format!("cargo package --list --allow-dirty --package {name}")).output()?;
            for file in ["Cargo.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE", "src/lib.rs"] {
                if !list.lines().any(|line| line == file) {
                    return Err(format!("`cargo package --list --package {name}` has no {file}"));
                }
            }
            context.say(&format!("{name}: {} files", list.lines().count()));
        }
        Ok(())
    })
}
