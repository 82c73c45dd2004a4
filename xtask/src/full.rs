//! The legs of the gates `quick` and `full`.

use std::thread;
use std::time::Duration;

use crate::leg::{Leg, command, leg};
use crate::repository::{root, target};
use crate::workspace::{Package, tested_together};
use crate::{book, circles, installed, night, page_links, snippets, tidy, words};

/// Targets without an operating system. The allocators, the page operations and the fault engine are built
/// for these.
const BARE: [&str; 2] = ["x86_64-unknown-none", "riscv64gc-unknown-none-elf"];
/// 32-bit targets. Only the allocators are built for these, because they need no 64-bit atomics.
const BARE_32: [&str; 2] = ["riscv32imac-unknown-none-elf", "thumbv7em-none-eabi"];

/// What `full` runs.
pub(crate) struct Full {
    /// The legs that run first, one after another.
    pub(crate) first: Vec<Leg>,
    /// Sequences of legs that run at the same time, after `first`.
    pub(crate) beside: Vec<Vec<Leg>>,
}

/// Returns the legs that check the repository's rules. For these legs, only this crate is built.
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
    // In a new target directory, switch incremental compilation off, because preparing for it takes time.
    let is_new = !target().join("debug/incremental").is_dir();
    let fresh = move |line: String| {
        move |context: &crate::run::Context| {
            let command = context.command(&line);
            if is_new { command.default_env("CARGO_INCREMENTAL", "0").run() } else { command.run() }
        }
    };
    let mut first = rules();
    first.push(leg("lints", fresh(format!("cargo clippy {all} --all-targets -- -D warnings"))));
    // Do not build examples here: clippy has checked them above, and linking them takes 10 s. Examples in the
    // documentation run below.
    let build = format!("cargo test {all} --lib --bins --tests --no-run");
    first.push(leg("tests, built", fresh(build)));
    let tests = vec![
        leg("tests", fresh(format!("cargo test {all} --lib --bins --test [!k]*"))),
        leg("examples in documentation", fresh(format!("cargo test {all} --doc"))),
    ];
    // Tests of the running kernel wait most of their time, so they run at the same time as all other tests.
    let kernel = vec![leg("tests of the running kernel", fresh(format!("cargo test {all} --test kernel")))];
    let mut beside = vec![leg("tests begin", |_| {
        // Let the test commands begin first: each checks whether its tests are built, and cargo builds for
        // only one command at a time.
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

/// Returns the legs that build crates for machines without an operating system.
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
        // Enable all features except `observed`, which needs std.
        build("blocks with a heap", "pageset-blocks", target, "--features alloc,line-counts");
    }
    legs
}

/// Checks that the tarball of each published crate has sources, a README and both licences. The gate `night`
/// builds the tarballs.
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
