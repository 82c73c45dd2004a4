//! The legs of the night: what takes too long, or needs too much, for every commit.

use std::fs::{self, File};
use std::sync::Mutex;
use std::time::Instant;

use crate::installed;
use crate::leg::NightLeg;
use crate::repository::{root, target, text};
use crate::run::{Context, Invocation, Result};
use crate::workspace::{packages, published, tested_together};
use crate::{book, dist};

/// In this order: what fails soonest comes first.
pub(crate) const LEGS: &[NightLeg] = &[
    night("examples", 20, false, |context| context.run(&ignored("outside", "examples_that_take_minutes"))),
    night("examples-root", 3, true, |context| context.run(&ignored("outside", "examples_for_root"))),
    night("instructions", 1, false, instructions),
    night("dist", 5, false, |context| dist::build(context).map(|_| ())),
    night("deny", 1, false, deny),
    night("loom", 5, false, loom),
    night("perfetto", 3, false, |context| script(context, "ci/perfetto.sh")),
    night("browser", 5, false, browser),
    night("docs", 5, false, book::prove),
    night("python", 10, false, python),
    night("bench", 5, false, |context| context.run("cargo bench --package pageset-bench -- --test")),
    night("peers", 15, false, peers),
    night("capi", 20, false, |context| script(context, "ci/capi.sh")),
    night("size", 1, false, |context| script(context, "ci/size.sh")),
    night("kernel", 15, false, |context| script(context, "ci/kernel.sh")),
    night("aarch64", 10, false, aarch64),
    night("guest", 30, true, guest),
    night("sanitizers", 15, false, sanitizers),
    night("shuttle", 20, false, shuttle),
    night("soak", 10, false, soak),
    night("faults", 4, true, faults),
    night("settings", 5, true, |context| {
        let tests = "cargo test --release --package pageset-cli --test kernel";
        context.run(&format!("{tests} -- --include-ignored --test-threads 1 advise::"))
    }),
    night("record-cost", 10, true, |context| script(context, "ci/record-cost.sh")),
    night("verdicts", 6, true, |context| script(context, "ci/verdicts.sh")),
    night("scale", 5, false, |context| script(context, "ci/scale.sh")),
    night("first-minutes", 1, true, |context| {
        context.run("cargo test --release --package pageset-cli --test kernel -- --include-ignored first_")
    }),
    night("advise", 20, true, advise),
    night("cluster", 10, false, cluster),
    night("miri", 60, false, miri),
    night("package", 60, false, package),
    night("fuzz", 95, false, |context| script(context, "ci/fuzz.sh")),
];

const fn night(
    name: &'static str,
    minutes: u32,
    is_for_root: bool,
    work: fn(&Context) -> Result,
) -> NightLeg {
    NightLeg { name, minutes, is_for_root, work }
}

fn script(context: &Context, path: &str) -> Result {
    context.command(path).arguments(&context.arguments).run()
}

/// The file that is shipped, alone on Debian's kernels. `-- VERSION...` says which.
fn guest(context: &Context) -> Result {
    let program = dist::build(context)?;
    let boots = context.command("ci/guest.sh").arguments(&context.arguments);
    boots.env("PAGESET", program.to_string_lossy().as_ref()).run()
}

fn ignored(test: &str, name: &str) -> String {
    format!("cargo test --release --package pageset-cli --test {test} -- --ignored {name}")
}

/// An argument of the leg, or what it is without.
fn argument<'a>(context: &'a Context, otherwise: &'a str) -> &'a str {
    context.arguments.first().map_or(otherwise, String::as_str)
}

/// Flags of the user, and one more.
fn rust_flags(more: &str) -> String {
    format!("{} {more}", std::env::var("RUSTFLAGS").unwrap_or_default()).trim().to_owned()
}

