//! A reading of `/proc/zoneinfo` and `/proc/vmstat`.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use pageset_trace::{ProcError, Vmstat, Zoneinfo};
use thiserror::Error;

/// Maximum bytes of a file. A CPU's page set takes about 150 bytes in each zone, so 8192 CPUs in 40 zones
/// fit.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The contents of `/proc/zoneinfo` and `/proc/vmstat` at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Time of the reading, in nanoseconds since the call of [`Proc::at`].
    pub at_ns: u64,
    /// Zones with frames, and their page sets.
    pub zoneinfo: Zoneinfo,
    /// Counters of the whole machine.
    pub vmstat: Vmstat,
}

/// The directory of the files `zoneinfo` and `vmstat`.
#[derive(Clone, Debug)]
pub struct Proc {
    directory: PathBuf,
    since: Instant,
}

/// The reason why a reading of `/proc/zoneinfo` and `/proc/vmstat` failed.
#[derive(Debug, Error)]
pub enum ReadError {
    /// A file does not exist.
    #[error("{}: there is no such file; pageset needs Linux, and a container that does not hide the file", .0.display())]
    Missing(PathBuf),
    /// The system cannot read a file.
    #[error("{}: cannot be read: {source}; run pageset as a user who may read it, or outside the container", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file is larger than the limit, which no kernel's file reaches.
    #[error("{}: is larger than {FILE_BYTES_MAX} bytes, which no kernel writes; name the kernel's own /proc", .0.display())]
    TooLarge(PathBuf),
    /// A line of a file does not have the kernel's format.
    #[error(transparent)]
    Malformed(#[from] ProcError),
    /// No zone has a page set.
    #[error("{}: no zone has a page set, as if there were no CPU; look at the file, a container may have replaced it", .0.display())]
    NoPagesets(PathBuf),
}

impl Default for Proc {
    fn default() -> Self {
        Self::at("/proc")
    }
}

impl Proc {
    /// Reads from the files `zoneinfo` and `vmstat` in `directory`. The times of readings count from this
    /// call.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), since: Instant::now() }
    }

    /// Whether the files are in `/proc`, and so show the running kernel.
    pub(crate) fn is_of_this_machine(&self) -> bool {
        self.directory == Path::new("/proc")
    }

    /// Reads `zoneinfo` and `vmstat`.
    ///
    /// # Errors
    /// An error if a file is missing, unreadable, too large or malformed, or if no zone has a page set.
    pub fn read(&self) -> Result<Reading, ReadError> {
        let zones = self.directory.join("zoneinfo");
        let mut zoneinfo = Zoneinfo::parse(&text(&zones)?)?;
        let at_ns = u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let vmstat = Vmstat::parse(&text(&self.directory.join("vmstat"))?)?;
        zoneinfo.zones.retain(|zone| zone.managed > 0);
        if zoneinfo.zones.iter().all(|zone| zone.pagesets.is_empty()) {
            return Err(ReadError::NoPagesets(zones));
        }
        Ok(Reading { at_ns, zoneinfo, vmstat })
    }
}

fn text(path: &Path) -> Result<String, ReadError> {
    let refused = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => ReadError::Missing(path.to_owned()),
        _ => ReadError::Unreadable { path: path.to_owned(), source },
    };
    let mut text = String::new();
    let file = File::open(path).map_err(refused)?;
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(refused)?;
    if text.len() as u64 > FILE_BYTES_MAX { Err(ReadError::TooLarge(path.to_owned())) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const ZONE: &str = "Node 0, zone Normal\n pages free 9\n managed 10\n pagesets\n cpu: 0\n count: 1\n";

    #[track_caller]
    fn read(zoneinfo: Option<&str>) -> Result<Reading, ReadError> {
        let directory = tempfile::tempdir().unwrap();
        if let Some(text) = zoneinfo {
            fs::write(directory.path().join("zoneinfo"), text).unwrap();
        }
        fs::write(directory.path().join("vmstat"), "pgfree 3\n").unwrap();
        Proc::at(directory.path()).read()
    }

    #[test]
    fn both_files_are_read_and_empty_zones_left_out() {
        let reading = read(Some(&format!("Node 0, zone DMA\n managed 0\n{ZONE}"))).unwrap();
        assert_eq!((reading.zoneinfo.zones.len(), reading.zoneinfo.zones[0].free), (1, 9));
        assert_eq!(reading.vmstat.get("pgfree"), Some(3));
    }

    #[test]
    fn what_is_wrong_is_said_with_a_remedy() {
        let error = |text: Option<&str>| read(text).unwrap_err().to_string();
        assert!(error(None).contains("zoneinfo: there is no such file; pageset needs Linux"));
        assert!(error(Some("")).contains("no zone has a page set"));
        assert!(error(Some("Node 0, zone Normal\n managed 10\n")).contains("no zone has a page set"));
        assert!(error(Some("hello")).starts_with("/proc/zoneinfo, line 1: "));
    }
}
