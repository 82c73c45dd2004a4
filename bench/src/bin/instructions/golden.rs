//! The counts kept in the repository.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::Counts;

/// Tolerated relative difference from the kept count.
const TOLERANCE: f64 = 0.01;

/// The file: a count and a name per line. Comments follow `#`.
pub(crate) struct Golden(Vec<(String, f64)>);

const HEAD: &str = "\
# Instructions for each operation on x86-64: see bench/src/bin/instructions. Compared by cargo xtask ci night instructions with a
# tolerance of 1 %. After a change that is meant: `cargo xtask ci night instructions -- --bless`, and say why in the commit.
";

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("instructions.golden")
}

impl Golden {
    pub(crate) fn read() -> Result<Self, String> {
        let path = file();
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let parsed = lines.map(|(number, line)| {
            let (count, name) = line.trim().split_once(' ').unwrap_or((line, ""));
            let count = count.parse().map_err(|_| format!("line {}: no count in `{line}`", number + 1))?;
            Ok((name.trim().to_owned(), count))
        });
        parsed.collect::<Result<_, String>>().map(Self)
    }

    pub(crate) fn write(counts: &Counts) -> Result<(), String> {
        let mut text = HEAD.to_owned();
        for (name, count) in counts {
            let _ = writeln!(text, "{count:8.2} {name}");
        }
        std::fs::write(file(), &text).map_err(|error| error.to_string())?;
        print!("{text}");
        Ok(())
    }

    /// Prints all counts. Fails if a count has changed, or is in only one of the lists.
    pub(crate) fn compare(&self, counts: &Counts, skipped: Option<String>) -> Result<(), String> {
        let mut wrong = 0;
        for (name, kept) in &self.0 {
            let found = counts.iter().find(|(counted, _)| counted == name);
            let verdict = match found {
                None if skipped.is_some() => "NOT COUNTED".to_owned(),
                Some((_, found)) if is_near(*kept, *found) => "as kept".to_owned(),
                Some((_, found)) => format!("WRONG: now {found:.2}"),
                None => "WRONG: no such entry any more".to_owned(),
            };
            wrong += usize::from(verdict.starts_with("WRONG"));
            println!("{kept:8.2} {name:28} {verdict}");
        }
        for (name, found) in counts.iter().filter(|(name, _)| self.0.iter().all(|(kept, _)| kept != name)) {
            println!("{found:8.2} {name:28} WRONG: not kept");
            wrong += 1;
        }
        if let Some(reason) = skipped {
            println!("{reason}: some entries were NOT COUNTED");
        }
        if wrong == 0 {
            Ok(())
        } else {
            Err(format!("{wrong} counts are wrong; `--bless` keeps the new ones"))
        }
    }
}

fn is_near(kept: f64, found: f64) -> bool {
    (found - kept).abs() <= kept * TOLERANCE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_moved_is_wrong_and_a_missing_tool_is_not() {
        let golden = Golden::parse("# counts\n  100.00 pair order 0\n   21.00 free\n").unwrap();
        assert!(golden.compare(&vec![("pair order 0", 100.9), ("free", 21.0)], None).is_ok());
        assert!(golden.compare(&vec![("pair order 0", 101.1), ("free", 21.0)], None).is_err());
        assert!(golden.compare(&vec![("pair order 0", 100.0)], None).is_err());
        assert!(golden.compare(&vec![("free", 21.0)], Some("no valgrind".to_owned())).is_ok());
        assert!(golden.compare(&vec![("pair order 0", 100.0), ("free", 21.0), ("new", 1.0)], None).is_err());
        assert!(Golden::parse("many pair\n").is_err());
    }
}
