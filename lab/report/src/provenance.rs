//! The origin of a result's numbers.

use serde::Serialize;

use crate::Seeds;

/// All facts that a reader needs to get the same numbers again.
///
/// The date is left out on purpose, because the same seed and commit must give the same bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Provenance {
    /// The command line, as a reader would type it.
    pub command: String,
    /// Name and version of the program.
    pub version: String,
    /// Commit that the program was built from. `None` if the commit is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The machine on one line: CPUs, nodes, memory, kernel.
    pub machine: String,
    /// Names of the policies, in the order of the rows.
    pub policies: Vec<String>,
    /// Seeds of all random choices. `None` if there were no random choices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds: Option<Seeds>,
}

impl Provenance {
    /// Returns the name and value of each known fact, in the order of printing.
    #[must_use]
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![("command", self.command.clone()), ("version", self.version.clone())];
        facts.extend(self.commit.clone().map(|commit| ("commit", commit)));
        facts.push(("machine", self.machine.clone()));
        facts.push(("policies", self.policies.join(", ")));
        facts.extend(self.seeds.map(|seeds| ("seed", seeds.to_string())));
        facts.retain(|(_, value)| !value.is_empty());
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_facts_are_left_out() {
        let provenance = Provenance { version: "pageset 0.1.0".to_owned(), ..Provenance::default() };
        assert_eq!(provenance.facts(), [("version", "pageset 0.1.0".to_owned())]);
    }
}
