//! Runs the commands of the book's page "The first ten minutes" that need the running kernel. The output of
//! each command must have the shape that the page shows.

use std::path::Path;
use std::process::Command;

use super::record::{PAGESET, machine, text};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/guide/first-ten-minutes.md");

/// A command of the page, and the lines that the page shows below the command.
struct Step {
    arguments: Vec<String>,
    expected: Vec<String>,
}

/// Returns the page's commands that the transcript test skips.
fn steps() -> Vec<Step> {
    let page = std::fs::read_to_string(PAGE).expect("the page is in the repository");
    let blocks = page.split("```console,ignore\n").skip(1);
    let blocks = blocks.map(|rest| rest.split_once("```").expect("a block ends").0);
    blocks
        .map(|block| {
            let mut lines = block.lines().map(str::to_owned);
            let command = lines.next().expect("a command");
            let arguments = command.strip_prefix("$ sudo pageset ").expect("a command for root").split(' ');
            Step { arguments: arguments.map(str::to_owned).collect(), expected: lines.collect() }
        })
        .collect()
}

/// Whether a printed line has the words of the line that the page shows. Numbers may differ. `...` at
/// the end of the line stands for any rest of the line.
fn is_alike(shown: &str, printed: &str) -> bool {
    if let Some(begin) = shown.strip_suffix(" ...") {
        let words = begin.split_whitespace().count();
        let printed: Vec<_> = printed.split_whitespace().take(words).collect();
        return is_alike(begin, &printed.join(" "));
    }
    let (shown, printed): (Vec<_>, Vec<_>) =
        (shown.split_whitespace().collect(), printed.split_whitespace().collect());
    let has_digit = |word: &str| word.contains(|c: char| c.is_ascii_digit());
    let same = |(one, other): (&&str, &&str)| {
        one == other || has_digit(one) && has_digit(other) || is_unit(one) && is_unit(other)
    };
    shown.len() == printed.len() && shown.iter().zip(&printed).all(same)
}

fn is_unit(word: &str) -> bool {
    ["B", "kB", "MB"].contains(&word)
}

/// The first expected line that is not in the output. `...` stands for any lines.
fn missing<'a>(expected: &'a [String], printed: &str) -> Option<&'a str> {
    let mut lines = printed.lines();
    let mut may_skip = false;
    for shown in expected {
        if shown == "..." {
            may_skip = true;
            continue;
        }
        let found = if may_skip {
            lines.any(|line| is_alike(shown, line))
        } else {
            lines.next().is_some_and(|line| is_alike(shown, line))
        };
        if !found {
            return Some(shown);
        }
        may_skip = false;
    }
    None
}

#[test]
fn a_shape_has_its_words_and_any_numbers() {
    let shape = ["2 CPUs, 16 pages ...", "...", "end 7"].map(str::to_owned);
    assert_eq!(missing(&shape, "8 CPUs, 99 pages\nmore\nend 1\n"), None);
    assert_eq!(missing(&shape, "8 CPUs, 99 frames\nend 1\n"), Some("2 CPUs, 16 pages ..."));
    assert_eq!(missing(&shape, "8 CPUs, 99 pages\nend\n"), Some("end 7"));
}

#[test]
#[ignore = "needs root and a quiet machine for half a minute: cargo xtask ci night first-minutes"]
fn the_first_ten_minutes_on_a_live_machine_print_what_the_book_shows() {
    let _machine = machine().expect("this machine can record");
    let directory = tempfile::tempdir().expect("a directory");
    let steps = steps();
    assert_eq!(steps.len(), 3, "steps of the page that need root");
    for Step { arguments, expected } in steps {
        let mut command = Command::new(PAGESET);
        // The measured cost is saved in a temporary directory, so that other recordings of this machine do
        // not include it.
        command.args(&arguments).current_dir(directory.path()).env("XDG_STATE_HOME", directory.path());
        let output = command.output().expect("the command can be started");
        let printed = text(&output.stdout) + &text(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {printed}");
        assert_eq!(missing(&expected, &printed), None, "{arguments:?} printed:\n{printed}");
    }
    assert!(Path::new(&directory.path().join("my.pgtrace")).exists(), "the recording of step 6");
}
