//! Writes files. An [`AtomicFile`] appears complete or not at all, and a file of [`begin_file`] appears at
//! once. An existing file is replaced only if the caller passes [`Existing::Replace`].

use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::{Context as _, Result, anyhow, bail};
use tempfile::NamedTempFile;

/// Names of temporary files that this process has made. Names of files that are gone stay in the list.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A callback of the program. The callback runs before a temporary file appears.
static BEFORE_TEMPORARY: OnceLock<fn()> = OnceLock::new();

/// Sets a callback that runs before each temporary file with a name is made. `prepare` can watch the signals
/// that would end the process, and call [`remove_temporary`] at such a signal. On most file systems, a
/// temporary file needs a name only to replace an existing file.
pub fn before_temporary(prepare: fn()) {
    // A second call comes from a second command in the same process, and passes the same function.
    BEFORE_TEMPORARY.get_or_init(|| prepare);
}

/// Removes the temporary files of this process, which is about to end.
pub fn remove_temporary() {
    for path in TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // Most temporary files of the list do not exist any more, so ignore errors.
        drop(fs::remove_file(path));
    }
}

fn note_temporary(path: &Path) {
    if let Some(prepare) = BEFORE_TEMPORARY.get() {
        prepare();
    }
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
}

/// What to do with an existing file of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Keep the existing file, and return an error. The existing file may be the only copy of its contents.
    Refuse,
    /// Replace the existing file by the new file.
    Replace,
}

/// Writes a result to a file.
pub fn write_file(
    path: &Path,
    existing: Existing,
    make: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let mut result = Vec::new();
    make(&mut result)?;
    let mut file = AtomicFile::create(path, existing)?;
    file.write_all(&result)?;
    file.finish()
}

/// Creates a file under its final name at once, so that its content stays even if this process is killed. A
/// device or pipe is opened without a lock and without truncation. Any other file is locked while it is open.
/// If two processes begin the same file, the second process gets an error, so their writes never mix.
///
/// # Errors
///
/// An error if a file of this name exists and must stay, if another process writes the file, or if the system
/// refuses.
pub fn begin_file(path: &Path, existing: Existing) -> Result<File> {
    check_file(path, existing)?;
    directory_of(path)?;
    open_without_check(path, existing)
}

/// Returns the directory of a file that will be written, or an error if there is no such directory.
fn directory_of(file: &Path) -> Result<PathBuf> {
    let directory = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    if !directory.is_dir() {
        bail!("{}; there is no directory {}, make it first", cannot_write(file), directory.display());
    }
    Ok(directory)
}

/// Opens the file. Race: another process may create a file of this name after `check_file`. The open itself
/// fails if a file exists and must stay, so no file is lost.
fn open_without_check(path: &Path, existing: Existing) -> Result<File> {
    match File::options().write(true).create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => {
            let made = made.with_context(|| cannot_write(path))?;
            lock(&made, path)?;
            return Ok(made);
        }
    }
    // Do not truncate yet: `path` may be a device or a pipe.
    let opened = File::options().write(true).create(existing == Existing::Replace).truncate(false).open(path);
    let file = opened.with_context(|| cannot_write(path))?;
    if file.metadata().with_context(|| cannot_write(path))?.is_file() {
        if existing == Existing::Refuse {
            return Err(exists(path));
        }
        lock(&file, path)?;
        file.set_len(0).with_context(|| cannot_write(path))?;
    }
    Ok(file)
}

/// Returns an error if another process has begun this file and not finished it. A file system without locks
/// does not protect the file from a second process.
fn lock(file: &File, path: &Path) -> Result<()> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let whose = writer(file).map_or_else(String::new, |pid| {
                let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
                format!(", {} (process {pid})", name.trim())
            });
            bail!(
                "{}: another program is writing this file{whose}; wait for its end, or choose another name",
                path.display()
            )
        }
        _ => Ok(()),
    }
}

/// The process that holds the lock of a file. Source: proc_locks(5).
fn writer(file: &File) -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;
    let inode = format!(":{}", file.metadata().ok()?.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip_while(|word| *word != "FLOCK").skip(3);
        let pid = words.next()?.parse().ok()?;
        words.next()?.ends_with(&inode).then_some(pid)
    })
}

/// Removes a file that [`begin_file`] has begun. The caller calls this function if nothing useful was written
/// to the file. Symbolic links, devices and pipes are not removed.
pub fn remove_begun(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|kind| kind.is_file()) {
        // If the removal fails, ignore this error: the caller has a more important error to report.
        drop(fs::remove_file(path));
    }
}

/// Returns an error if `path` is a directory, or a file that exists and must stay.
pub fn check_file(path: &Path, existing: Existing) -> Result<()> {
    let kind = fs::symlink_metadata(path)
        .and_then(|link| if link.is_symlink() { fs::metadata(path) } else { Ok(link) });
    match kind {
        Ok(kind) if kind.is_dir() => bail!("{}: is a directory; name the file to write", path.display()),
        Ok(kind) if kind.is_file() && existing == Existing::Refuse => Err(exists(path)),
        _ => Ok(()),
    }
}

