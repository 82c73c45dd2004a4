//! The legs of the gate `night`. These legs take too long for every commit, or need programs or rights that
//! not every machine has.

use std::fs::{self, File};
use std::sync::Mutex;
use std::time::Instant;

use crate::installed;
use crate::leg::NightLeg;
use crate::repository::{root, target, text};
use crate::run::{Context, Invocation, Result};
use crate::workspace::{packages, published, tested_together};
use crate::{book, dist};

/// The legs run in this order, the leg that fails soonest first.
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

/// Runs the shipped program on Debian's kernels in virtual machines that have no other program. `--
/// VERSION...` chooses the kernels.
fn guest(context: &Context) -> Result {
    let program = dist::build(context)?;
    let boots = context.command("ci/guest.sh").arguments(&context.arguments);
    boots.env("PAGESET", program.to_string_lossy().as_ref()).run()
}

fn ignored(test: &str, name: &str) -> String {
    format!("cargo test --release --package pageset-cli --test {test} -- --ignored {name}")
}

/// Returns the leg's first argument, or `otherwise` if there is none.
fn argument<'a>(context: &'a Context, otherwise: &'a str) -> &'a str {
    context.arguments.first().map_or(otherwise, String::as_str)
}

/// Returns the user's `RUSTFLAGS` with one flag more.
fn rust_flags(more: &str) -> String {
    format!("{} {more}", std::env::var("RUSTFLAGS").unwrap_or_default()).trim().to_owned()
}

/// Counts the instructions of fast paths on x86-64, and compares the counts with `bench/instructions.golden`.
/// `-- --bless` writes this file. Restartable sequences are counted in the disassembly, all other code under
/// valgrind.
pub(crate) fn instructions(context: &Context) -> Result {
    if !cfg!(target_arch = "x86_64") {
        context.say("NOT COUNTED: the counts are those of x86-64");
        return Ok(());
    }
    // Without root, missing programs cannot be installed. The counting program then prints which counts it
    // left out.
    if let Err(error) = installed::programs(context, &[("objdump", "binutils"), ("valgrind", "valgrind")]) {
        context.say(&format!("NOT ALL IS COUNTED: {error}"));
        if !context.command("objdump --version").succeeds() {
            return Ok(());
        }
    }
    // The user's flags would change the counts.
    let command =
        context.command("cargo run --quiet --profile dist --package pageset-bench --bin instructions --");
    command
        .arguments(&context.arguments)
        .without_env("RUSTFLAGS")
        .without_env("CARGO_ENCODED_RUSTFLAGS")
        .run()
}

/// Checks the licences, security advisories and sources of all dependencies against `deny.toml`.
fn deny(context: &Context) -> Result {
    installed::cargo_program(context, "cargo-deny", "0.20.2", "")?;
    // Advisories come from the network. Without the network, make the other checks.
    if context.run("cargo deny fetch db").is_ok() {
        return context.run("cargo deny --workspace check");
    }
    context.say("no advisory database: advisories are NOT checked");
    context.run("cargo deny --workspace check bans licenses sources")
}

/// Tests memory orderings with loom, which tries every outcome that the language allows: on small tables, and
/// for every pair of operations at one pageblock.
fn loom(context: &Context) -> Result {
    let flags = rust_flags("--cfg loom");
    let command = |line: &str| context.command(line).env("RUSTFLAGS", &flags);
    for package in packages()?.iter().filter(|package| package.tests.iter().any(|test| test == "loom")) {
        command(&format!("cargo test --release --package {} --test loom", package.name)).run()?;
    }
    command("cargo test --release --package pageset-blocks --lib -- rows::races rows::pairs").run()
}

/// Tests pages of `pageset report` in a browser. `-- pictures DIR` makes pictures of the pages instead.
fn browser(context: &Context) -> Result {
    installed::programs(context, &[("npm", "npm"), ("chromium", "chromium")])?;
    script(context, "ci/browser.sh")
}

/// Tests the programs that do the same work on other allocators. No time is checked.
fn peers(context: &Context) -> Result {
    installed::programs(context, &[("cmake", "cmake"), ("g++", "g++")])?;
    context.run("cargo clippy --profile dist --package pageset-peers --all-targets -- -D warnings")?;
    context.run("cargo test --profile dist --package pageset-peers")
}

/// Tests the core and the page operations on an emulated processor of another architecture.
///
/// Shuttle's tests are left out, because shuttle itself decides which thread runs next, so its schedules are
/// the same on every architecture.
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
            // Emulation is about twenty times slower, so run few random cases. The gate `full` runs more
            // cases.
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

