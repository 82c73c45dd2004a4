//! The recorder's own tracing instance of the kernel, with private buffers and settings.
//!
//! A running recorder keeps the directory of its instance locked. A directory without a lock therefore
//! belongs to a killed recorder, and is removed.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};

use crate::error::RecordError;
use crate::probes;
use crate::tracefs::{self, Tracefs};

/// First letters of the names of all recorders' instances.
const PREFIX: &str = "pageset-";
/// Maximum number of recorders with the same process number, in different PID namespaces.
const NAMES_MAX: usize = 1000;

/// A tracing instance, which is removed on drop. The owner closes all files in the instance before the drop.
#[derive(Debug)]
pub(crate) struct Instance {
    tracefs: Tracefs,
    directory: PathBuf,
    name: String,
    /// The lock of the instance. The lock is held while this file is open.
    _lock: File,
}

impl Instance {
    /// Makes an instance with recording switched off. First removes the instances of killed recorders, and
    /// also returns their names. If a process makes several instances, each instance needs its own `suffix`.
    /// If another PID namespace has a process with the same number, the later process adds a second number to
    /// the name.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn create(tracefs: &Tracefs, suffix: &str) -> Result<(Self, Vec<String>), RecordError> {
        let _turn = turn(tracefs)?;
        let removed = remove_stale(tracefs);
        Ok((Self::make(tracefs, format!("{PREFIX}{}{suffix}", std::process::id()))?, removed))
    }

    /// Makes an instance with this name, or with a longer name that begins with it. The caller holds the lock
    /// of [`turn`].
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

    /// The instance's name, for example for the group of its probes.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The path of a file or directory in the instance.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory.join(name)
    }

    /// Whether recording is switched on in the instance.
    pub(crate) fn is_recording(&self) -> bool {
        tracefs::read(&self.path("tracing_on")).is_ok_and(|state| state.trim() == "1")
    }

    /// Writes a setting of the instance.
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

/// Takes a lock that excludes other recorders. Race: this recorder makes an instance, and locks the instance
/// a moment later. Without the lock of this function, another recorder could remove the instance before it is
/// locked, because an instance without a lock looks abandoned. With the lock of this function, the other
/// recorder waits until the instance is locked.
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

/// Takes the lock of an instance. `None` if another recorder holds the lock or the instance is gone.
fn lock(directory: &Path) -> Option<File> {
    let file = File::open(directory).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(file)
}

/// Removes an instance with its probes. Returns whether the removal succeeded.
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