/// Instructions of the fast paths, compared with `bench/instructions.golden`. `-- --bless` writes the file.
/// Sequences are counted in the disassembly, the rest under valgrind; the counts are those of x86-64.
pub(crate) fn instructions(context: &Context) -> Result {
    if !cfg!(target_arch = "x86_64") {
        context.say("NOT COUNTED: the counts are those of x86-64");
        return Ok(());
    }
    // Without root, what is missing stays missing, and the program says what it has not counted.
    if let Err(error) = installed::programs(context, &[("objdump", "binutils"), ("valgrind", "valgrind")]) {
        context.say(&format!("NOT ALL IS COUNTED: {error}"));
        if !context.command("objdump --version").succeeds() {
            return Ok(());
        }
    }
    // Flags of one's own would change the counts.
    let command =
        context.command("cargo run --quiet --profile dist --package pageset-bench --bin instructions --");
    command
        .arguments(&context.arguments)
        .without_env("RUSTFLAGS")
        .without_env("CARGO_ENCODED_RUSTFLAGS")
        .run()
}

/// Licences, advisories and sources of all dependencies, against `deny.toml`.
fn deny(context: &Context) -> Result {
    installed::cargo_program(context, "cargo-deny", "0.20.2", "")?;
    // The advisories come from the network; without them the other checks still say something.
    if context.run("cargo deny fetch db").is_ok() {
        return context.run("cargo deny --workspace check");
    }
    context.say("no advisory database: advisories are NOT checked");
    context.run("cargo deny --workspace check bans licenses sources")
}

/// Memory orderings: every outcome that the language allows, on small tables, and for pairs of operations at
/// one pageblock.
fn loom(context: &Context) -> Result {
    let flags = rust_flags("--cfg loom");
    let command = |line: &str| context.command(line).env("RUSTFLAGS", &flags);
    for package in packages()?.iter().filter(|package| package.tests.iter().any(|test| test == "loom")) {
        command(&format!("cargo test --release --package {} --test loom", package.name)).run()?;
    }
    command("cargo test --release --package pageset-blocks --lib -- rows::races").run()
}

/// Pages of `pageset report` in a browser. `-- pictures DIR` makes pictures instead.
fn browser(context: &Context) -> Result {
    installed::programs(context, &[("npm", "npm"), ("chromium", "chromium")])?;
    script(context, "ci/browser.sh")
}

/// The same work on other allocators: that its programs are right, not that they are fast.
fn peers(context: &Context) -> Result {
    installed::programs(context, &[("cmake", "cmake"), ("g++", "g++")])?;
    context.run("cargo clippy --profile dist --package pageset-peers --all-targets -- -D warnings")?;
    context.run("cargo test --profile dist --package pageset-peers")
}

/// The core and the page operations under an emulated processor of another architecture.
///
/// Shuttle's tests stay out: shuttle decides itself who runs next, so a schedule is the same on every
/// architecture.
fn aarch64(context: &Context) -> Result {
    let target = "aarch64-unknown-linux-gnu";
    installed::programs(
        context,
        &[
            ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"),
            ("qemu-aarch64", "qemu-user"),
        ],
    )?;
    installed::rust_target(context, target)?;
    let tests = |package: &str, options: &str| {
        let command = context.command(&format!("cargo test --package {package} --target {target} {options}"));
        command
            .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc")
            .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu")
            // Emulation is some twenty times slower; `full` plays more cases.
            .default_env("PROPTEST_CASES", "5")
            .run()
    };
    tests("pageset-pageops", "")?;
    let packages = packages()?;
    let core =
        packages.iter().find(|package| package.name == "pageset-core").ok_or("no crate pageset-core")?;
    let names = core.tests.iter().filter(|test| !test.starts_with("shuttle"));
    let names: Vec<_> = names.map(|test| format!("--test {test}")).collect();
    tests("pageset-core", &format!("--all-features --lib {}", names.join(" ")))
}

