//! Keeps finished runs in a file, one line of JSON for each run. So a sweep can be stopped at any time and
//! continued later.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use pageset_study::key;
use pageset_study::simulate::{RunResult, RunSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Limit of the number of bytes in a line. Guess: a row has about 1 KiB, and more if its paths are long.
const LINE_MAX: u64 = 1 << 20;

/// One finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinishedRun {
    /// The key of the run: a hash of everything that decides the run's result.
    pub key: String,
    /// The description of the run.
    pub spec: RunSpec,
    /// The result of the run.
    pub result: Map<String, Value>,
}

impl FinishedRun {
    fn of_line(line: &[u8]) -> Result<Self, String> {
        let run: Self = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        if key::is_key(&run.key) { Ok(run) } else { Err(format!("`{}` is not a key", run.key)) }
    }

    /// Makes a finished run from a key, a run and its result.
    ///
    /// # Errors
    ///
    /// Returns an error of the JSON encoder, which is not known to occur.
    pub fn new(key: String, spec: RunSpec, result: &RunResult) -> Result<Self> {
        let Value::Object(result) = serde_json::to_value(result)? else {
            bail!("a result is written as a JSON object")
        };
        Ok(Self { key, spec, result })
    }

    /// Parses the result of the run.
    ///
    /// # Errors
    ///
    /// Fails if the row is from another version of the simulator, with other fields.
    pub fn result(&self) -> Result<RunResult> {
        let result = serde_json::from_value(Value::Object(self.result.clone()));
        result.with_context(|| format!("the run {} has another version's result", self.key))
    }

    /// Returns the run as a line of the file, with a line feed at the end.
    pub fn line(&self) -> Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }
}

/// The text before the key in every row. `AFTER_KEY` is the text after the key.
const BEFORE_KEY: &[u8] = b"{\"key\":\"";
const AFTER_KEY: &[u8] = b"\",\"spec\":{\"machine\":\"";

/// Whether the incomplete last line of a file could be the beginning of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beginning {
    /// The line has a key at the position where a row has its key, and continues like a row.
    Certain,
    /// The line is too short to tell whether it is the beginning of a row.
    Possible,
    /// The line is not the beginning of a row.
    Not,
}

impl Beginning {
    fn of(text: &[u8]) -> Self {
        let (key_at, key_end) = (BEFORE_KEY.len(), BEFORE_KEY.len() + key::DIGITS);
        let fits = text.iter().enumerate().all(|(at, &byte)| match at {
            _ if at < key_at => byte == BEFORE_KEY[at],
            _ if at < key_end => key::is_digit(byte),
            _ => AFTER_KEY.get(at - key_end).is_none_or(|known| byte == *known),
        });
        match text.len() >= key_end + AFTER_KEY.len() {
            _ if !fits => Self::Not,
            true => Self::Certain,
            false => Self::Possible,
        }
    }
}

/// The number of bytes of a file that are whole rows, and the ending of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Number of bytes up to the end of the last row.
    pub rows: u64,
    /// The ending of the file. A sweep repairs the endings `Row` and `Half` before it adds a row.
    pub ending: Ending,
}

/// The ending of a file of rows: after a line, without a line feed, or inside a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The file ends with a whole line, or is empty.
    Line,
    /// The file ends with a row without a line feed, for example because an editor has removed the line feed.
    Row,
    /// The file ends with the beginning of a row, for example because the program was killed while it wrote
    /// the row.
    Half,
}

/// Finished runs, each with its key.
#[derive(Debug, Default, PartialEq)]
pub struct Rows {
    finished: HashMap<String, FinishedRun>,
}

impl Rows {
    /// Returns the finished run with the key `key`.
    pub fn get(&self, key: &str) -> Option<&FinishedRun> {
        self.finished.get(key)
    }

    /// Returns all finished runs, in no particular order.
    pub fn all(&self) -> impl Iterator<Item = &FinishedRun> {
        self.finished.values()
    }

    /// Adds a finished run. The new run replaces an older run with the same key.
    pub fn insert(&mut self, run: FinishedRun) {
        self.finished.insert(run.key.clone(), run);
    }

    /// Reads a file of rows. Ignores an incomplete row at the end.
    pub fn read(&mut self, path: &Path) -> Result<Extent> {
        let name = || format!("{}: cannot read these rows", path.display());
        self.read_file(&File::open(path).with_context(name)?).with_context(|| path.display().to_string())
    }

    fn read_file(&mut self, file: &File) -> Result<Extent> {
        self.read_from(&mut BufReader::new(file))
    }

    /// Reads rows. If a line is not a row of a sweep, returns an error, because a user may have named another
    /// file by mistake. The incomplete beginning of a row at the end of the file is no error.
    pub fn read_from(&mut self, reader: &mut impl BufRead) -> Result<Extent> {
        const REMEDY: &str = "name another file, or remove the line";
        let mut rows = 0;
        let mut line = Vec::new();
        for number in 1_u64.. {
            line.clear();
            let length =
                reader.by_ref().take(LINE_MAX).read_until(b'\n', &mut line).context("cannot read")? as u64;
            let is_whole = line.last() == Some(&b'\n');
            if length == LINE_MAX && !is_whole {
                bail!("line {number}: this is longer than any row of a sweep; {REMEDY}");
            }
            if length == 0 {
                break;
            }
            match (FinishedRun::of_line(&line), is_whole, Beginning::of(&line)) {
                (Ok(run), ..) => {
                    self.insert(run);
                    rows += length;
                    if !is_whole {
                        return Ok(Extent { rows, ending: Ending::Row });
                    }
                }
                (Err(_), false, Beginning::Certain) => return Ok(Extent { rows, ending: Ending::Half }),
                (Err(_), false, Beginning::Possible) if rows > 0 => {
                    return Ok(Extent { rows, ending: Ending::Half });
                }
                (Err(error), ..) => bail!("line {number}: this is not a row of a sweep ({error}); {REMEDY}"),
            }
        }
        Ok(Extent { rows, ending: Ending::Line })
    }
}

