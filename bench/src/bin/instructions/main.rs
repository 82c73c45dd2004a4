//! Compares the instruction counts of the fast paths of the pool and the core with counts kept in the
//! repository.
//!
//! `instructions` compares with `bench/instructions.golden`; `instructions --bless` writes that file. Times
//! depend on the machine and its load, but counts do not. `cargo xtask ci night instructions` builds this
//! program in the right way.
//!
//! - `entries`: the counted operations, each in its own function.
//! - `shortest`: counts restartable sequences in the disassembly. valgrind does not support such sequences,
//!   and no debugger can step through one.
//! - `callgrind`: counts all other entries by running them under valgrind.
//! - `golden`: the file of counts.

mod callgrind;
mod entries;
mod golden;
mod shortest;

use std::process::ExitCode;

use entries::ENTRIES;
use golden::Golden;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        [] => count().and_then(|(counts, skipped)| Golden::read()?.compare(&counts, skipped)),
        ["--bless"] => count().and_then(|(counts, _)| Golden::write(&counts)),
        ["--run", name] => entries::run(name),
        _ => Err("usage: instructions [--bless]".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("instructions: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Instructions per operation, by name, and the reason why some are missing.
type Counts = Vec<(&'static str, f64)>;

fn count() -> Result<(Counts, Option<String>), String> {
    let text = shortest::disassembly()?;
    let mut counts = Vec::new();
    let skipped = callgrind::is_missing();
    for entry in ENTRIES {
        if entry.is_sequence {
            counts.push((entry.name, f64::from(shortest::path(&text, entry.function)?)));
        } else if skipped.is_none() {
            counts.push((
                entry.name,
                callgrind::collected(entry.name, entry.function)? / entry.operations as f64,
            ));
        }
    }
    Ok((counts, skipped))
}
