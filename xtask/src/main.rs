//! `cargo xtask` runs the checks of every commit and of every night, and builds the file that is shipped.

mod book;
mod circles;
mod dist;
mod full;
mod gate;
mod installed;
mod layers;
mod leg;
mod machine;
mod night;
mod page_links;
mod ratchet;
mod repository;
mod results;
mod run;
mod rust_text;
mod snippets;
mod tidy;
mod words;
mod workspace;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask ci quick             format, lints, unit tests: a minute after a change
cargo xtask ci full              all checks of a commit, as CI runs them (also: cargo xtask ci)
cargo xtask ci night             the long checks, one after another; each writes its result to ci/results.json
cargo xtask ci GATE LEG...       only these legs of a gate; words after -- are arguments of the leg: cargo xtask ci night fuzz -- 60 ftrace
cargo xtask ci list              all legs
cargo xtask ci status            the last result of each leg of the night
cargo xtask tidy                 the rules of the repository that a machine can check
cargo xtask words [PATH]         sentences that readers had to read twice; without a path, counts
cargo xtask words --accept       writes the counts to xtask/words.toml, which may only fall
cargo xtask circles [CRATE]      files of a crate that depend on each other in a circle
cargo xtask circles --accept     writes the sizes to xtask/circles.toml, which may only fall
cargo xtask dist                 one static file of the command, in target/x86_64-unknown-linux-musl/dist
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (words, rest) = match words.iter().position(|word| *word == "--") {
        Some(at) => (&words[..at], &words[at + 1..]),
        None => (&words[..], &[][..]),
    };
    let outcome = match words {
        ["ci"] | ["ci", "full"] => gate::full(&[], rest),
        ["ci", "full", legs @ ..] => gate::full(legs, rest),
        ["ci", "quick", legs @ ..] => gate::quick(legs, rest),
        ["ci", "night", legs @ ..] => gate::night(legs, rest),
        ["ci", "list"] => gate::list(),
        ["ci", "status"] => gate::status(),
        ["tidy"] => tidy::check(),
        ["words", "--accept"] => words::accept(),
        ["words"] => words::summary(),
        ["words", paths @ ..] => words::list(paths),
        ["circles", "--accept"] => circles::accept(),
        ["circles", crates @ ..] => circles::list(crates),
        ["dist"] => dist::command(),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