/// The pool, the page operations and (threads) our own allocator, with a standard library that is
/// instrumented too.
///
/// Sanitizers do not see instructions that are written by hand. So the page operations' tests run between
/// inaccessible pages, and ThreadSanitizer looks at the pool without restartable sequences: everything goes
/// through its locked arrays.
fn sanitizers(context: &Context) -> Result {
    installed::nightly(context, &["rust-src"])?;
    let all = ["address".to_owned(), "thread".to_owned()];
    let chosen = if context.arguments.is_empty() { &all[..] } else { &context.arguments };
    for sanitizer in chosen {
        let is_thread = sanitizer == "thread";
        let sanitized = |rest: &str| {
            let line = "cargo +nightly test -Zbuild-std --target x86_64-unknown-linux-gnu --package";
            let options =
                |name: &str, more: &str| format!("{}:{more}", std::env::var(name).unwrap_or_default());
            let command = context
                .command(&format!("{line} {rest}"))
                .env("RUSTFLAGS", rust_flags(&format!("-Zsanitizer={sanitizer}")))
                .env("CARGO_TARGET_DIR", target().join("sanitizers").join(sanitizer))
                // Children of some tests die of a bad access, and the tests look at the signal.
                .env("ASAN_OPTIONS", options("ASAN_OPTIONS", "handle_segv=0:handle_sigbus=0"))
                // Children of a process with threads go on.
                .env("TSAN_OPTIONS", options("TSAN_OPTIONS", "die_after_fork=0:handle_segv=0"))
                .default_env("PAGESET_ROUNDS", "2000");
            if is_thread { command.env("PAGESET_RSEQ", "0").run() } else { command.run() }
        };
        // The sanitizer's own code uses the registers that this test watches.
        sanitized("pageset-pageops --lib --tests -- --skip no_loop_changes_a_vector_register")?;
        if is_thread {
            // Our own allocator's threads share nothing but atomics.
            sanitized("pageset-blocks --test outside -- threads")?;
        }
        // A sanitizer's own memory does not fit into the address space that the first of these leaves, and
        // the second counts it.
        sanitized(
            "pageset --lib --tests --no-fail-fast -- --skip exhausted_address_space_is_said \
             --skip tables_that_are_not_used_take_no_memory",
        )?;
    }
    Ok(())
}

/// Concurrent use under shuttle, which decides at every lock or atomic which thread runs next. `-- SCHEDULES`
/// says how many.
fn shuttle(context: &Context) -> Result {
    let schedules = argument(context, "100000");
    let with_atomics = rust_flags("--cfg shuttle");
    for package in packages()? {
        // In crates that can, every atomic operation is a choice of shuttle's.
        let has_atomics = text(&format!("{}/Cargo.toml", package.directory)).contains("cfg(shuttle)");
        let flags = if has_atomics { with_atomics.clone() } else { rust_flags("") };
        for test in package.tests.iter().filter(|test| test.starts_with("shuttle")) {
            let line =
                format!("cargo test --release --package {} --all-features --test {test}", package.name);
            context.command(&line).env("RUSTFLAGS", &flags).env("SHUTTLE_ITERATIONS", schedules).run()?;
        }
    }
    let apart = |line: &str| {
        let command =
            context.command(line).env("RUSTFLAGS", &with_atomics).env("SHUTTLE_ITERATIONS", schedules);
        command.env("CARGO_TARGET_DIR", target().join("shuttle")).run()
    };
    // Pairs of operations at one pageblock's frames, in every order of their steps.
    apart("cargo test --release --package pageset-blocks --all-features --lib -- rows::races")?;
    // The pool's arrays use shuttle's atomics in a build of their own.
    apart("cargo test --release --package pageset --lib -- arrays::locked")
}

/// Torture for ten minutes, or `-- SECONDS`; 8 is a smoke test. The pool: threads on changing CPUs, frees by
/// other threads, trims, resizes and forks in the middle. Our own allocator: four threads on all operations.
fn soak(context: &Context) -> Result {
    let seconds: u64 =
        argument(context, "600").parse().map_err(|_| "say for how many seconds, as in `-- 60`")?;
    context.run("cargo test --release --package pageset --test torture --test fork --no-run")?;
    context.run("cargo test --release --package pageset-blocks --test outside --no-run")?;
    // The three tortures of the pool in a round run at once; our own allocator's follows, half as long.
    let each = if seconds < 90 { seconds * 2 / 3 } else { 60 };
    let test = |line: &str, seconds: u64| {
        context.command(line).env("PAGESET_SOAK_SECONDS", seconds.to_string()).run()
    };
    let start = Instant::now();
    while start.elapsed().as_secs() < seconds {
        test("cargo test --release --package pageset --test torture -- --nocapture", each)?;
        test("cargo test --release --package pageset --test fork", each)?;
        test("cargo test --release --package pageset-blocks --test outside -- threads", each / 2)?;
    }
    Ok(())
}

