//! `/proc/vmstat`: counters by name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ProcError, excerpt};

const FILE: &str = "vmstat";
/// Maximum number of counters. No kernel has more counters than this maximum: Linux 6.18 has about 190.
const COUNTERS_MAX: usize = 4096;

/// The counters, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Vmstat(pub BTreeMap<String, u64>);

impl Vmstat {
    /// Parses the file's text.
    ///
    /// # Errors
    /// An error if a line is not a name and a number.
    pub fn parse(text: &str) -> Result<Self, ProcError> {
        let mut counters = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let wrong = || {
                ProcError::new(
                    FILE,
                    index + 1,
                    format!("expected a name and a number, found {}", excerpt(line)),
                )
            };
            let (name, value) = line.split_once(char::is_whitespace).ok_or_else(wrong)?;
            counters.insert(name.to_owned(), value.trim().parse().map_err(|_| wrong())?);
            if counters.len() > COUNTERS_MAX {
                return Err(ProcError::new(FILE, index + 1, format!("more than {COUNTERS_MAX} counters")));
            }
        }
        Ok(Self(counters))
    }

    /// The counter called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_name() {
        let vmstat = Vmstat::parse("nr_free_pages 3797318\npgfault 12\n").unwrap();
        assert_eq!(vmstat.get("pgfault"), Some(12));
        assert_eq!(vmstat.get("nothing"), None);
    }

    #[test]
    fn a_bad_line_is_named() {
        let error = Vmstat::parse("pgfault 12\npgalloc\n").unwrap_err();
        assert_eq!(error.line, 2);
        assert!(error.to_string().starts_with("/proc/vmstat, line 2: "), "{error}");
    }
}
