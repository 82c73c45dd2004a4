//! Finished runs on disk: one line of JSON each, so that a sweep can be ended at any time and goes on later.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::grid;
use crate::simulate::RunSpec;

/// One finished run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FinishedRun {
    /// Of the run and of what decides its result; see [`key`].
    pub(crate) key: String,
    /// The run.
    pub(crate) spec: RunSpec,
    /// What came out.
    pub(crate) result: Map<String, Value>,
}

/// What a run is found again by: a hash of the run, the program's commit and the text of its machine. Another commit
/// may give another result, so its rows are not used.
pub(crate) fn key(spec: &RunSpec, machine_text: &str) -> String {
    let commit = option_env!("PAGESET_COMMIT").unwrap_or(env!("CARGO_PKG_VERSION"));
    let text = [commit, &grid::canonical(spec), machine_text].join("\0");
    format!("{:032x}", fnv(text.as_bytes()))
}

/// FNV-1a of 128 bits; constants from its authors' description (Fowler, Noll, Vo).
fn fnv(bytes: &[u8]) -> u128 {
    let step =
        |hash: u128, byte: &u8| (hash ^ u128::from(*byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, step)
}

/// Finished runs by their key.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    finished: HashMap<String, FinishedRun>,
}

impl Rows {
    /// The finished run with this key.
    pub(crate) fn get(&self, key: &str) -> Option<&FinishedRun> {
        self.finished.get(key)
    }

    pub(crate) fn insert(&mut self, run: FinishedRun) {
        self.finished.insert(run.key.clone(), run);
    }

    /// Reads a file of rows and returns its length up to the last complete line. A program that is killed while it
    /// writes leaves half a line at the end, which does not count.
    pub(crate) fn read(&mut self, path: &Path) -> Result<u64> {
        let name = || path.display();
        let file = File::open(path).with_context(|| format!("{}: cannot read these rows", name()))?;
        let mut reader = BufReader::new(file);
        let mut complete = 0;
        let mut line = Vec::new();
        for number in 1_u64.. {
            line.clear();
            let length = reader.read_until(b'\n', &mut line);
            let length = length.with_context(|| format!("{}: cannot read these rows", name()))?;
            if length == 0 || line.last() != Some(&b'\n') {
                break;
            }
            let run: FinishedRun = serde_json::from_slice(&line).map_err(|error| {
                anyhow!("{}:{number}: this is no row of a sweep ({error}); remove the line", name())
            })?;
            self.insert(run);
            complete += length as u64;
        }
        Ok(complete)
    }
}

/// A file that rows are added to.
#[derive(Debug)]
pub(crate) struct RowsFile {
    path: PathBuf,
    file: File,
}

impl RowsFile {
    /// Opens or makes a file, after reading the rows that are in it.
    pub(crate) fn open(path: &Path, rows: &mut Rows) -> Result<Self> {
        let complete = if path.exists() { rows.read(path)? } else { 0 };
        let open = || {
            let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
            file.set_len(complete)?;
            file.seek(SeekFrom::End(0))?;
            Ok::<_, std::io::Error>(file)
        };
        let file = open().with_context(|| format!("{}: cannot write rows", path.display()))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Adds a row at the end, in one write.
    pub(crate) fn append(&mut self, run: &FinishedRun) -> Result<()> {
        let mut line = serde_json::to_vec(run)?;
        line.push(b'\n');
        self.file.write_all(&line).with_context(|| format!("{}: cannot write rows", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(seed: u64) -> FinishedRun {
        let spec: RunSpec = serde_json::from_value(serde_json::json!({
            "machine": "m", "workload": "w", "policy": "p", "cpus": null, "batch": null, "high": null,
            "seed": seed, "warmup_ms": null, "duration_ms": null, "settings": {}
        }))
        .unwrap();
        let result = Map::from_iter([("score_per_s".to_owned(), Value::from(seed))]);
        FinishedRun { key: key(&spec, "machine"), spec, result }
    }

    #[test]
    fn the_hash_is_that_of_its_authors() {
        // From the authors' test vectors.
        assert_eq!(fnv(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(fnv(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }

    #[test]
    fn keys_tell_runs_and_machines_apart() {
        let (one, two) = (finished(1), finished(2));
        assert_ne!(one.key, two.key);
        assert_ne!(one.key, key(&one.spec, "another machine"));
        assert_eq!(one.key, finished(1).key);
    }

    #[test]
    fn half_a_line_at_the_end_is_written_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.jsonl");
        let mut rows = Rows::default();
        let mut file = RowsFile::open(&path, &mut rows).unwrap();
        file.append(&finished(1)).unwrap();
        file.append(&finished(2)).unwrap();
        drop(file);
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 9]).unwrap();
        let mut rows = Rows::default();
        let mut file = RowsFile::open(&path, &mut rows).unwrap();
        assert!(rows.get(&finished(1).key).is_some() && rows.get(&finished(2).key).is_none());
        file.append(&finished(2)).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), text);
    }

    #[test]
    fn a_damaged_line_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.jsonl");
        std::fs::write(&path, "{}\n").unwrap();
        let error = Rows::default().read(&path).unwrap_err().to_string();
        assert!(error.contains("rows.jsonl:1: this is no row of a sweep"), "{error}");
    }
}