/// Tests of the pool that no sanitizer can run, each with the reason.
const UNSANITIZED: [(&str, &str); 6] = [
    ("exhausted_address_space_is_said", "leaves too little address space for the sanitizer's memory"),
    ("tables_that_are_not_used_take_no_memory", "counts the sanitizer's memory, too"),
    ("a_denied_call_is_named_with_what_allows_it", "denies calls that the sanitizer makes"),
    ("the_calls_that_the_guide_lists_are_all", "denies calls that the sanitizer makes"),
    ("locked_pages_do_not_go_back_until_they_are_unlocked", "sanitizers replace mlock, and lock nothing"),
    ("memory_of_pages_without_an_owner_outlives_the_pool", "leaks memory on purpose"),
];

/// Tests the pool and the page operations under sanitizers, and with ThreadSanitizer also our own allocator.
/// The standard library is instrumented, too.
///
/// Sanitizers do not see hand-written assembly. Therefore the page operations' tests run between inaccessible
/// pages, and ThreadSanitizer tests the pool with locked arrays instead of restartable sequences.
fn sanitizers(context: &Context) -> Result {
    installed::nightly(context, &["rust-src"])?;
    let all = ["address".to_owned(), "thread".to_owned()];
    let chosen = if context.arguments.is_empty() { &all[..] } else { &context.arguments };
    for sanitizer in chosen {
        let is_thread = sanitizer == "thread";
        let sanitized = |rest: &str| {
            let line = "cargo +nightly test -Zbuild-std --target x86_64-unknown-linux-gnu --package";
            // Some tests ask for more memory than any machine has, and expect a refusal.
            let options = |name: &str, more: &str| {
                let given = std::env::var(name).unwrap_or_default();
                format!("{given}:allocator_may_return_null=1:{more}")
            };
            let command = context
                .command(&format!("{line} {rest}"))
                .env("RUSTFLAGS", rust_flags(&format!("-Zsanitizer={sanitizer}")))
                .env("CARGO_TARGET_DIR", target().join("sanitizers").join(sanitizer))
                // Children of some tests make a bad access on purpose, and the tests expect the signal.
                .env("ASAN_OPTIONS", options("ASAN_OPTIONS", "handle_segv=0:handle_sigbus=0"))
                // A child that a process with threads forked must not be killed.
                .env("TSAN_OPTIONS", options("TSAN_OPTIONS", "die_after_fork=0:handle_segv=0"))
                .default_env("PAGESET_ROUNDS", "2000");
            if is_thread { command.env("PAGESET_RSEQ", "0").run() } else { command.run() }
        };
        // The skipped test watches registers that the sanitizer's own code uses.
        sanitized("pageset-pageops --lib --tests -- --skip no_loop_changes_a_vector_register")?;
        if is_thread {
            // Our own allocator's threads share only atomics, so only ThreadSanitizer tests these threads.
            sanitized("pageset-blocks --test outside -- threads")?;
        }
        for (test, reason) in UNSANITIZED {
            context.say(&format!("NOT RUN: {test}: {reason}"));
        }
        let skipped: String = UNSANITIZED.iter().map(|(test, _)| format!(" --skip {test}")).collect();
        sanitized(&format!("pageset --lib --tests --no-fail-fast --{skipped}"))?;
    }
    Ok(())
}

