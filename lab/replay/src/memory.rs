//! The memory that this process may still allocate.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

/// The memory that this process can still get, in bytes. The result is the smallest of three numbers: the
/// machine's available memory, the memory that the process's control groups still allow, and the memory that
/// `ulimit -v` still allows. `None` if no limit is known.
pub(crate) fn to_be_had() -> Option<u64> {
    [free_of_machine(), left_of_groups(), left_of_address_space()].into_iter().flatten().min()
}

/// Number of bytes that tables leave to other work. If a thread cannot get memory, the process aborts.
const REST_BYTES: usize = 16 << 20;

/// Whether the system grants an allocation of this many bytes now.
pub(crate) fn gives(bytes: usize) -> bool {
    let mut list = Vec::<u8>::new();
    let gives = list.try_reserve_exact(bytes).is_ok();
    // Without this line, the compiler may remove the unused allocation.
    std::hint::black_box(&list);
    gives
}

/// Whether the system would refuse to allocate `REST_BYTES` more bytes.
pub(crate) fn is_short() -> bool {
    !gives(REST_BYTES)
}

/// Whether memory is short, for a table that has `chunks` chunks. A check takes longer than making a chunk,
/// so memory is checked only once in `CHUNKS_OF_LOOK` chunks.
pub(crate) fn is_short_for(chunks: usize) -> bool {
    /// Number of chunks from one check of memory to the next.
    const CHUNKS_OF_LOOK: usize = 64;
    chunks.is_multiple_of(CHUNKS_OF_LOOK) && is_short()
}

/// Makes a list of equal entries; `None` if memory is short.
pub(crate) fn filled<T: Clone>(entries: usize, value: T) -> Option<Box<[T]>> {
    let mut list = Vec::new();
    list.try_reserve_exact(entries).ok()?;
    list.resize(entries, value);
    Some(list.into_boxed_slice())
}

/// Returns the message that there is no memory for this many bytes of `what`.
pub(crate) fn none_for(bytes: usize, what: &str) -> String {
    format!("there is no memory for {} MiB of {what}", (bytes >> 20).max(1))
}

/// Number of bytes that `advise` takes for a recording, without the memory of threads. Other subcommands take
/// less.
const LEAST_BYTES: u64 = 80 << 20;
/// Number of bytes of a thread: its stack and its buffers.
const THREAD_BYTES: u64 = 4 << 20;

/// Returns an error unless `ulimit -v` leaves the memory that reading the smallest recording takes. Without
/// this check, a process that runs out of memory would end without a message.
///
/// # Errors
/// A sentence with the needed memory and the memory that is left.
pub fn require_room() -> Result<(), String> {
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    let needed = LEAST_BYTES + THREAD_BYTES * threads;
    match left_of_address_space() {
        Some(left) if left < needed => Err(format!(
            "reading a recording needs {} MiB of memory, and `ulimit -v` leaves {} MiB; raise this limit",
            needed >> 20,
            left >> 20
        )),
        _ => Ok(()),
    }
}

fn free_of_machine() -> Option<u64> {
    available(&fs::read_to_string("/proc/meminfo").ok()?)
}

/// Reads the available memory from `/proc/meminfo`. Source: proc_meminfo(5).
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.saturating_mul(1024))
}

/// The limit of `ulimit -v`, minus the memory that this process has mapped.
fn left_of_address_space() -> Option<u64> {
    let most = getrlimit(Resource::As).current?;
    let pages: u64 = fs::read_to_string("/proc/self/statm").ok()?.split(' ').next()?.parse().ok()?;
    Some(most.saturating_sub(pages.saturating_mul(rustix::param::page_size() as u64)))
}

fn left_of_groups() -> Option<u64> {
    left_of(&fs::read_to_string("/proc/self/cgroup").ok()?, Path::new("/sys/fs/cgroup"))
}

/// The memory that the control groups of a process and their parents still allow: the smallest difference
/// between a group's limit and its use. Source: cgroups(7).
fn left_of(groups: &str, root: &Path) -> Option<u64> {
    let left = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        let (root, names) = match controllers {
            "" => (root.to_owned(), ["memory.max", "memory.current"]),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (root.join("memory"), ["memory.limit_in_bytes", "memory.usage_in_bytes"])
            }
            _ => return None,
        };
        let number =
            |group: &Path, name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
        let mut group: PathBuf = root.join(path);
        let mut least = None;
        loop {
            let [most, used] = names.map(|name| number(&group, name));
            let left = most.map(|most| most.saturating_sub(used.unwrap_or(0)));
            least = [least, left].into_iter().flatten().min();
            if group == root || !group.pop() {
                return least;
            }
        }
    });
    left.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_says_what_is_available() {
        assert_eq!(available("MemTotal:  100 kB\nMemAvailable:    24 kB\nX: 1\n"), Some(24 << 10));
        assert_eq!(available("MemTotal: 100 kB\n"), None);
    }

    #[test]
    fn the_tightest_of_all_groups_counts() {
        let root = tempfile::tempdir().unwrap();
        let group = |path: &str, files: &[(&str, &str)]| {
            let group = root.path().join(path);
            fs::create_dir_all(&group).unwrap();
            files.iter().for_each(|(name, value)| fs::write(group.join(name), value).unwrap());
        };
        group("a", &[("memory.max", "1000\n"), ("memory.current", "400\n")]);
        group("a/b", &[("memory.max", "max\n"), ("memory.current", "100\n")]);
        let left = |groups: &str| left_of(groups, root.path());
        assert_eq!(left("0::/a/b\n"), Some(600), "its parent's limit");
        assert_eq!(left("0::/\n"), None, "no limit");
        group("memory/c", &[("memory.limit_in_bytes", "500\n"), ("memory.usage_in_bytes", "800\n")]);
        assert_eq!(
            left("4:cpu,memory:/c\n3:cpuset:/a\n0::/a\n"),
            Some(0),
            "a group above its limit allows 0 bytes, not a negative number"
        );
    }
}
