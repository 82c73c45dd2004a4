//! Tests that the prose states the same facts as the code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pageset_core::POLICIES;
use pageset_replay::INTERVAL_COVERAGE;
use pageset_reproduce as reproduce;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the words in backquotes in the first column of a Markdown table. The table lies between a line
/// that begins with `from` and the next line that begins with `to`.
fn first_column(text: &str, from: &str, to: &str) -> Vec<String> {
    let lines =
        text.lines().skip_while(|line| !line.starts_with(from)).take_while(|line| !line.starts_with(to));
    let cells = lines.filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    cells
        .filter_map(|cell| cell.strip_prefix('`')?.split_once('`').map(|(name, _)| name.to_owned()))
        .collect()
}

#[test]
fn the_reference_has_every_policy() {
    let page = text("docs/book/src/reference/policies.md");
    let mut listed = first_column(&page, "## Find a policy", "## Compare kernels");
    let series = listed.iter().position(|name| name == "patch1").expect("one row is of the ten patches");
    listed.splice(series..=series, (1..=10).map(|patch| format!("patch{patch}")));
    let names: Vec<_> = POLICIES.iter().map(|policy| policy.name).collect();
    assert_eq!(listed, names);
    assert!(page.contains(&format!("The table has {} names", names.len())), "the page counts them");
}

#[test]
fn the_guide_has_every_study() {
    let page = text("docs/book/src/guide/reproduce.md");
    let listed: BTreeSet<_> = first_column(&page, "| study |", "## ").into_iter().collect();
    let studies: BTreeSet<_> = reproduce::names().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(listed, studies);
}

/// Tests that the coverage of intervals in the library's sentence, which outputs print, equals the measured
/// coverage in the book.
#[test]
fn the_coverage_of_intervals_is_the_one_that_was_measured() {
    let forecasts = text("docs/book/src/forecasts.md");
    let covered = |row: &str| {
        let line = forecasts.lines().find(|line| line.starts_with(row)).expect("the page has a row of it");
        line.split('|')
            .map(str::trim)
            .find(|cell| cell.ends_with('%') && !cell.contains("25"))
            .unwrap()
            .to_owned()
    };
    let (quiet, noisy) = (covered("| agree within 25 %"), covered("| do not"));
    let advise = text("docs/book/src/guide/advise.md");
    let after = |words| advise.split_once(words).expect("it says so").1.split(" %").next().unwrap();
    let (idle, busy) = (after("truths than the promised 80 %**: "), after(" of 1080 truths, "));
    let promise = format!(
        "{quiet} of the runs of loads whose repeats agree within 25 %, and {noisy} of those of other loads. In trials of \
         settings it held {idle} % on a quiet machine, and {busy} % on a busy one"
    );
    assert!(INTERVAL_COVERAGE.replace('\n', " ").contains(&promise), "{INTERVAL_COVERAGE} / {promise}");
    for page in [
        "README.md",
        "docs/book/src/guide/advise.md",
        "docs/book/src/guide/replay-table.md",
        "docs/book/src/reference/columns.md",
        "pool/python/pageset/forecast.py",
        "lab/cli/src/replay/args.rs",
    ] {
        let page_text = text(page);
        assert!(page_text.contains(&quiet) && page_text.contains(&noisy), "{page}: {quiet} and {noisy}");
    }
}