/// Tests concurrent use under shuttle, which decides at every lock or atomic which thread runs next. `--
/// SCHEDULES` sets the number of schedules.
fn shuttle(context: &Context) -> Result {
    let schedules = argument(context, "100000");
    let with_atomics = rust_flags("--cfg shuttle");
    for package in packages()? {
        // If the crate can use shuttle's atomics, shuttle may switch threads at every atomic operation.
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
    // Run pairs of operations on the frames of one pageblock, in every order of their steps.
    apart("cargo test --release --package pageset-blocks --all-features --lib -- rows::races")?;
    // The tests of the pool's arrays need a separate build with shuttle's atomics.
    apart("cargo test --release --package pageset --lib -- arrays::locked")
}

/// Runs stress tests for ten minutes, or for `-- SECONDS`; 8 seconds are a smoke test. The pool has threads
/// on changing CPUs, frees by other threads, trims, resizes and forks. Our own allocator has four threads
/// that do all operations.
fn soak(context: &Context) -> Result {
    let seconds: u64 =
        argument(context, "600").parse().map_err(|_| "say for how many seconds, as in `-- 60`")?;
    context.run("cargo test --release --package pageset --test torture --test fork --no-run")?;
    context.run("cargo test --release --package pageset-blocks --test outside --no-run")?;
    // In each round, the pool's three stress tests run at the same time. Then our own allocator's test runs,
    // half as long.
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

/// Runs regression tests that need root, or a machine without huge pages in use.
fn faults(context: &Context) -> Result {
    let directory = python_package(context, "dev", &interpreters(context)[..1])?;
    let all = tested_together(&packages()?);
    let line = format!("cargo test {all} --no-fail-fast fault_ -- --ignored --test-threads 1");
    context.command(&line).env("PAGESET_PYTHON", format!("{directory}/bin/python")).run()
}

/// Compares forecasts with this machine. Records six loads under five settings, three times each, in turn.
/// Prints a Markdown table of how often intervals held, by load, setting, width, and whether the machine was
/// quiet. `-- FOLDER` keeps the recordings.
///
/// On a busy machine, a recording contains other work, too. Each recording that was not quiet is made twice.
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
    // Make all recordings before the forecasts, because forecasts would disturb recordings.
    context.run(&format!("python3 ci/advise/record.py {release}/pageset {folder}"))?;
    context.say(&crate::machine::description());
    context.run(&format!("{release}/examples/coverage {folder} --rows"))
}

/// Tests a sweep of 2 000 runs on a Dask cluster of processes, while workers and the scheduler are killed.
/// `-- RUNS` sets the number of runs. `-- cost RUNS...` compares the cost of a run with its cost in one
/// process.
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

/// Packages that the tests of the Python package need.
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

/// Returns the Python interpreters to test with. The environment variable `PYTHONS` names them; the default
/// is every version that the package supports, oldest first.
fn wanted_interpreters() -> Vec<String> {
    let named = std::env::var("PYTHONS").unwrap_or_default();
    let named =
        if named.is_empty() { "python3.11 python3.12 python3.13 python3.14".to_owned() } else { named };
    named.split_whitespace().map(str::to_owned).collect()
}

/// Returns the wanted interpreters that can be started.
fn interpreters(context: &Context) -> Vec<String> {
    let starts = |python: &String| context.command(&format!("{python} --version")).succeeds();
    wanted_interpreters().into_iter().filter(starts).collect()
}

/// Builds the wheel of the Python package, and returns the wheel's path.
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

/// Builds the Python package, and tests it under each of these interpreters. Returns the virtual environment
/// of the first interpreter.
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
    // Before Python 3.12, a class has no method that shows the buffer protocol.
    let hidden = target().join("python/hidden.txt");
    let names = "pageset._native.Pages.__buffer__\npageset._native.Pages.__release_buffer__\n";
    fs::write(&hidden, names).map_err(|error| format!("{}: {error}", hidden.display()))?;
    let stubs =
        "python -P -m mypy.stubtest pageset --mypy-config-file pyproject.toml --ignore-unused-allowlist";
    python(&format!("{stubs} --allowlist {}", hidden.display()))?;
    Ok(directory)
}

/// Checks the crates whose `package.metadata.ci.leg` names this leg, and runs their tests.
fn crates_for_python(context: &Context) -> Result {
    let packages = packages()?;
    let its = packages.iter().filter(|package| package.leg.as_deref() == Some("python"));
    let its: Vec<_> = its.map(|package| format!("--package {}", package.name)).collect();
    context.run(&format!("cargo clippy {} --all-targets -- -D warnings", its.join(" ")))?;
    // Cargo cannot link tests of a Python extension, so test only `pageset-arrow`.
    context.run("cargo test --package pageset-arrow")
}

/// Tests the Python package for the gate `full`, under the first Python on this machine.
pub(crate) fn python_once(context: &Context) -> Result {
    if interpreters(context).is_empty() {
        installed::programs(context, &[("python3.11", "python3 python3-venv")])?;
    }
    let interpreters = interpreters(context);
    python_package(context, "dev", &interpreters[..interpreters.len().min(1)])?;
    crates_for_python(context)
}

/// Tests the package under every supported Python on this machine. `-- wheel` tests the wheel that is
/// shipped.
fn python(context: &Context) -> Result {
    let profile = if argument(context, "") == "wheel" { "dist" } else { "dev" };
    let found = interpreters(context);
    for python in wanted_interpreters().iter().filter(|python| !found.contains(python)) {
        context.say(&format!("NOT TESTED: no {python} here; install it, or name others in PYTHONS"));
    }
    python_package(context, profile, &found)?;
    crates_for_python(context)
}

