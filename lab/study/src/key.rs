//! Makes the key of a run: a hash of everything that decides the run's result. A stored result is found by
//! its key.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use pageset_replay::{names_policy_file, policy_to_toml, read_policy};

use crate::fnv::Fnv;
use crate::simulate::{self, RunSpec};

/// A hash of the source files that compute results, including changes that are not committed. So a sweep does
/// not reuse rows that a different version of the code computed.
const SOURCES: &str = env!("PAGESET_SOURCES");
/// Number of hexadecimal digits of a key.
pub const DIGITS: usize = 32;

/// Makes the keys of many runs. `Keys` reads each machine file and each recording only once.
#[derive(Debug, Default)]
pub struct Keys {
    /// The text of each machine file, by the name of the machine.
    machines: HashMap<String, String>,
    recordings: HashMap<PathBuf, String>,
}

impl Keys {
    /// Returns the key of a run.
    ///
    /// # Errors
    ///
    /// Fails if the machine, a policy file or the recording of the run cannot be read.
    pub fn of(&mut self, spec: &RunSpec) -> Result<String> {
        let machine = match self.machines.get(&spec.machine) {
            Some(text) => text,
            None => {
                let text = simulate::machine_text(&spec.machine)?;
                self.machines.entry(spec.machine.clone()).or_insert(text)
            }
        };
        let mut hash = Fnv::new();
        for part in [SOURCES, env!("CARGO_PKG_VERSION"), &canonical(spec), machine.as_str()] {
            hash.add(part.as_bytes());
            hash.add(b"\0");
        }
        // The run's policy and the policy `kernel_of` may be files. The policy `kernel_of` chooses the kernel
        // version of everything around the allocator.
        for policy in std::iter::once(&spec.policy).chain(&spec.kernel_of) {
            if names_policy_file(policy) {
                hash.add(rules(Path::new(policy))?.as_bytes());
                hash.add(b"\0");
            }
        }
        if let Some(path) = simulate::recording(&spec.workload) {
            if !self.recordings.contains_key(path) {
                self.recordings.insert(path.to_owned(), contents(path)?);
            }
            hash.add(self.recordings[path].as_bytes());
        }
        Ok(hash.text())
    }
}

/// Returns the rules of the policy in a file. The key does not depend on the file's text, because different
/// texts may have the same rules.
fn rules(policy: &Path) -> Result<String> {
    let policy = read_policy(policy)?;
    Ok(policy_to_toml(policy) + policy.name + policy.kernel)
}

/// Returns the key of a run: a hash of the run, of the code that computes results, and of the files that the
/// run names. Equal keys mean equal results, on any computer.
///
/// # Errors
///
/// Fails if the machine, a policy file or the recording cannot be read.
pub fn key(spec: &RunSpec) -> Result<String> {
    Keys::default().of(spec)
}

/// Returns the key of a replay: a hash of the code, of the recording, and of the names of all candidates with
/// their settings.
///
/// # Errors
///
/// Fails if the recording cannot be read.
pub fn replay_key(recording: &Path, candidates: &[String]) -> Result<String> {
    let contents = contents(recording)?;
    let mut hash = Fnv::new();
    let fixed = [SOURCES, env!("CARGO_PKG_VERSION"), "replay", contents.as_str()];
    for part in fixed.into_iter().chain(candidates.iter().map(String::as_str)) {
        hash.add(part.as_bytes());
        hash.add(b"\0");
    }
    Ok(hash.text())
}

/// Returns the run as one line of JSON. Equal runs have equal lines.
#[must_use]
pub fn canonical(spec: &RunSpec) -> String {
    serde_json::to_string(spec).expect("a run has only text and numbers")
}

/// Whether a text has the form of a key.
#[must_use]
pub fn is_key(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(is_digit)
}

/// Whether a byte is a digit of a key.
#[must_use]
pub fn is_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// Returns a hash of a recording's bytes.
fn contents(recording: &Path) -> Result<String> {
    let name = || format!("{}: cannot read this recording", recording.display());
    let mut reader = BufReader::new(File::open(recording).with_context(name)?);
    let (mut hash, mut bytes) = (Fnv::new(), [0; 1 << 14]);
    loop {
        match reader.read(&mut bytes).with_context(name)? {
            0 => return Ok(hash.text()),
            count => hash.add(&bytes[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(spec: &RunSpec) -> String {
        super::key(spec).unwrap()
    }

    #[test]
    fn the_hash_is_that_of_its_authors() {
        // The expected hashes are from test vectors of the authors of FNV-1a.
        let hash = |bytes: &[u8]| {
            let mut hash = Fnv::new();
            hash.add(bytes);
            hash.text()
        };
        assert_eq!(hash(b""), "6c62272e07bb014262b821756295c58d");
        assert_eq!(hash(b"a"), "d228cb696f1a8caf78912b704e4a8964");
    }

    #[test]
    fn runs_and_machines_have_different_keys() {
        let spec = RunSpec::new("epyc-2", "page_fault1", "linux-6.12");
        assert!(is_key(&key(&spec)));
        assert_eq!(key(&spec), key(&spec.clone()));
        assert_ne!(key(&spec), key(&RunSpec { seed: 2, ..spec.clone() }));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("machine.toml");
        let here = RunSpec { machine: path.display().to_string(), ..spec };
        let of_text = |text: &str| {
            std::fs::write(&path, text).unwrap();
            key(&here)
        };
        assert_ne!(of_text("one"), of_text("other"));
    }

    #[test]
    fn a_policy_that_was_edited_has_another_key() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine.toml");
        let spec = RunSpec::new("epyc-2", "page_fault1", &path.display().to_string());
        let of_rules = |text: &str| {
            std::fs::write(&path, format!("base = \"linux-6.18\"\n{text}")).unwrap();
            key(&spec)
        };
        let half = of_rules("free_high.drains = { part = 0.5 }");
        assert_ne!(half, of_rules("free_high.drains = { part = 0.25 }"));
        assert_eq!(half, of_rules("# in other words\n[free_high.drains]\npart = \"1/2\""));
    }

    #[test]
    fn a_recording_that_has_changed_has_another_key() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.pgtrace");
        let spec = RunSpec::new("epyc-2", &format!("trace:{}", path.display()), "linux-6.12");
        let of_bytes = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            key(&spec)
        };
        assert_ne!(of_bytes(b"one"), of_bytes(b"other"));
        assert_eq!(of_bytes(b"one"), of_bytes(b"one"));
        let replay = |candidates: &[&str]| {
            replay_key(&path, &candidates.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
        };
        assert_eq!(replay(&["a", "b"]), replay(&["a", "b"]));
        assert_ne!(replay(&["a", "b"]), replay(&["ab"]));
        assert!(replay_key(Path::new("/nowhere"), &[]).is_err());
    }
}
