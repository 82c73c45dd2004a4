//! Changes settings of the running kernel for a while, and puts the old values back when the program ends,
//! even by a panic. If the program is killed, a later command reports the changes that are left.
//!
//! Code that changes a setting goes through [`Settings::begin`]. `record` is the file where changes are
//! written down first. `change` is a setting with its values before and after. `changes` makes and undoes
//! changes. `left` has the changes that a killed process did not undo. `told` has the sentences about changed
//! settings.
//!
//! The file of changes is not flushed to the disk, because a setting below `/proc/sys` lasts only until the
//! machine stops. The file has to outlive processes, but means nothing after a boot.

mod change;
mod changes;
mod left;
mod record;
#[cfg(test)]
mod tests;
mod told;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

pub use changes::Changes;
pub use left::Left;
pub use record::Owner;
pub use told::{PutBack, Undone};

use change::Assignment;
use record::{Content, Record};

/// The directory of the kernel's settings.
const ROOT: &str = "/proc/sys";
/// Places for the file of changes. The first place that can be written is used.
const RECORDS: [&str; 2] = ["/run/pageset/settings", "/var/lib/pageset/settings"];

/// The kernel's settings, and the file of changes, where each change of a setting is written down.
#[derive(Clone, Debug)]
pub struct Settings {
    root: PathBuf,
    /// Places for the file of changes, the preferred place first.
    records: Vec<PathBuf>,
}

/// The reason why a setting cannot be read or changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SettingError {
    /// The text is not a setting in the form that `sysctl` takes.
    #[error("`{0}` is not a setting: write it like vm.percpu_pagelist_high_fraction=64")]
    NotASetting(String),
    /// The kernel acts when a program writes this setting, so there is no value to put back.
    #[error("{0} is no value: the kernel acts when it is written, and nothing puts that back")]
    AnAct(String),
    /// The kernel does not have the setting, or does not show its value.
    #[error("{path}: cannot read this setting: {source}")]
    Unreadable {
        /// The setting's file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// This user may not change settings.
    #[error("{path}: only root may change a setting")]
    NotRoot {
        /// The file that may not be written.
        path: PathBuf,
    },
    /// The kernel refuses the value.
    #[error("{path}: the kernel does not take {value}: {source}")]
    Refused {
        /// The setting's file.
        path: PathBuf,
        /// The value that the kernel refuses.
        value: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The kernel stored another value than the written value. The old value was put back.
    #[error("{key}: the kernel makes {now} of {asked}; it was put back")]
    Altered {
        /// The setting.
        key: String,
        /// The written value.
        asked: String,
        /// The value that the kernel stored.
        now: String,
    },
    /// Another process changes settings. Of two processes that change settings at once, each would put back
    /// the other's value.
    #[error("another process changes settings now: {owner}; wait until it has ended")]
    Busy {
        /// The process that changes settings now.
        owner: Owner,
    },
    /// A process was killed before it put the old values back.
    #[error("{0}")]
    Left(Box<Left>),
    /// The file of changes cannot be written, so nothing is changed.
    #[error("{path}: cannot write down which setting changes: {source}; nothing was changed")]
    NoRecord {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl Settings {
    /// The settings of the running kernel. Changes are written down in `/run/pageset/settings`, or in
    /// `/var/lib/pageset/settings` where `/run` cannot be written.
    #[must_use]
    pub fn of_this_machine() -> Self {
        Self { root: ROOT.into(), records: RECORDS.map(PathBuf::from).to_vec() }
    }

    /// The settings below `root`, a directory like `/proc/sys`. `record` is the path of the file of changes.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>, record: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), records: vec![record.into()] }
    }

    /// Checks that this process could now make the change in `text`, such as `vm.stat_interval=5`.
    ///
    /// # Errors
    /// An error if `text` is no setting of `vm`, or if this process may not write the setting.
    pub fn check(&self, text: &str) -> Result<(), SettingError> {
        let assignment = Assignment::parse(text)?;
        assignment.change(&self.root)?;
        let path = path_of(&self.root, assignment.key());
        fs::OpenOptions::new().write(true).open(&path).map(drop).map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => SettingError::NotRoot { path },
            _ => SettingError::Refused { path, value: assignment.value().to_owned(), source },
        })
    }

    /// Locks the file of changes. Until the result is dropped, no other process can change settings through
    /// this crate. `command` names this process in messages of other processes.
    ///
    /// # Errors
    /// An error if another process has locked the file, if a killed process has left settings changed, or if
    /// the file cannot be written.
    pub fn begin(&self, command: &str) -> Result<Changes, SettingError> {
        let mut record = Record::lock(&self.records)?;
        // Lock the file before reading it. If this process read the file first, the file's owner could be
        // killed before this process has the lock.
        if let Some(left) = Left::of(record.content(), &self.root, record.path()).or_else(|| self.left()) {
            return Err(SettingError::Left(Box::new(left)));
        }
        record.begin(&Owner::this_process(command))?;
        Ok(Changes::new(self.root.clone(), record))
    }

    /// Returns the changes that a killed process did not put back. `None` if there are no such changes, or if
    /// all these changes are undone already. The call needs no privileges.
    #[must_use]
    pub fn left(&self) -> Option<Left> {
        self.records.iter().find_map(|path| Left::of(Content::of_killed(path)?, &self.root, path))
    }
}

fn path_of(root: &Path, key: &str) -> PathBuf {
    root.join(key.replace('.', "/"))
}

/// The present value of a setting.
fn read(root: &Path, key: &str) -> Result<String, SettingError> {
    let path = path_of(root, key);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(source) => Err(SettingError::Unreadable { path, source }),
    }
}

/// Writes a setting. A missing file is not created, because the kernel has no such setting.
fn write(root: &Path, key: &str, value: &str) -> Result<(), SettingError> {
    let path = path_of(root, key);
    let written = fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(&path)
        .and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes()));
    written.map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => SettingError::NotRoot { path },
        _ => SettingError::Refused { path, value: value.to_owned(), source },
    })
}