/// Collects the files below a directory that have one of these endings.
fn files(directory: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && !path.is_symlink() && !matches!(name, "target" | ".git" | "corpus") {
            files(&path, endings, found);
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
}

/// Tests that no text calls an 80 % interval `four of five`.
#[test]
fn nothing_promises_four_of_five() {
    let mut found = Vec::new();
    files(&root(), &[".md", ".rs", ".py", ".ipynb"], &mut found);
    for path in found.into_iter().filter(|path| !path.ends_with("outside/facts.rs")) {
        let text = fs::read_to_string(&path).expect("a text").to_lowercase().replace('\n', " ");
        for phrase in ["four of five truths", "four of five cases", "four of five true", "in four of five"] {
            assert!(!text.contains(phrase), "{}: {phrase}", path.display());
        }
    }
}

#[test]
fn programs_that_texts_name_exist() {
    let mut found = Vec::new();
    for directory in ["docs", "kernel", "pool", "lab", "bench", "ci"] {
        files(&root().join(directory), &[".md", ".sh"], &mut found);
    }
    let mut count = 0;
    for path in found {
        let text = fs::read_to_string(&path).expect("a text").replace('\n', " ");
        for (at, _) in text.match_indices("--example ") {
            let name = text[at..].split_whitespace().nth(1).unwrap_or_default();
            let name = name.trim_end_matches(|end: char| !end.is_ascii_alphanumeric());
            let package =
                text[..at].rsplit_once("-p ").and_then(|(_, behind)| behind.split_whitespace().next());
            let exists = |package: &str| {
                let directory = package.trim_start_matches("pageset-");
                ["kernel", "pool", "lab"].iter().any(|part| {
                    let examples = root().join(part).join(directory).join("examples");
                    examples.join(format!("{name}.rs")).is_file() || examples.join(name).is_dir()
                })
            };
            let mut names = ["kernel", "pool", "lab"].into_iter().flat_map(|part| {
                let packages = fs::read_dir(root().join(part)).expect("there are crates");
                packages.map(|entry| entry.expect("a crate").file_name().into_string().expect("a name"))
            });
            let is_there = package.is_some_and(exists) || names.any(|name| exists(&name));
            assert!(is_there, "{}: there is no example `{name}`", path.display());
            count += 1;
        }
    }
    assert!(count > 5, "only {count} were found");
}

#[test]
fn guesses_in_machine_files_are_counted() {
    let (mut sources, mut guesses, mut machines) = (0, 0, 0);
    for path in fs::read_dir(root().join("machines")).expect("there are machines") {
        let text = fs::read_to_string(path.expect("a file").path()).expect("a machine is text");
        let lines: Vec<_> = text.lines().filter(|line| line.contains("source = ")).collect();
        sources += lines.len();
        guesses += lines.iter().filter(|line| line.to_lowercase().contains("guess")).count();
        machines += 1;
    }
    let limits = text("docs/book/src/limits.md").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        limits.contains(&format!("{guesses} of {sources} sources say \"guess\"")),
        "{guesses} of {sources}"
    );
    assert!(limits.contains(&format!("One machine of {machines},")), "{machines} machines");
}

/// The default of an option, as `--help` prints it.
fn default_of(command: &str, option: &str) -> String {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_pageset")).args([command, "--help"]).output();
    let help = String::from_utf8(output.expect("pageset can be started").stdout).expect("help is text");
    let (_, behind) =
        help.split_once(&format!("--{option} <")).unwrap_or_else(|| panic!("{command} --{option}"));
    let default = behind.split_once("[default: ").expect("it has a default").1;
    default.split([']', ';']).next().expect("it ends").trim().to_owned()
}

#[test]
fn defaults_in_the_guides_are_those_of_the_command() {
    for (command, option, default, page, sentence) in [
        (
            "reproduce",
            "seeds",
            "5",
            "docs/book/src/guide/reproduce.md",
            "every simulation of a full run has five seeds.",
        ),
        ("advise", "for", "30s", "docs/book/src/guide/advise.md", "`advise` counts events for 30 seconds"),
        ("top", "interval", "1s", "docs/book/src/guide/top.md", "once a second"),
    ] {
        assert_eq!(default_of(command, option), default, "{command} --{option}");
        assert!(text(page).replace('\n', " ").contains(sentence), "{page}: {sentence}");
    }
}

#[test]
fn the_readme_knows_the_largest_block() {
    let readme = text("README.md");
    assert!(
        readme.contains(&format!("2^0 to 2^{} frames", pageset_core::Order::MAX.get())),
        "the last paragraph"
    );
}
