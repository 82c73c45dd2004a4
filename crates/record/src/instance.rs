//! A recorder's own instance of the kernel's tracing: buffers and settings that nobody else uses.
//!
//! Its directory is locked as long as the recorder lives. A directory of a recorder that nobody has locked is left from
//! one that was killed, and is removed.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};

use crate::error::RecordError;
use crate::probes;
use crate::tracefs::{self, Tracefs};

/// What every instance of a recorder begins with.
const PREFIX: &str = "pageset-";
/// How often another recorder may take a new instance for one that was left.
const TRIES_MAX: usize = 10;

/// An instance. Dropped, it is removed; files below it must be closed before.
#[derive(Debug)]
pub(crate) struct Instance {
    tracefs: Tracefs,
    directory: PathBuf,
    name: String,
    /// Its lock, held as long as this is open.
    lock: Option<File>,
}

impl Instance {
    /// Makes one, with recording switched off.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn create(tracefs: &Tracefs) -> Result<Self, RecordError> {
        let instances = tracefs.path("instances");
        let process = std::process::id();
        for attempt in 0..TRIES_MAX {
            let name = if attempt == 0 {
                format!("{PREFIX}{process}")
            } else {
                format!("{PREFIX}{process}-{attempt}")
            };
            let directory = instances.join(&name);
            match fs::create_dir(&directory) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(cannot_make(&directory, error)),
            }
            // Another recorder that starts now may take it for one that was left, until it is locked.
            let Some(lock) = lock(&directory) else { continue };
            let instance = Self { tracefs: tracefs.clone(), directory, name, lock: Some(lock) };
            instance.set("tracing_on", "0")?;
            return Ok(instance);
        }
        Err(RecordError::io(instances, "make a directory in", io::ErrorKind::AlreadyExists.into()))
    }

    /// Its name, for what belongs to it elsewhere.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// A file or directory in it.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory.join(name)
    }

    /// Writes a setting.
    pub(crate) fn set(&self, name: impl AsRef<Path>, text: &str) -> Result<(), RecordError> {
        tracefs::write(&self.path(name), text)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        drop(self.set("tracing_on", "0"));
        self.lock = None;
        remove(&self.tracefs, &self.name);
    }
}

/// Removes the instances of recorders that were killed; returns their names.
pub(crate) fn remove_stale(tracefs: &Tracefs) -> Vec<String> {
    let entries = fs::read_dir(tracefs.path("instances")).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter(|name| name.starts_with(PREFIX))
        .filter(|name| lock(&tracefs.path("instances").join(name)).is_some() && remove(tracefs, name))
        .collect()
}

/// The lock of an instance, unless somebody has it or the instance is gone.
fn lock(directory: &Path) -> Option<File> {
    let file = File::open(directory).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let (mine, there) = (file.metadata().ok()?, fs::metadata(directory).ok()?);
    (mine.ino() == there.ino()).then_some(file)
}

/// Whether the instance could be removed, with the probes that belong to it.
fn remove(tracefs: &Tracefs, name: &str) -> bool {
    let is_removed = fs::remove_dir(tracefs.path("instances").join(name)).is_ok();
    probes::remove(tracefs, name);
    is_removed
}

fn cannot_make(directory: &Path, error: io::Error) -> RecordError {
    let place = directory.parent().unwrap_or(directory);
    match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        Some(rustix::io::Errno::ROFS) => tracefs::read_only(place),
        Some(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) => tracefs::denied(place),
        _ => RecordError::io(directory, "make", error),
    }
}
