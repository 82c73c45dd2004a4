//! Detects writes of other programs to the recorder's instance. Other programs may clear the instance's
//! buffers, switch events off or change a filter. The kernel does not count events that are lost by such
//! writes, so inotify watches the writes.

use std::{
    collections::BTreeMap,
    mem::MaybeUninit,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{Mode, OFlags, open};
use rustix::io;

use crate::cpus::CpuList;
use crate::instance::Instance;

/// Files that another program may write without an unknown loss. Marks are separate records, and the kernel
/// counts events that a smaller buffer overwrites.
const HARMLESS: [&str; 3] = ["trace_marker", "trace_marker_raw", "buffer_size_kb"];
/// Maximum bytes of inotify events per read.
const READ_BYTES: usize = 4096;

/// The writes of other programs so far.
pub(crate) struct Intrusions {
    queue: Option<OwnedFd>,
    /// The watched directories below the instance, by inotify's number of the watch.
    watched: BTreeMap<i32, PathBuf>,
    /// Directories of events that stay open. The kernel drops a directory of events that no process has open,
    /// and also drops its watch.
    kept_open: Vec<OwnedFd>,
    /// The written files. Each file has the time when a write to this file was first seen.
    written: BTreeMap<PathBuf, Duration>,
}

impl Intrusions {
    /// Watches an instance. `events` are the directories of the instance's enabled events.
    pub(crate) fn watch(instance: &Instance, events: &[PathBuf], cpus: &CpuList) -> Self {
        let mut directories = vec![PathBuf::new(), "events".into()];
        directories.extend(events.iter().filter_map(|event| event.parent()).map(Path::to_owned));
        directories.extend_from_slice(events);
        directories.extend(cpus.iter().map(|cpu| format!("per_cpu/cpu{cpu}").into()));
        let mut all =
            Self { queue: None, watched: BTreeMap::new(), kept_open: Vec::new(), written: BTreeMap::new() };
        let Ok(queue) = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC) else { return all };
        for directory in directories {
            if all.add(&queue, instance.path(&directory), directory).is_err() {
                return Self { watched: BTreeMap::new(), ..all };
            }
        }
        all.queue = Some(queue);
        all
    }

    fn add(&mut self, queue: &OwnedFd, path: PathBuf, directory: PathBuf) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        self.kept_open.push(open(&path, flags, Mode::empty())?);
        let watch = inotify::add_watch(queue, &path, WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE)?;
        self.watched.insert(watch, directory);
        Ok(())
    }

    /// Forgets all writes so far, which were made by this recorder.
    pub(crate) fn begin(&mut self) {
        self.look(Duration::ZERO);
        self.written.clear();
    }

    /// Notes the writes since the last call.
    pub(crate) fn look(&mut self, elapsed: Duration) {
        let Some(queue) = &self.queue else { return };
        let mut buffer = [MaybeUninit::uninit(); READ_BYTES];
        let mut writes = inotify::Reader::new(queue, &mut buffer);
        // The loop ends when inotify has no further event, or reports an error.
        while let Ok(write) = writes.next() {
            let file = write.file_name().map(|name| name.to_string_lossy().into_owned());
            let written = match (self.watched.get(&write.wd()), file) {
                _ if write.events().contains(ReadFlags::QUEUE_OVERFLOW) => "files without number".into(),
                (Some(directory), Some(file)) if !HARMLESS.contains(&file.as_str()) => directory.join(file),
                _ => continue,
            };
            self.written.entry(written).or_insert(elapsed);
        }
    }

    /// Number of written files.
    pub(crate) fn count(&self) -> u64 {
        self.written.len() as u64
    }

    /// Sentences about the events that may be missing.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let written = self.written.iter().map(|(file, elapsed)| {
            let (file, seconds) = (file.display(), elapsed.as_secs_f64());
            format!(
                "some events from {seconds:.2} s on, how many is unknown: another program wrote to `{file}` of this \
                 recorder's tracing instance"
            )
        });
        let unknown =
            "whether another program changed this recorder's tracing instance: inotify cannot be used";
        written.chain(self.queue.is_none().then(|| unknown.to_owned())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_writes_that_may_lose_events_are_told_each_file_once() {
        let queue = inotify::init(CreateFlags::NONBLOCK).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let mut intrusions = Intrusions {
            queue: None,
            watched: BTreeMap::new(),
            kept_open: Vec::new(),
            written: BTreeMap::new(),
        };
        intrusions.add(&queue, directory.path().to_owned(), "events/kmem".into()).unwrap();
        intrusions.queue = Some(queue);
        let write = |name: &str| std::fs::write(directory.path().join(name), "0").unwrap();
        write("own");
        intrusions.begin();
        ["trace_marker", "enable", "buffer_size_kb", "enable"].into_iter().for_each(write);
        intrusions.look(Duration::from_millis(1500));
        write("enable");
        intrusions.look(Duration::from_millis(2500));
        assert_eq!(
            intrusions.sentences(),
            [
                "some events from 1.50 s on, how many is unknown: another program wrote to `events/kmem/enable` of this \
                 recorder's tracing instance"
            ]
        );
        assert_eq!(intrusions.count(), 1);
    }
}