/// Bugs that were found and need root, or a machine without huge pages in use.
fn faults(context: &Context) -> Result {
    let directory = python_package(context, "dev", &interpreters(context)[..1])?;
    let all = tested_together(&packages()?);
    let line = format!("cargo test {all} --no-fail-fast fault_ -- --ignored --test-threads 1");
    context.command(&line).env("PAGESET_PYTHON", format!("{directory}/bin/python")).run()
}

/// Forecasts against this machine: six loads under five settings, three times each, recorded in turn. Prints
/// a table in Markdown: coverage by load, setting, width, and by whether the machine was quiet. `-- FOLDER`
/// keeps the recordings.
///
/// A busy machine measures its other work, too, and each recording that was not quiet is made twice.
fn advise(context: &Context) -> Result {
    context.run("cargo build --release --package pageset-cli")?;
    let all = packages()?;
    let has_it = |directory: &str| root().join(directory).join("examples/coverage.rs").exists();
    let package =
        all.iter().find(|package| has_it(&package.directory)).ok_or("no crate has the example coverage")?;
    context.run(&format!("cargo build --release --package {} --example coverage", package.name))?;
    let release = target().join("release");
    let release = release.display();
    context.run(&format!("{release}/pageset record --check"))?;
    let own = target().join("advise").display().to_string();
    let folder = argument(context, &own);
    fs::create_dir_all(root().join(folder)).map_err(|error| format!("{folder}: {error}"))?;
    // All recordings first: forecasts are work, too.
    context.run(&format!("python3 ci/advise/record.py {release}/pageset {folder}"))?;
    context.say(&crate::machine::description());
    context.run(&format!("{release}/examples/coverage {folder} --rows"))
}

/// A sweep of 2 000 runs on a Dask cluster of processes; workers and the scheduler are killed. `-- RUNS`
/// sweeps so many; `-- cost RUNS...` compares the cost of a run with that in one process.
fn cluster(context: &Context) -> Result {
    let interpreters = interpreters(context);
    let python = interpreters.first().ok_or("no Python from 3.11 on")?;
    let first = installed::python_environment(context, python, "build", &["maturin"])?;
    let wheel = wheel(context, &first, "dev")?;
    let directory = installed::python_environment(context, python, "cluster", &["distributed", "duckdb"])?;
    context.run(&format!("{directory}/bin/pip install --quiet --no-deps --force-reinstall {wheel}"))?;
    let words = if context.arguments.is_empty() { "2000".to_owned() } else { context.arguments.join(" ") };
    context.run(&format!("{directory}/bin/python -P ci/cluster/proof.py {words}"))
}

/// Packages that tests of the Python package use.
const PYTHON_TESTS: [&str; 11] = [
    "pytest",
    "numpy",
    "polars",
    "pandas",
    "pyarrow",
    "duckdb",
    "altair",
    "tqdm",
    "nbclient",
    "ipykernel",
    "matplotlib",
];

/// The interpreters that start, oldest first: those that `PYTHONS` names, or those that the package supports.
fn interpreters(context: &Context) -> Vec<String> {
    let named = std::env::var("PYTHONS").unwrap_or_default();
    let named =
        if named.is_empty() { "python3.11 python3.12 python3.13 python3.14".to_owned() } else { named };
    let starts = |python: &&str| context.command(&format!("{python} --version")).succeeds();
    named.split_whitespace().filter(starts).map(str::to_owned).collect()
}

/// Builds the wheel. Returns its path.
fn wheel(context: &Context, environment: &str, profile: &str) -> Result<String> {
    let wheels = target().join(format!("wheels-{profile}"));
    if wheels.exists() {
        fs::remove_dir_all(&wheels).map_err(|error| format!("{}: {error}", wheels.display()))?;
    }
    let line = format!(
        "{environment}/bin/maturin build --manifest-path pool/python/Cargo.toml --profile {profile} --out"
    );
    context.command(&line).arguments([&wheels]).env("CARGO_TARGET_DIR", target()).run()?;
    let made = fs::read_dir(&wheels).ok().and_then(|mut entries| entries.next()?.ok());
    Ok(made.ok_or("maturin made no wheel")?.path().display().to_string())
}

