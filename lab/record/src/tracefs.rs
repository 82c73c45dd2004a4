//! Finds the kernel's tracing files, or the reason why this user cannot use them.

use std::{
    fs::{self, File},
    io::{self, BufReader, Read as _},
    path::{Path, PathBuf},
};

use crate::error::RecordError;

/// Places where tracefs may be mounted. The usual place is first.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Number of bytes of one read. All short files of tracefs have fewer bytes than this number.
const READ_BYTES: usize = 64 << 10;

/// The directory of the kernel's tracing files.
#[derive(Clone, Debug)]
pub(crate) struct Tracefs {
    root: PathBuf,
}

impl Tracefs {
    /// Finds the directory.
    ///
    /// # Errors
    /// An error if tracefs is not mounted, or if this user may not use it.
    pub(crate) fn find() -> Result<Self, RecordError> {
        let mut refused = None;
        for place in PLACES {
            match fs::metadata(Path::new(place).join("instances")) {
                Ok(_) => return Ok(Self { root: place.into() }),
                Err(error) => refused = refused.or(refusal(Path::new(place), &error)),
            }
        }
        Err(refused.unwrap_or_else(not_mounted))
    }

    /// The path of a file or directory in tracefs.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root.join(name)
    }
}

/// Makes the error if the files at `place` cannot be used. `None` if the files do not exist.
fn refusal(place: &Path, error: &io::Error) -> Option<RecordError> {
    (error.kind() == io::ErrorKind::PermissionDenied).then(|| denied(place))
}

/// The error for a user who may not use the tracing files at `place`.
pub(crate) fn denied(place: &Path) -> RecordError {
    if is_locked_down() {
        return RecordError::Refused {
            problem: "the kernel is locked down (confidentiality), which forbids tracing".to_owned(),
            remedy: "boot with `lockdown=integrity`, or record on another machine".to_owned(),
        };
    }
    if !rustix::process::geteuid().is_root() {
        return RecordError::NotRoot { path: place.to_owned() };
    }
    RecordError::Refused {
        problem: format!("{} is closed to this root, as in a container", place.display()),
        remedy: "record on the host, whose kernel is the same".to_owned(),
    }
}

/// The error for a tracing file or directory that no user may write.
pub(crate) fn read_only(path: &Path) -> RecordError {
    // The remedy names the whole mount, because a single file cannot be mounted again.
    let place = PLACES.into_iter().find(|place| path.starts_with(place));
    let place = place.map_or(path, Path::new).display();
    RecordError::Refused {
        problem: format!("{place} is mounted read-only, as in a container"),
        remedy: format!("record on the host, or run `mount -o remount,rw {place}` as root"),
    }
}

fn not_mounted() -> RecordError {
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let is_known = known.lines().any(|line| line.split_whitespace().last() == Some("tracefs"));
    if is_known {
        RecordError::Refused {
            problem: "the kernel's tracing files are not mounted".to_owned(),
            remedy: "run `mount -t tracefs nodev /sys/kernel/tracing` as root".to_owned(),
        }
    } else {
        RecordError::Refused {
            problem: "this kernel was built without tracing".to_owned(),
            remedy: "record under a kernel with CONFIG_FTRACE, as distributions have it".to_owned(),
        }
    }
}

/// Whether the kernel is locked down, so that the kernel hides its state from all users.
pub(crate) fn is_locked_down() -> bool {
    let state = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    state.contains("[confidentiality]")
}

/// Reads a file of the kernel.
pub(crate) fn read(path: &Path) -> Result<String, RecordError> {
    read_text(path).map_err(|error| RecordError::io(path, "read", error))
}

/// Reads a file with as few calls as possible, because `events/header_page` returns nothing on a second call.
fn read_text(path: &Path) -> io::Result<String> {
    let mut text = Vec::with_capacity(READ_BYTES);
    BufReader::with_capacity(READ_BYTES, File::open(path)?).read_to_end(&mut text)?;
    String::from_utf8(text).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Writes a setting into a file of the kernel.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), RecordError> {
    fs::write(path, text).map_err(|error| match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => read_only(path),
        io::ErrorKind::PermissionDenied => denied(path),
        _ => RecordError::io(path, "write", error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_has_a_remedy() {
        for error in [not_mounted(), denied(Path::new("/x")), read_only(Path::new("/x"))] {
            let text = error.to_string();
            assert!(text.contains("; "), "{text}");
        }
    }

    #[test]
    fn only_a_missing_right_is_a_refusal() {
        let place = Path::new("/x");
        assert!(refusal(place, &io::ErrorKind::NotFound.into()).is_none());
        assert!(refusal(place, &io::ErrorKind::PermissionDenied.into()).is_some());
    }
}
