//! The file of changes. Each change is written down in this file before the change is made.
//!
//! The first line, in JSON, names the process that uses the file. Each further line is a change. The process
//! holds a lock on the file while it may change settings, and the kernel releases the lock of a killed
//! process. Therefore lines in a file without a lock come from a killed process. A process that has put
//! everything back leaves the file empty. If the last line has no line end, it was not written completely,
//! and its change was not made.

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

/// The content of this file of the kernel differs for each start of the machine.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// Maximum number of bytes that are read from the file of changes. A change has less than 300 bytes.
const BYTES_MAX: u64 = 64 << 10;
/// Number of attempts to lock the file, with a pause of `PAUSE` between them. A process that only looks for
/// changes holds the lock for a moment.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(20);

/// The process that changes settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The number of the process.
    pub pid: u32,
    /// The command line of the process.
    pub command: String,
    /// The time when the process began to change settings, in seconds since 1970.
    began_s: u64,
    /// The kernel's `boot_id` while the process ran.
    boot: String,
}

impl Owner {
    pub(super) fn this_process(command: &str) -> Self {
        Self { pid: std::process::id(), command: command.to_owned(), began_s: now_s(), boot: boot() }
    }

    /// Whether the machine has not restarted since the process changed settings. A restart resets all
    /// settings.
    pub(super) fn is_of_this_boot(&self) -> bool {
        self.boot == boot()
    }

    /// The time since the process began to change settings, whether the process still runs or not.
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

/// The file of changes, which this process has locked.
#[derive(Debug)]
pub(super) struct Record {
    file: File,
    path: PathBuf,
}

impl Record {
    /// Empties the file, and writes the owner's line.
    pub(super) fn begin(&mut self, owner: &Owner) -> Result<(), SettingError> {
        self.clear()?;
        self.append(owner)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Locks the first file of `paths` that can be opened for writing.
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

    /// Appends a line in a single call, so that a killed process leaves either the whole line or no complete
    /// line.
    pub(super) fn append(&mut self, line: &impl Serialize) -> Result<(), SettingError> {
        let mut text = serde_json::to_string(line).map_err(|error| self.refused(error.into()))?;
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(|error| self.refused(error))
    }

    /// Empties the file, because no change is left to put back.
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
        // Even if the umask is 0, only the owner may write the directory and the file, because root trusts
        // the file.
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
    /// Reads the lines of a process that has ended. `None` if the process still lives.
    pub(super) fn of_killed(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        // If the file's owner lives, the owner holds the lock, and this attempt fails. The lock of this
        // attempt ends when `file` is dropped.
        flock(&file, FlockOperation::NonBlockingLockShared).ok()?;
        Self::read(&file).ok()
    }

    fn read(mut file: &File) -> io::Result<Self> {
        let mut text = String::new();
        file.rewind()?;
        file.take(BYTES_MAX).read_to_string(&mut text)?;
        // Text after the last line end was not written completely.
        let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let owner = lines.next().and_then(parsed);
        Ok(Self { owner, changes: lines.map_while(parsed).collect() })
    }
}

fn parsed<T: DeserializeOwned>(line: &str) -> Option<T> {
    serde_json::from_str(line).ok()
}