/// Builds the Python package, and tests it under each of these interpreters. Returns the environment of the
/// first.
fn python_package(context: &Context, profile: &str, interpreters: &[String]) -> Result<String> {
    let first = interpreters.first().ok_or("no Python from 3.11 on: install one, or set PYTHONS")?;
    let name = |python: &str| python.rsplit('/').next().unwrap_or(python).to_owned();
    let more = ["maturin", "mypy", "distributed"];
    let packages = [&more[..], &PYTHON_TESTS].concat();
    let directory = installed::python_environment(context, first, &name(first), &packages)?;
    let wheel = wheel(context, &directory, profile)?;
    for python in interpreters {
        let its = installed::python_environment(context, python, &name(python), &PYTHON_TESTS)?;
        context.run(&format!("{its}/bin/pip install --quiet --no-deps --force-reinstall {wheel}"))?;
        context.command(&format!("{its}/bin/python -P -m pytest")).directory("pool/python").run()?;
    }
    let python =
        |line: &str| context.command(&format!("{directory}/bin/{line}")).directory("pool/python").run();
    python("mypy -p pageset")?;
    python("mypy tests")?;
    // Before Python 3.12 a class does not show that it has the buffer protocol.
    let hidden = target().join("python/hidden.txt");
    let names = "pageset._native.Pages.__buffer__\npageset._native.Pages.__release_buffer__\n";
    fs::write(&hidden, names).map_err(|error| format!("{}: {error}", hidden.display()))?;
    let stubs =
        "python -P -m mypy.stubtest pageset --mypy-config-file pyproject.toml --ignore-unused-allowlist";
    python(&format!("{stubs} --allowlist {}", hidden.display()))?;
    Ok(directory)
}

/// The crates that this leg tests, as `package.metadata.ci.leg` says.
fn crates_for_python(context: &Context) -> Result {
    let packages = packages()?;
    let its = packages.iter().filter(|package| package.leg.as_deref() == Some("python"));
    let its: Vec<_> = its.map(|package| format!("--package {}", package.name)).collect();
    context.run(&format!("cargo clippy {} --all-targets -- -D warnings", its.join(" ")))?;
    // An extension of Python's has no tests of its own that could be linked.
    context.run("cargo test --package pageset-arrow")
}

/// For `full`: the first Python that is here.
pub(crate) fn python_once(context: &Context) -> Result {
    if interpreters(context).is_empty() {
        installed::programs(context, &[("python3.11", "python3 python3-venv")])?;
    }
    let interpreters = interpreters(context);
    python_package(context, "dev", &interpreters[..interpreters.len().min(1)])?;
    crates_for_python(context)
}

/// Every Python that the package supports and that is here. `-- wheel` takes the wheel that is shipped.
fn python(context: &Context) -> Result {
    let profile = if argument(context, "") == "wheel" { "dist" } else { "dev" };
    python_package(context, profile, &interpreters(context))?;
    crates_for_python(context)
}

/// Whether the crates can be published as they are; nothing is uploaded. Packs each, builds it from its
/// tarball and nothing else, tests all tarballs together, builds every combination of features and the
/// documentation as docs.rs does, and builds with the oldest Rust that each crate names. Says what changed
/// for users since the commit in `ci/semver.baseline`.
///
/// `-- PART...` runs these: pack, test, features, oldest, docs, semver.
fn package(context: &Context) -> Result {
    let all = ["pack", "test", "features", "oldest", "docs", "semver"].map(str::to_owned);
    let parts = if context.arguments.is_empty() { &all[..] } else { &context.arguments };
    let packages = packages()?;
    let names = published(&packages);
    for part in parts {
        match part.as_str() {
            // Cargo builds each from its tarball, with the others from theirs.
            "pack" => context.run(&format!("cargo package {names} --all-features"))?,
            "test" => {
                let manifest = unpack(context)?;
                let command = context
                    .command(&format!("cargo test --workspace --all-features --manifest-path {manifest}"));
                command.arguments(["--target-dir"]).arguments([target()]).run()?;
            }
            "features" => {
                installed::cargo_program(context, "cargo-hack", "0.6.46", "")?;
                context.run(&format!("cargo hack check {names} --feature-powerset"))?;
            }
            "oldest" => {
                let mut versions: Vec<_> = packages.iter().map(|package| &package.rust_version).collect();
                versions.sort();
                versions.dedup();
                for version in versions {
                    let its = packages
                        .iter()
                        .filter(|package| package.is_published && package.rust_version == *version);
                    let its: Vec<_> = its.map(|package| format!("--package {}", package.name)).collect();
                    context.run(&format!(
                        "rustup toolchain install {version} --profile minimal --no-self-update"
                    ))?;
                    context.run(&format!("cargo +{version} check {} --all-features", its.join(" ")))?;
                }
            }
            "docs" => {
                installed::nightly(context, &[])?;
                let command =
                    context.command(&format!("cargo +nightly doc {names} --all-features --no-deps"));
                command.env("RUSTDOCFLAGS", "--cfg docsrs -D warnings").run()?;
            }
            "semver" => {
                installed::cargo_program(context, "cargo-semver-checks", "0.51.0", "")?;
                let baseline = text("ci/semver.baseline");
                let baseline = baseline.trim();
                // A crate that did not exist then has no users yet.
                let existed = |directory: &str| {
                    context.command(&format!("git cat-file -e {baseline}:{directory}/Cargo.toml")).succeeds()
                };
                let its =
                    packages.iter().filter(|package| package.is_published && existed(&package.directory));
                let its: Vec<_> = its.map(|package| format!("--package {}", package.name)).collect();
                let line =
                    format!("cargo semver-checks {} --all-features --baseline-rev {baseline}", its.join(" "));
                context.run(&line)?;
            }
            other => return Err(format!("no part `{other}`: use {}", all.join(", "))),
        }
    }
    Ok(())
}