fn exists(path: &Path) -> anyhow::Error {
    anyhow!("{}: exists already; choose another name, or replace it with --force", path.display())
}

/// A file that gets its name when its content is finished. If this value is dropped without
/// [`finish`](Self::finish), nothing remains on disk.
pub struct AtomicFile {
    target: PathBuf,
    existing: Existing,
    out: BufWriter<Sink>,
}

enum Sink {
    /// The file has no name until it is linked, so nothing remains on disk however this process ends.
    #[cfg(target_os = "linux")]
    Nameless(File, PathBuf),
    /// The file has a temporary name beside the target, and is renamed at the end. This variant is for file
    /// systems without nameless files.
    Beside(NamedTempFile),
    /// The target is a device or a pipe, which must not be replaced.
    Device(File),
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Nameless(file, _) => file.write(bytes),
            // Write to the inner file. The library's own `write` names the temporary file in its errors.
            Self::Beside(file) => file.as_file_mut().write(bytes),
            Self::Device(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Nameless(file, _) => file.flush(),
            Self::Beside(file) => file.as_file_mut().flush(),
            Self::Device(file) => file.flush(),
        }
    }
}

impl AtomicFile {
    /// Begins a file that will have this name.
    ///
    /// # Errors
    ///
    /// An error if a file of this name exists and must stay, if the directory does not exist, or if the
    /// system refuses.
    pub fn create(target: &Path, existing: Existing) -> Result<Self> {
        check_file(target, existing)?;
        let is_device = fs::metadata(target).is_ok_and(|kind| !kind.is_file() && !kind.is_dir());
        let (target, sink) = if is_device {
            let file = File::options().write(true).open(target).with_context(|| cannot_write(target))?;
            if file.metadata().with_context(|| cannot_write(target))?.is_file() {
                // Race: after the check above, another process replaced the device by a file. Do not write to
                // that file.
                return Err(exists(target));
            }
            (target.to_owned(), Sink::Device(file))
        } else {
            // Replace the file that a symbolic link points to, not the link.
            let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
            let directory = directory_of(&target)?;
            let sink = Sink::in_directory(directory).with_context(|| cannot_write(&target))?;
            (target, sink)
        };
        Ok(Self { target, existing, out: BufWriter::with_capacity(1 << 16, sink) })
    }

    /// Gives the file its name.
    pub fn finish(self) -> Result<()> {
        let Self { target, existing, out } = self;
        let sink = out.into_inner().map_err(io::IntoInnerError::into_error);
        match sink.with_context(|| cannot_write(&target))? {
            #[cfg(target_os = "linux")]
            Sink::Nameless(file, directory) => match link(&file, &directory, &target, existing) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(exists(&target)),
                named => named.with_context(|| cannot_write(&target))?,
            },
            Sink::Beside(file) => {
                let named = match existing {
                    Existing::Refuse => file.persist_noclobber(&target),
                    Existing::Replace => file.persist(&target),
                };
                match named.map_err(|error| error.error) {
                    // Race: another process created the file after `check_file`. This process loses and
                    // returns an error, and the other process's file is not overwritten.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        return Err(exists(&target));
                    }
                    named => named.map(drop).with_context(|| cannot_write(&target))?,
                }
            }
            Sink::Device(_) => {}
        }
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes).map_err(|error| named(&self.target, &error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().map_err(|error| named(&self.target, &error))
    }
}

/// Adds the file's name to an error, so that a user sees whether reading or writing failed.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", cannot_write(path)))
}

fn cannot_write(path: &Path) -> String {
    format!("{}: cannot write", path.display())
}

impl Sink {
    fn in_directory(directory: PathBuf) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            let flags = rustix::fs::OFlags::TMPFILE.bits().cast_signed();
            let nameless = File::options().write(true).custom_flags(flags).mode(0o666).open(&directory);
            // A nameless file gets its name later, through /proc.
            if let Ok(file) = nameless
                && fs::symlink_metadata(own(&file)).is_ok()
            {
                return Ok(Self::Nameless(file, directory));
            }
        }
        // Drop the library's message: it names a temporary file that the user does not know.
        new_file_in(&directory).map(Self::Beside).map_err(|error| io::Error::from(error.kind()))
    }
}

/// The path of a file without a name.
#[cfg(target_os = "linux")]
fn own(file: &File) -> String {
    use std::os::fd::AsRawFd as _;
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Gives the nameless `file` the name `target`.
#[cfg(target_os = "linux")]
fn link(file: &File, directory: &Path, target: &Path, existing: Existing) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    let name = |name: &Path| linkat(CWD, own(file), CWD, name, AtFlags::SYMLINK_FOLLOW);
    match (name(target), existing) {
        (Err(rustix::io::Errno::EXIST), Existing::Replace) => {
            // `linkat` cannot replace a file. Give the file a temporary name first, and then rename it.
            let beside = tempfile::Builder::new().prefix(".pageset-").make_in(directory, |path| {
                note_temporary(path);
                Ok(name(path)?)
            })?;
            beside.persist(target).map(drop).map_err(|error| error.error)
        }
        (named, _) => Ok(named?),
    }
}