/// Checks that the crates can be published; nothing is uploaded. Packs each crate, builds it from its tarball
/// alone, and tests all tarballs together. Builds every combination of features, and the documentation as
/// docs.rs does. Builds with the oldest Rust that each crate names. Prints what changed for users since the
/// commit in `ci/semver.baseline`.
///
/// `-- PART...` runs only these parts: pack, test, features, oldest, docs, semver.
fn package(context: &Context) -> Result {
    let all = ["pack", "test", "features", "oldest", "docs", "semver"].map(str::to_owned);
    let parts = if context.arguments.is_empty() { &all[..] } else { &context.arguments };
    let packages = packages()?;
    let names = published(&packages);
    for part in parts {
        match part.as_str() {
            // Cargo builds each crate from its tarball, and its dependencies from their tarballs.
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
                // A crate that the baseline commit does not have has no users yet.
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

/// Unpacks the tarballs as a workspace, with the directories of the repository. A file that is in no tarball
/// is missing in this workspace. Only recordings and published tables come from the repository, because they
/// are too large for tarballs. Returns the workspace's manifest.
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

/// A part of the leg `miri`: its name, the crate with features, and the options that select tests.
type MiriPart = (&'static str, &'static str, &'static str);

const CORE: &str = "pageset-core --all-features";
/// The parts of the leg `miri`, the longest part first.
///
/// Three kinds of tests are left out. Golden vectors would take hours under miri, and run code that other
/// tests run, too. Shuttle's tests switch stacks. Some tests of the public interface move thousands of
/// frames.
const MIRI: [MiriPart; 15] = [
    ("unit", CORE, "--lib -- --skip golden --skip vectors --skip bad_page"),
    // Miri runs only the portable loops. Tests of other loops print that they are skipped.
    ("pageops-outside", "pageset-pageops", "--test outside -- bytes:: poison::"),
    ("invariants", CORE, "--test outside -- invariants::"),
    ("block_of", CORE, "--test outside -- block_of::"),
    // Regression tests are left out: they would take hours, because each runs all policies on thousands of
    // frames.
    ("model", CORE, "--test outside -- model::every_policy"),
    // The two skipped tests fill a zone frame by frame, and read all events after each frame.
    ("examples", CORE, "--test outside -- examples:: --skip examples::e14 --skip examples::e15"),
    ("bad_page", CORE, "--lib -- bad_page"),
    // This part runs on a 32-bit target, where counts are narrower.
    (
        "32-bit",
        CORE,
        "--lib --target i686-unknown-linux-gnu -- count:: ids:: zone::span zone::gauges bad_page",
    ),
    ("pool-torture", "pageset", "--test torture"),
    ("pool-unit", "pageset", "--lib"),
    ("errors", CORE, "--test outside -- errors:: statics:: interrupts::"),
    // In this part, four threads do all operations.
    ("blocks-threads", "pageset-blocks", "--test outside -- threads:: errors::"),
    ("blocks-unit", "pageset-blocks", "--lib"),
    ("pageops-unit", "pageset-pageops", "--lib"),
    // The smallest part, for a quick first test.
    ("smoke", CORE, "--lib -- ids:: frame:: storage:: zone::span zone::gauges"),
];

/// Returns a command that runs tests under miri. Leaks are ignored, because unit tests leak the tables that
/// they lend to the allocator. Isolation is off, because random tests write their failures to disk. Few
/// random cases run, because miri is about a hundred times slower than the machine.
fn miri_command<'a>(context: &'a Context, line: &str) -> Invocation<'a> {
    let flags = "-Zmiri-disable-isolation -Zmiri-strict-provenance -Zmiri-ignore-leaks";
    let flags = format!("{} {flags}", std::env::var("MIRIFLAGS").unwrap_or_default());
    let command = context.command(&format!("cargo +nightly miri test --package {line}"));
    // Keep miri's build of the standard library and of the crates apart from the ordinary build.
    command
        .env("MIRIFLAGS", flags.trim())
        .default_env("PROPTEST_CASES", "1")
        .env("CARGO_TARGET_DIR", target().join("miri"))
}

/// Finds undefined behaviour that tests alone do not show. The allocators have no unsafe code. In their
/// tests, miri checks the dependencies, the locks of the tests, and overflows. The pool runs with memory from
/// the heap and with locked arrays, because miri has neither mmap nor restartable sequences. `-- PART...`
/// runs only these parts.
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
    // Build all parts first, one after the other, so that a part's time is the time of its tests.
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

/// Runs a part, and writes its output to a separate file.
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
    // If the filter selects no test, the part proves nothing.
    if said.lines().any(|line| line.starts_with("running 0 tests")) {
        return Err(format!("no test of `{line}`"));
    }
    context.say(&format!("miri, {name}: {:.0} s", start.elapsed().as_secs_f64()));
    Ok(())
}