/// The tarballs as a workspace, where the repository has their directories: what is in no tarball is missed
/// there. Tests of recordings and published tables read the repository's, which are larger than tarballs
/// should be. Returns its manifest.
fn unpack(context: &Context) -> Result<String> {
    let unpacked = target().join("tarballs");
    let failed = |error: std::io::Error| format!("{}: {error}", unpacked.display());
    if unpacked.exists() {
        fs::remove_dir_all(&unpacked).map_err(failed)?;
    }
    let mut manifest = "[workspace]\nresolver = \"3\"\nmembers = [".to_owned();
    let mut patches = "]\n[patch.crates-io]\n".to_owned();
    for package in packages()?.iter().filter(|package| package.is_published) {
        let packed = format!("{}-{}", package.name, package.version);
        let place = unpacked.join(&package.directory);
        fs::create_dir_all(place.parent().expect("it is below")).map_err(failed)?;
        let tarball = target().join("package").join(format!("{packed}.crate"));
        let command = context.command("tar --extract --gzip --file").arguments([&tarball]);
        command.arguments(["--directory"]).arguments([&unpacked]).run()?;
        fs::rename(unpacked.join(&packed), &place).map_err(failed)?;
        manifest.push_str(&format!("\"{}\", ", package.directory));
        patches.push_str(&format!("{} = {{ path = \"{}\" }}\n", package.name, package.directory));
    }
    for directory in ["data", "docs", "machines", "studies"] {
        std::os::unix::fs::symlink(root().join(directory), unpacked.join(directory)).map_err(failed)?;
    }
    context.say("tests read data, docs, machines and studies of the repository, which are in no tarball");
    for file in ["Cargo.lock", "rust-toolchain.toml"] {
        fs::copy(root().join(file), unpacked.join(file)).map_err(failed)?;
    }
    fs::write(unpacked.join("Cargo.toml"), manifest + &patches).map_err(failed)?;
    Ok(unpacked.join("Cargo.toml").display().to_string())
}

