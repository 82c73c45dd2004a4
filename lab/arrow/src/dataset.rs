//! Stores the results of many tasks in one directory. Each result is a Parquet file whose name is the task's
//! key.
//!
//! `KEY.parquet` is in a subdirectory named by the first two digits of the key, so that no directory gets too
//! large. A file appears complete or not at all, and is written once. Race: two computers store the same key.
//! Either computer may win, because both computers write the same contents: the key determines the contents.
//! Writers need no lock. Readers read the files `DIRECTORY/*/*.parquet`.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tempfile::NamedTempFile;

/// Number of digits of a key.
const DIGITS: usize = 32;
/// Bytes of the smallest Parquet file: its magic numbers and the length of its metadata.
const BYTES_MIN: u64 = 12;

/// A directory of results.
#[derive(Clone, Debug)]
pub struct Dataset {
    directory: PathBuf,
}

/// The outcome of [`Dataset::store`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The result was not there, and was stored.
    New,
    /// A result with this key existed already.
    Already,
}

impl Dataset {
    /// Opens the dataset in this directory. Creates the directory if needed.
    ///
    /// # Errors
    ///
    /// An error if the directory cannot be created.
    pub fn at(directory: &Path) -> Result<Self> {
        fs::create_dir_all(directory)
            .with_context(|| format!("{}: cannot make this directory", directory.display()))?;
        Ok(Self { directory: directory.to_owned() })
    }

    /// Returns the path of the result with this key, whether the result exists or not.
    ///
    /// # Errors
    ///
    /// An error if `key` does not have the form of a key: 32 digits, 0 to 9 and a to f.
    pub fn path(&self, key: &str) -> Result<PathBuf> {
        if !is_key(key) {
            bail!("`{key}` is not a key: a key has {DIGITS} digits, 0 to 9 and a to f");
        }
        Ok(self.directory.join(&key[..2]).join(format!("{key}.parquet")))
    }

    /// Returns the keys of the existing results. Files that are too small for Parquet do not count, because a
    /// computer that loses power can leave empty files. The call takes O(files).
    ///
    /// # Errors
    ///
    /// An error if a directory cannot be read.
    pub fn keys(&self) -> Result<HashSet<String>> {
        let mut keys = HashSet::new();
        for part in entries(&self.directory)? {
            if part.path().is_dir() {
                for file in entries(&part.path())? {
                    keys.extend(key_of(&file));
                }
            }
        }
        Ok(keys)
    }

    /// Stores a result in the form of [`parquet`](crate::file::parquet), unless a result with this key
    /// exists.
    ///
    /// # Errors
    ///
    /// An error if the file cannot be written, for example because the disk is full. No partial file stays.
    pub fn store(&self, key: &str, parquet: &[u8]) -> Result<Stored> {
        let path = self.path(key)?;
        let cannot_write = || format!("{}: cannot write this result", path.display());
        let part = path.parent().expect("a result is in a part");
        fs::create_dir_all(part).with_context(cannot_write)?;
        let mut file = tempfile::Builder::new()
            .prefix(".")
            .suffix(".part")
            .tempfile_in(part)
            .with_context(cannot_write)?;
        file.write_all(parquet).with_context(cannot_write)?;
        if fs::metadata(&path).is_ok_and(|there| there.len() < BYTES_MIN) {
            file.persist(&path).map_err(|error| error.error).with_context(cannot_write)?;
            return Ok(Stored::New);
        }
        keep(file, &path).with_context(cannot_write)
    }

    /// Reads the rows of the results with these `keys`, in the order of `keys`.
    ///
    /// # Errors
    ///
    /// An error if a result is missing or damaged, or has other columns than the first result.
    pub fn read<'k>(&self, keys: impl IntoIterator<Item = &'k str>) -> Result<RecordBatch> {
        let mut batches = Vec::new();
        for key in keys {
            let path = self.path(key)?;
            batches.extend(read(&path).with_context(|| {
                format!("{}: this result cannot be read; delete it, and it is computed again", path.display())
            })?);
        }
        let Some(first) = batches.first() else { bail!("{}: no results", self.directory.display()) };
        concat_batches(&first.schema(), &batches)
            .with_context(|| format!("{}: results do not have the same columns", self.directory.display()))
    }
}

