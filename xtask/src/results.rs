//! Reads and writes `ci/results.json`, the last result of each leg of the night. Only a run of a leg writes
//! this file.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use crate::machine;
use crate::repository::root;
use crate::run::{Context, Result};

const FILE: &str = "ci/results.json";
/// Largest length of a failure's reason in the file, in characters.
const WHY_MAX: usize = 200;
/// A result that is older than this number of commits says little about the current commit.
const COMMITS_MAX: u64 = 50;

fn read() -> Result<Map<String, Value>> {
    match fs::read_to_string(root().join(FILE)) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| format!("{FILE}: {error}")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Map::new()),
        Err(error) => Err(format!("{FILE}: {error}")),
    }
}

fn git(line: &str) -> Result<String> {
    let context = Context { log: None, arguments: Vec::new() };
    Ok(context.command(&format!("git {line}")).output()?.trim().to_owned())
}

/// The state of the sources that a leg tests.
pub(crate) struct Sources {
    commit: String,
    /// Whether the sources differ from the commit.
    is_changed: bool,
}

impl Sources {
    pub(crate) fn now() -> Result<Self> {
        // Ignore files that a leg has left, and the file of results itself.
        let changed = git(&format!("status --porcelain --untracked-files=no -- . :!{FILE}"))?;
        Ok(Self { commit: git("rev-parse --short=12 HEAD")?, is_changed: !changed.is_empty() })
    }
}

/// Writes the result of a leg to the file.
pub(crate) fn write(leg: &str, sources: &Sources, seconds: f64, outcome: &Result) -> Result {
    let mut all = read()?;
    let days = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() / 86_400);
    let result = json!({
        "commit": sources.commit,
        "changed": sources.is_changed,
        "day": day(days),
        "machine": machine::description(),
        "seconds": seconds.round(),
        "result": if outcome.is_ok() { "passed" } else { "failed" },
        // Cut the reason off, because the command line in it may name every page.
        "why": outcome.as_ref().err().map(|error| error.chars().take(WHY_MAX).collect::<String>()),
    });
    all.insert(leg.to_owned(), result);
    let text = serde_json::to_string_pretty(&all).expect("results are JSON");
    fs::write(root().join(FILE), text + "\n").map_err(|error| format!("{FILE}: {error}"))
}

/// Returns the date of a day that is counted from 1970, in the form 2026-01-31.
fn day(days: u64) -> String {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut rest) = (1970, days);
    while rest >= 365 + u64::from(is_leap(year)) {
        rest -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if rest < length {
            break;
        }
        rest -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", rest + 1)
}

/// Prints the last result of each leg in `legs`.
pub(crate) fn print(legs: &[&str]) -> Result {
    let all = read()?;
    for leg in legs {
        let Some(result) = all.get(*leg) else {
            println!("{:14} never run", leg);
            continue;
        };
        let text = |key: &str| result[key].as_str().unwrap_or("unknown").to_owned();
        let commit = text("commit");
        // A commit that is not in this history counts as old.
        let behind = git(&format!("rev-list --count {commit}..HEAD"));
        let behind = behind.ok().and_then(|count| count.parse::<u64>().ok());
        let age = match behind {
            None => "STALE: not in this history".to_owned(),
            Some(count) if count > COMMITS_MAX => format!("STALE: {count} commits ago"),
            Some(count) => format!("{count} commits ago"),
        };
        let changed = if result["changed"] == true { " with changes" } else { "" };
        let seconds = result["seconds"].as_f64().unwrap_or_default();
        println!(
            "{:14} {:6} {seconds:6.0} s  {commit}{changed} ({age}), {}, {}",
            leg,
            text("result"),
            text("day"),
            text("machine")
        );
        if let Some(why) = result["why"].as_str() {
            println!("{:14} {}", "", why.lines().next().unwrap_or_default());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(11_016), "2000-02-29");
        assert_eq!(day(20_454), "2026-01-01");
    }
}