/// One part of miri's leg: its name, the crate with features, and the choice of its tests.
type MiriPart = (&'static str, &'static str, &'static str);

const CORE: &str = "pageset-core --all-features";
/// The long ones first.
///
/// The golden vectors stay out: they are thousands of recorded steps, hours under miri, over code that other
/// tests run. So do shuttle's tests, which switch stacks themselves, and those from outside that move
/// thousands of frames.
const MIRI: [MiriPart; 15] = [
    ("unit", CORE, "--lib -- --skip golden --skip vectors --skip bad_page"),
    // The portable kernel; others are not known to miri, and say that they are skipped.
    ("pageops-outside", "pageset-pageops", "--test outside -- bytes:: poison::"),
    ("invariants", CORE, "--test outside -- invariants::"),
    ("block_of", CORE, "--test outside -- block_of::"),
    // Finds of old, each under all policies on thousands of frames, stay out: hours.
    ("model", CORE, "--test outside -- model::every_policy"),
    // Both that are skipped fill a zone frame by frame, and look at all events each time.
    ("examples", CORE, "--test outside -- examples:: --skip examples::e14 --skip examples::e15"),
    ("bad_page", CORE, "--lib -- bad_page"),
    // A machine of 32 bits, where counts are narrower.
    (
        "32-bit",
        CORE,
        "--lib --target i686-unknown-linux-gnu -- count:: ids:: zone::span zone::gauges bad_page",
    ),
    ("pool-torture", "pageset", "--test torture"),
    ("pool-unit", "pageset", "--lib"),
    ("errors", CORE, "--test outside -- errors:: statics:: interrupts::"),
    // Four threads on all operations.
    ("blocks-threads", "pageset-blocks", "--test outside -- threads:: errors::"),
    ("blocks-unit", "pageset-blocks", "--lib"),
    ("pageops-unit", "pageset-pageops", "--lib"),
    // The smallest, for a first look.
    ("smoke", CORE, "--lib -- ids:: frame:: storage:: zone::span zone::gauges"),
];

/// A command of miri's. Unit tests leak the tables that they lend to the allocator, which has no heap of its
/// own to leak: leaks are ignored. Random tests write their failures to disk, which isolation forbids; few
/// cases, since miri is some hundred times slower than the machine.
fn miri_command<'a>(context: &'a Context, line: &str) -> Invocation<'a> {
    let flags = "-Zmiri-disable-isolation -Zmiri-strict-provenance -Zmiri-ignore-leaks";
    let flags = format!("{} {flags}", std::env::var("MIRIFLAGS").unwrap_or_default());
    let command = context.command(&format!("cargo +nightly miri test --package {line}"));
    // Miri's build of the standard library and of the crates stays apart from the ordinary one.
    command
        .env("MIRIFLAGS", flags.trim())
        .default_env("PROPTEST_CASES", "1")
        .env("CARGO_TARGET_DIR", target().join("miri"))
}

/// Undefined behaviour that tests alone do not show. The allocators have no unsafe code; this checks that
/// dependencies and the tests' locks are used rightly and that nothing overflows on the way. The pool's runs
/// with memory from the heap and arrays under locks, since miri has neither mmap nor restartable sequences.
/// `-- PART...` runs these parts.
fn miri(context: &Context) -> Result {
    installed::nightly(context, &["miri", "rust-src"])?;
    let wanted = |part: &&MiriPart| {
        context.arguments.is_empty() || context.arguments.iter().any(|name| name == part.0)
    };
    let parts: Vec<_> = MIRI.iter().filter(wanted).collect();
    if parts.is_empty() {
        let names: Vec<_> = MIRI.iter().map(|part| part.0).collect();
        return Err(format!("miri has the parts {}", names.join(", ")));
    }
    // Built first, by one at a time, so that the times of the parts are those of their tests.
    for (_, package, tests) in &parts {
        let built = tests.split(" -- ").next().unwrap_or_default();
        miri_command(context, &format!("{package} {built} --no-run")).run()?;
    }
    let queue = Mutex::new(parts.into_iter());
    let failed = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("no worker panics with it").next();
                    let Some((name, package, tests)) = next else { return };
                    if let Err(error) = miri_part(context, name, &format!("{package} {tests}")) {
                        context.say(&format!("miri, {name}: FAILED: {error}"));
                        failed.lock().expect("no worker panics with it").push(error);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no worker panics with it");
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

/// Runs a part, which prints to a file of its own.
fn miri_part(context: &Context, name: &str, line: &str) -> Result {
    let path = target().join("miri").join(format!("{name}.log"));
    let log = File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let start = Instant::now();
    let outcome = miri_command(&Context { log: Some(log), arguments: Vec::new() }, line).run();
    let said = fs::read_to_string(&path).unwrap_or_default();
    if let Err(error) = outcome {
        context.say(&said);
        return Err(error);
    }
    // A filter that fits no test proves nothing.
    if said.lines().any(|line| line.starts_with("running 0 tests")) {
        return Err(format!("no test of `{line}`"));
    }
    context.say(&format!("miri, {name}: {:.0} s", start.elapsed().as_secs_f64()));
    Ok(())
}
