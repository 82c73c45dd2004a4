//! The file where changes are written down before they are made.
//!
//! A line in JSON says which process has the file, and each line after it is a change. The process keeps the
//! file locked as long as it lives: the kernel drops the lock of a killed one. So lines in a file without a
//! lock are of a process that was killed, and an empty file is of one that has put everything back. A line
//! without its end was not written completely, and its change was not made.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::SettingError;
use super::change::Change;

/// Another name for each start of the machine.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// Longest file that is read. Each change has less than 300 bytes.
const BYTES_MAX: u64 = 64 << 10;
/// A process that looks for changes that were left has the lock for a moment. So the lock is tried this
/// often, with this pause in between.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(20);

/// The process that changes settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its number.
    pub pid: u32,
    /// Its command line.
    pub command: String,
    /// When it began, in seconds since 1970.
    began_s: u64,
    /// The start of the machine that it ran in.
    boot: String,
}

impl Owner {
    pub(super) fn this_process(command: &str) -> Self {
        Self { pid: std::process::id(), command: command.to_owned(), began_s: now_s(), boot: boot() }
    }

    /// Whether the machine was not started again since. If it was, its settings are those that it starts
    /// with.
    pub(super) fn is_of_this_boot(&self) -> bool {
        self.boot == boot()
    }

    /// For how long it has run, or would have.
    #[must_use]
    pub fn age(&self) -> Duration {
        Duration::from_secs(now_s().saturating_sub(self.began_s))
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn boot() -> String {
    fs::read_to_string(BOOT).unwrap_or_default().trim().to_owned()
}

/// The file, locked by this process.
#[derive(Debug)]
pub(super) struct Record {
    file: File,
    path: PathBuf,
}

impl Record {
    /// Clears the file, and writes its owner.
    pub(super) fn begin(&mut self, owner: &Owner) -> Result<(), SettingError> {
        self.clear()?;
        self.append(owner)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Locks the first of `paths` whose directory can be written.
    pub(super) fn lock(paths: &[PathBuf]) -> Result<Self, SettingError> {
        let mut refused = None;
        for path in paths {
            match open(path) {
                Ok(file) => return Self::lock_file(file, path.clone()),
                Err(error) => refused = refused.or(Some((path.clone(), error))),
            }
        }
        let (path, source) = refused.unwrap_or_else(|| (PathBuf::new(), io::ErrorKind::NotFound.into()));
        Err(match source.kind() {
            io::ErrorKind::PermissionDenied => SettingError::NotRoot { path },
            _ => SettingError::NoRecord { path, source },
        })
    }

    fn lock_file(file: File, path: PathBuf) -> Result<Self, SettingError> {
        for _ in 0..TRIES {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { file, path }),
                Err(rustix::io::Errno::WOULDBLOCK) => thread::sleep(PAUSE),
                Err(error) => return Err(SettingError::NoRecord { path, source: error.into() }),
            }
        }
        let owner = Content::read(&file).ok().and_then(|content| content.owner);
        let unknown = Owner { pid: 0, command: String::new(), began_s: now_s(), boot: String::new() };
        Err(SettingError::Busy { owner: owner.unwrap_or(unknown) })
    }

    /// Writes a line down, by one call, so that a killed process leaves it whole or leaves nothing.
    pub(super) fn append(&mut self, line: &impl Serialize) -> Result<(), SettingError> {
        let mut text = serde_json::to_string(line).map_err(|error| self.refused(error.into()))?;
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(|error| self.refused(error))
    }

    /// Everything is put back.
    pub(super) fn clear(&mut self) -> Result<(), SettingError> {
        let cleared = self.file.set_len(0).and_then(|()| self.file.rewind());
        cleared.map_err(|error| self.refused(error))
    }

    pub(super) fn content(&self) -> Content {
        Content::read(&self.file).unwrap_or_default()
    }

    fn refused(&self, source: io::Error) -> SettingError {
        SettingError::NoRecord { path: self.path.clone(), source }
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        // The mode does not depend on the umask: only root may write a file that root reads.
        DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
    }
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o644).open(path)
}

/// The contents of the file of changes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) owner: Option<Owner>,
    pub(super) changes: Vec<Change>,
}

impl Content {
    /// The lines of a process that no longer lives; `None` if it lives.
    pub(super) fn of_killed(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        // The lock is of a process that lives. Dropped with the file.
        flock(&file, FlockOperation::NonBlockingLockShared).ok()?;
        Self::read(&file).ok()
    }

    fn read(mut file: &File) -> io::Result<Self> {
        let mut text = String::new();
        file.rewind()?;
        file.take(BYTES_MAX).read_to_string(&mut text)?;
        // Text behind the last end of a line is of a line that was not written completely.
        let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let owner = lines.next().and_then(parsed);
        Ok(Self { owner, changes: lines.map_while(parsed).collect() })
    }
}

fn parsed<T: DeserializeOwned>(line: &str) -> Option<T> {
    serde_json::from_str(line).ok()
}
