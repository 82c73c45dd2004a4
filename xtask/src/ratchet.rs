//! Compares counts with the limits in a file of this crate. The limits may only fall.

use std::collections::BTreeMap;
use std::fs;

use crate::repository::root;
use crate::run::Result;

pub(crate) struct Ratchet {
    pub(crate) file: &'static str,
    /// The subcommand of `cargo xtask` that shows the counts.
    pub(crate) verb: &'static str,
}

impl Ratchet {
    fn read(&self) -> Result<BTreeMap<String, u64>> {
        let text =
            fs::read_to_string(root().join(self.file)).map_err(|error| format!("{}: {error}", self.file))?;
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let line = |line: &str| {
            let (key, count) = line.split_once(" = ")?;
            Some((key.trim_matches('"').to_owned(), count.parse().ok()?))
        };
        lines.map(|text| line(text).ok_or(format!("{}: {text}", self.file))).collect()
    }

    /// Fails if a count has grown, or if the sum of all counts has grown. A count under a new key is checked
    /// only in the sum, because findings may have moved from another key.
    pub(crate) fn check_sums(&self, counts: &BTreeMap<String, u64>) -> Result {
        let allowed = self.read()?;
        let mut grown = grown(&allowed, counts);
        let (sum, sum_allowed) = (counts.values().sum::<u64>(), allowed.values().sum::<u64>());
        if sum > sum_allowed {
            grown.push(format!("all: {sum}, {sum_allowed} are allowed"));
        }
        self.outcome(&grown, &format!("{sum} findings, {sum_allowed} are allowed"))
    }

    /// Fails if a count has grown and is above `most`. A new key gets the limit of keys that are gone, so
    /// that a crate that was split or renamed keeps its limit.
    pub(crate) fn check_each(&self, counts: &BTreeMap<String, u64>, most: u64) -> Result {
        let mut allowed = self.read()?;
        let gone = allowed.iter().filter(|(key, _)| !counts.contains_key(*key));
        let of_new = gone.map(|(_, limit)| *limit).max().unwrap_or(most);
        for key in counts.keys() {
            let limit = allowed.entry(key.clone()).or_insert(of_new);
            *limit = most.max(*limit);
        }
        self.outcome(&grown(&allowed, counts), "no count has grown")
    }

    fn outcome(&self, grown: &[String], well: &str) -> Result {
        if grown.is_empty() {
            println!("{}: {well}", self.verb);
            return Ok(());
        }
        let list = grown.join("\n    ");
        let file = self.file;
        Err(format!(
            "these counts of {file} may only fall; `cargo xtask {} PATH` shows them:\n    {list}",
            self.verb
        ))
    }

    /// Writes the current counts as the new limits.
    pub(crate) fn write(&self, counts: &BTreeMap<String, u64>) -> Result {
        let verb = self.verb;
        let mut text = format!("# May only fall. Written by `cargo xtask {verb} --accept`.\n");
        for (key, count) in counts {
            text.push_str(&format!("\"{key}\" = {count}\n"));
        }
        fs::write(root().join(self.file), text).map_err(|error| format!("{}: {error}", self.file))
    }
}

fn grown(allowed: &BTreeMap<String, u64>, counts: &BTreeMap<String, u64>) -> Vec<String> {
    let limits = counts.iter().filter_map(|(key, count)| Some((key, count, allowed.get(key)?)));
    limits
        .filter(|(_, count, limit)| count > limit)
        .map(|(key, count, limit)| format!("{key}: {count}, was {limit}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_grown_is_named() {
        let map = |pairs: &[(&str, u64)]| pairs.iter().map(|&(key, count)| (key.to_owned(), count)).collect();
        let (allowed, counts) = (map(&[("a", 1), ("b", 2)]), map(&[("a", 2), ("b", 1), ("c", 9)]));
        assert_eq!(grown(&allowed, &counts), ["a: 2, was 1"]);
    }
}