fn keep(file: NamedTempFile, path: &Path) -> io::Result<Stored> {
    match file.persist_noclobber(path) {
        Ok(_) => Ok(Stored::New),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(Stored::Already),
        Err(error) => Err(error.error),
    }
}

fn read(path: &Path) -> Result<Vec<RecordBatch>> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?.build()?;
    Ok(reader.collect::<Result<_, _>>()?)
}

fn entries(directory: &Path) -> Result<Vec<fs::DirEntry>> {
    let listed = fs::read_dir(directory).and_then(Iterator::collect);
    listed.with_context(|| format!("{}: cannot read this directory", directory.display()))
}

fn key_of(file: &fs::DirEntry) -> Option<String> {
    let path = file.path();
    let key = path.file_stem().and_then(OsStr::to_str).filter(|key| is_key(key))?;
    let is_result = path.extension() == Some(OsStr::new("parquet"));
    (is_result && file.metadata().is_ok_and(|there| there.len() >= BYTES_MIN)).then(|| key.to_owned())
}

fn is_key(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::{file, rows};

    #[derive(Serialize, Deserialize)]
    struct Score {
        pages: u64,
    }

    fn result(pages: u64) -> Vec<u8> {
        file::parquet(&rows::batch(&[Score { pages }]).unwrap()).unwrap()
    }

    fn key(number: u128) -> String {
        format!("{number:032x}")
    }

    fn dataset() -> (tempfile::TempDir, Dataset) {
        let directory = tempfile::tempdir().unwrap();
        let dataset = Dataset::at(&directory.path().join("results")).unwrap();
        (directory, dataset)
    }

    #[test]
    fn a_result_is_written_once_and_found_again() {
        let (_directory, dataset) = dataset();
        assert_eq!(dataset.store(&key(1), &result(5)).unwrap(), Stored::New);
        assert_eq!(dataset.store(&key(1), &result(6)).unwrap(), Stored::Already);
        assert_eq!(dataset.store(&key(u128::MAX), &result(7)).unwrap(), Stored::New);
        assert_eq!(dataset.keys().unwrap(), HashSet::from([key(1), key(u128::MAX)]));
        let rows = dataset.read([&*key(u128::MAX), &*key(1)]).unwrap();
        assert_eq!(rows, rows::batch(&[Score { pages: 7 }, Score { pages: 5 }]).unwrap());
    }

    #[test]
    fn what_others_put_there_is_no_result() {
        let (directory, dataset) = dataset();
        dataset.store(&key(1), &result(5)).unwrap();
        let part = directory.path().join("results/00");
        for name in ["notes.parquet", ".00.part", "README"] {
            fs::write(part.join(name), "precious").unwrap();
        }
        fs::write(directory.path().join("results/README"), "precious").unwrap();
        assert_eq!(dataset.keys().unwrap().len(), 1);
        for wrong in ["", "../../etc/passwd", "é0000000000000000000000000000000", "0F"] {
            assert!(dataset.path(wrong).unwrap_err().to_string().contains("is not a key"), "{wrong}");
        }
    }

    #[test]
    fn an_empty_file_is_written_over_and_a_damaged_one_is_named() {
        let (_directory, dataset) = dataset();
        let path = dataset.path(&key(1)).unwrap();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        assert!(dataset.keys().unwrap().is_empty());
        assert_eq!(dataset.store(&key(1), &result(5)).unwrap(), Stored::New);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 9]).unwrap();
        let error = dataset.read([&*key(1)]).unwrap_err().to_string();
        assert!(error.contains(&*key(1)) && error.contains("delete it"), "{error}");
    }

    #[test]
    fn equal_rows_make_equal_bytes() {
        assert_eq!(result(5), result(5));
        assert_ne!(result(5), result(6));
    }

    #[test]
    fn what_cannot_be_written_is_an_error() {
        let (directory, dataset) = dataset();
        // A file has the name of the needed directory. Storing must fail, and must leave the file unchanged.
        fs::write(directory.path().join("results/00"), "precious").unwrap();
        let error = dataset.store(&key(1), &result(5)).unwrap_err().to_string();
        assert!(error.contains("cannot write this result"), "{error}");
        assert_eq!(fs::read_to_string(directory.path().join("results/00")).unwrap(), "precious");
    }
}