/// Creates a temporary file with the permissions that the user's umask allows. The library's default
/// permissions would let only the user read the file.
fn new_file_in(directory: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(".pageset-").make_in(directory, |path| {
        note_temporary(path);
        File::options().read(true).write(true).create_new(true).open(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_result_replaces_the_file_at_the_end_if_it_may() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("result");
        fs::write(&target, "old").unwrap();
        let mut file = AtomicFile::create(&target, Existing::Replace).unwrap();
        file.write_all(b"new").unwrap();
        file.flush().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"old");
        file.finish().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(names(directory.path()), ["result"]);
    }

    #[test]
    fn a_file_that_exists_stays_unless_told_even_if_it_comes_late() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("result");
        let file = AtomicFile::create(&target, Existing::Refuse).unwrap();
        fs::write(&target, "precious").unwrap();
        let late = file.finish().unwrap_err().to_string();
        let early = AtomicFile::create(&target, Existing::Refuse).err().unwrap().to_string();
        for error in [late, early] {
            assert!(
                error.ends_with("exists already; choose another name, or replace it with --force"),
                "{error}"
            );
        }
        assert_eq!(fs::read(&target).unwrap(), b"precious");
        assert_eq!(names(directory.path()), ["result"]);
    }

    #[test]
    fn two_cannot_write_a_file_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("result");
        let first = begin_file(&target, Existing::Refuse).unwrap();
        let second = begin_file(&target, Existing::Replace).unwrap_err().to_string();
        let me = format!("(process {})", std::process::id());
        assert!(second.contains("another program is writing this file") && second.contains(&me), "{second}");
        drop(first);
        begin_file(&target, Existing::Replace).unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_not_finished_has_no_name() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("result");
        let mut file = AtomicFile::create(&target, Existing::Refuse).unwrap();
        file.write_all(b"half").unwrap();
        file.flush().unwrap();
        // If the process were killed here, the directory would stay as it is now.
        if matches!(file.out.get_ref(), Sink::Nameless(..)) {
            assert!(names(directory.path()).is_empty());
        }
        file.finish().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"half");
    }

    #[test]
    fn file_systems_without_nameless_files_have_files_beside_the_target() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("result");
        let beside = Sink::Beside(new_file_in(directory.path()).unwrap());
        let out = BufWriter::new(beside);
        let mut file = AtomicFile { target: target.clone(), existing: Existing::Refuse, out };
        file.write_all(b"new").unwrap();
        file.finish().unwrap();
        assert_eq!(names(directory.path()), ["result"]);
        assert_eq!(fs::read(&target).unwrap(), b"new");
    }

    #[test]
    fn a_failure_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("result");
        write_file(&target, Existing::Refuse, |_| anyhow::bail!("no")).unwrap_err();
        assert!(names(directory.path()).is_empty());
    }

    #[test]
    fn a_file_that_begins_is_there_and_replaces_only_what_it_may() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("result");
        begin_file(&target, Existing::Refuse).unwrap().write_all(b"old").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"old");
        assert!(begin_file(&target, Existing::Refuse).unwrap_err().to_string().contains("--force"));
        begin_file(&target, Existing::Replace).unwrap();
        assert!(fs::read(&target).unwrap().is_empty());
        begin_file(Path::new("/dev/null"), Existing::Refuse).unwrap();
    }

    #[test]
    fn fault_13_a_file_that_appears_after_the_look_stays() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("result");
        // In this test, the file appears after `check_file` has run.
        fs::write(&target, "precious").unwrap();
        let error = open_without_check(&target, Existing::Refuse).unwrap_err().to_string();
        assert!(
            error.ends_with("exists already; choose another name, or replace it with --force"),
            "{error}"
        );
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        open_without_check(&link, Existing::Refuse).unwrap_err();
        assert_eq!(fs::read(&target).unwrap(), b"precious");
        open_without_check(&link, Existing::Replace).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"");
    }

    #[test]
    fn a_device_that_was_begun_is_not_removed() {
        let directory = tempfile::tempdir().unwrap();
        let (target, link) = (directory.path().join("result"), directory.path().join("link"));
        begin_file(&target, Existing::Refuse).unwrap();
        std::os::unix::fs::symlink("/dev/null", &link).unwrap();
        begin_file(&link, Existing::Refuse).unwrap();
        remove_begun(&target);
        remove_begun(&link);
        assert_eq!(names(directory.path()), ["link"]);
    }

    #[test]
    fn devices_are_written_to_and_not_replaced() {
        write_file(Path::new("/dev/null"), Existing::Refuse, |out| Ok(out.write_all(b"x")?)).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn a_directory_that_is_missing_is_named() {
        let error = write_file(Path::new("/missing/result"), Existing::Refuse, |_| Ok(())).unwrap_err();
        let said = "/missing/result: cannot write; there is no directory /missing, make it first";
        assert_eq!(error.to_string(), said);
        let error = begin_file(Path::new("/missing/result"), Existing::Refuse).unwrap_err();
        assert_eq!(error.to_string(), said);
    }
}