/// A file of rows that a sweep adds rows to.
#[derive(Debug)]
pub(super) struct RowsFile {
    path: PathBuf,
    file: File,
}

impl RowsFile {
    /// Opens or makes a file of rows, and reads its rows. If the file has a line that is not a row, returns
    /// an error and does not change the file.
    pub(super) fn open(path: &Path, rows: &mut Rows) -> Result<Self> {
        let cannot_write = || format!("{}: cannot write rows", path.display());
        let file =
            OpenOptions::new().create(true).read(true).append(true).open(path).with_context(cannot_write)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => bail!("{}: another sweep writes rows here", path.display()),
            // The sweep ignores an error that says that the file cannot be locked, because some file systems
            // have no locks.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let extent = rows
            .read_file(&file)
            .with_context(|| format!("{}: rows are not added to this file", path.display()))?;
        let mut rows_file = Self { path: path.to_owned(), file };
        match extent.ending {
            Ending::Line => {}
            Ending::Row => rows_file.write(b"\n")?,
            Ending::Half => rows_file.file.set_len(extent.rows).with_context(cannot_write)?,
        }
        Ok(rows_file)
    }

    /// Adds a row at the end of the file, in one write.
    pub(super) fn append(&mut self, run: &FinishedRun) -> Result<()> {
        self.write(&run.line()?)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).with_context(|| format!("{}: cannot write rows", self.path.display()))
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
        FinishedRun { key: format!("{seed:032x}"), spec, result }
    }

    /// Makes a file of two rows, removes its last `cut` bytes, appends `end`, and opens the file to add rows.
    /// Returns the result of the opening, and the contents of the file after the opening.
    fn opened(cut: usize, end: &[u8]) -> (Result<Rows>, Vec<u8>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.jsonl");
        let rows = [finished(1), finished(2)].map(|run| run.line().unwrap()).concat();
        std::fs::write(&path, [&rows[..rows.len() - cut], end].concat()).unwrap();
        let mut rows = Rows::default();
        let result = RowsFile::open(&path, &mut rows).map(|_| rows);
        (result, std::fs::read(&path).unwrap())
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
    fn a_row_that_has_lost_its_end_of_line_is_kept() {
        let (rows, after) = opened(1, b"");
        assert!(rows.unwrap().get(&finished(2).key).is_some());
        assert_eq!(after, opened(0, b"").1);
    }

    #[test]
    fn files_of_others_are_never_shortened() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("precious");
        let row = finished(1).line().unwrap();
        let (row, long) = (String::from_utf8(row).unwrap(), "x".repeat(3 << 20));
        let other_key = row.replace("0001", "000x");
        for text in [
            "precious",
            "{",
            "{\"key\":\"1\"}",
            "a,b\n1,2",
            "\0\0",
            "\n",
            &long,
            &other_key,
            other_key.trim(),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = format!("{:#}", RowsFile::open(&path, &mut Rows::default()).unwrap_err());
            assert!(error.contains("precious: rows are not added to this file: line 1: "), "{error}");
            assert!(error.contains("name another file"), "{error}");
            assert_eq!(std::fs::read(&path).unwrap(), text.as_bytes());
        }
        // The file has two rows, and after them a text that is not a row.
        for end in ["precious", "{\"key\":\"precious", "precious\n"] {
            let (rows, after) = opened(0, end.as_bytes());
            assert!(format!("{:#}", rows.unwrap_err()).contains("line 3: this is not a row"));
            assert!(after.ends_with(end.as_bytes()));
        }
    }

    #[test]
    fn two_sweeps_do_not_write_the_same_rows() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.jsonl");
        let first = RowsFile::open(&path, &mut Rows::default()).unwrap();
        let error = RowsFile::open(&path, &mut Rows::default()).unwrap_err().to_string();
        assert!(error.ends_with("another sweep writes rows here"), "{error}");
        drop(first);
        RowsFile::open(&path, &mut Rows::default()).unwrap();
    }

    #[test]
    fn numbers_are_read_as_they_were_written() {
        let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..10_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = 1e6 * (bits >> 11) as f64 / (1_u64 << 53) as f64;
            let mut run = finished(1);
            run.result.insert("score_per_s".to_owned(), number.into());
            assert_eq!(FinishedRun::of_line(&run.line().unwrap()).unwrap(), run);
        }
    }

    #[test]
    fn a_damaged_line_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.jsonl");
        std::fs::write(&path, "{}\n").unwrap();
        let error = format!("{:#}", Rows::default().read(&path).unwrap_err());
        assert!(error.contains("rows.jsonl: line 1: this is not a row of a sweep"), "{error}");
    }
}
