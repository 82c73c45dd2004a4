//! The recorder's own instance of the kernel's tracing, with private buffers and settings.
//!
//! A recorder locks its instance's directory while it lives. So a recorder's directory without a lock is left
//! from a killed recorder, and is removed.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};

use crate::error::RecordError;
use crate::probes;
use crate::tracefs::{self, Tracefs};

/// Beginning of the names of all recorders' instances.
const PREFIX: &str = "pageset-";
/// Maximum number of recorders with the same number.
const NAMES_MAX: usize = 1000;

/// An instance. Dropping it removes it. Files below it must be closed before.
#[derive(Debug)]
pub(crate) struct Instance {
    tracefs: Tracefs,
    directory: PathBuf,
    name: String,
    /// The lock, held as long as this file is open.
    _lock: File,
}

impl Instance {
    /// Makes an instance with recording switched off. First removes the instances of killed recorders, and
    /// returns their names too. A process that makes several instances gives each another `suffix`. If a
    /// process of another PID namespace has the same number, the later one adds a second number to its name.
    ///
    /// # Errors
    /// The system reports an error.
    pub(crate) fn create(tracefs: &Tracefs, suffix: &str) -> Result<(Self, Vec<String>), RecordError> {
        let _turn = turn(tracefs)?;
        let removed = remove_stale(tracefs);
        Ok((Self::make(tracefs, format!("{PREFIX}{}{suffix}", std::process::id()))?, removed))
    }

    /// Makes an instance with this name, or with a name that begins with it. The caller holds the turn.
    fn make(tracefs: &Tracefs, name: String) -> Result<Self, RecordError> {
        let instances = tracefs.path("instances");
        let names = (2..=NAMES_MAX).map(|number| format!("{name}-{number}"));
        let mut made = Err(io::ErrorKind::AlreadyExists.into());
        for name in std::iter::once(name.clone()).chain(names) {
            made = fs::create_dir(instances.join(&name)).map(|()| name);
            if !matches!(&made, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
                break;
            }
        }
        let name = made.map_err(|error| cannot_make(&instances, error))?;
        let directory = instances.join(&name);
        let lock = lock(&directory)
            .ok_or_else(|| RecordError::io(&directory, "lock", io::ErrorKind::WouldBlock.into()))?;
        let instance = Self { tracefs: tracefs.clone(), directory, name, _lock: lock };
        instance.set("tracing_on", "0")?;
        Ok(instance)
    }

    /// Its name, for things elsewhere that belong to it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The path of a file or directory in it.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory.join(name)
    }

    /// Whether recording is switched on.
    pub(crate) fn is_recording(&self) -> bool {
        tracefs::read(&self.path("tracing_on")).is_ok_and(|state| state.trim() == "1")
    }

    /// Writes a setting.
    pub(crate) fn set(&self, name: impl AsRef<Path>, text: &str) -> Result<(), RecordError> {
        tracefs::write(&self.path(name), text)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        drop(self.set("tracing_on", "0"));
        remove(&self.tracefs, &self.name);
    }
}

/// Takes a lock that excludes other recorders. Race: another recorder could see this instance before it is
/// locked, take it for an abandoned one, and remove it. With this lock, it waits until the instance is
/// locked.
fn turn(tracefs: &Tracefs) -> Result<File, RecordError> {
    let instances = tracefs.path("instances");
    let turn = File::open(&instances).map_err(|error| cannot_make(&instances, error))?;
    flock(&turn, FlockOperation::LockExclusive)
        .map_err(|error| RecordError::io(&instances, "lock", error.into()))?;
    Ok(turn)
}

/// Removes the instances of killed recorders. Returns their names.
fn remove_stale(tracefs: &Tracefs) -> Vec<String> {
    let entries = fs::read_dir(tracefs.path("instances")).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter(|name| name.starts_with(PREFIX))
        .filter(|name| lock(&tracefs.path("instances").join(name)).is_some() && remove(tracefs, name))
        .collect()
}

/// The lock of an instance. `None` if another recorder holds it or the instance is gone.
fn lock(directory: &Path) -> Option<File> {
    let file = File::open(directory).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(file)
}

/// Removes an instance with its probes. Returns whether it could.
fn remove(tracefs: &Tracefs, name: &str) -> bool {
    let is_removed = fs::remove_dir(tracefs.path("instances").join(name)).is_ok();
    probes::remove(tracefs, name);
    is_removed
}

fn cannot_make(instances: &Path, error: io::Error) -> RecordError {
    match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => tracefs::read_only(instances),
        io::ErrorKind::PermissionDenied => tracefs::denied(instances),
        // A locked-down Linux 6.1 reports an invalid argument.
        _ if tracefs::is_locked_down() => tracefs::denied(instances),
        _ => RecordError::io(instances, "make an instance in", error),
    }
}
