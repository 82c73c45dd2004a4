//! Tests CPUs that a process may not use, and CPUs that go offline while the process runs. The tests use real
//! cpusets and real hotplug if this machine allows them. A skipped test prints the reason on standard error
//! (`--nocapture` shows it).
#![cfg(not(miri))]

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use pageset::{FastPath, Order, Pool};

/// A test that changes the set of CPUs holds the lock `CPUS`, because an offline CPU can be in no cpuset.
static CPUS: Mutex<()> = Mutex::new(());

/// Runs threads that allocate and free pages for the time `duration`.
fn churn(duration: Duration) {
    for path in [FastPath::Auto, FastPath::Locks] {
        let pool = Pool::builder().size(64 << 20).fast_path(path).build().unwrap();
        let ends = AtomicBool::new(false);
        thread::scope(|scope| {
            for thread in 0..4_u8 {
                let (pool, ends) = (&pool, &ends);
                scope.spawn(move || {
                    while !ends.load(Relaxed) {
                        let mut pages: Vec<_> = (0..700_u16)
                            .map(|page| pool.alloc(Order::new((page % 4) as u8).unwrap()).unwrap())
                            .collect();
                        pages.iter_mut().for_each(|pages| pages[0] = thread);
                        assert!(pages.iter().all(|pages| pages[0] == thread), "two owners");
                    }
                });
            }
            thread::sleep(duration);
            ends.store(true, Relaxed);
        });
        assert_eq!((pool.stats().nr_used, pool.stats().bad_frees), (0, 0));
        pool.validate().unwrap();
        // A trim also empties the arrays of CPUs that are offline, or that this process may no longer use.
        let _ = pool.trim();
        assert_eq!(pool.stats().nr_array, 0);
    }
}

/// A new cpuset for one test, of cgroup version 1 or 2.
struct Cpuset(PathBuf);

impl Cpuset {
    fn new() -> io::Result<Self> {
        let name = format!("pageset-test-{}", std::process::id());
        let two = Path::new("/sys/fs/cgroup");
        let has_two = fs::read_to_string(two.join("cgroup.subtree_control"))
            .is_ok_and(|controllers| controllers.split_whitespace().any(|name| name == "cpuset"));
        let set = Self(if has_two { two.join(name) } else { two.join("cpuset").join(name) });
        if !has_two && !two.join("cpuset/cpuset.mems").exists() {
            return Err(io::Error::other("no cgroup with a cpuset controller is mounted"));
        }
        fs::create_dir(&set.0)?;
        // In version 1 of cgroups, a new cpuset has no memory nodes. In version 2 of cgroups, a new cpuset
        // inherits its parent's nodes.
        fs::write(set.0.join("cpuset.mems"), "0")?;
        Ok(set)
    }

    fn allow(&self, cpus: &str) -> io::Result<()> {
        fs::write(self.0.join("cpuset.cpus"), cpus)
    }

    /// Runs a test of this file again, in this cpuset.
    fn run(&self, test: &str) -> Child {
        let procs = self.0.join("cgroup.procs");
        let command = format!("echo $$ > {} && exec \"$0\" --exact {test} --nocapture", procs.display());
        let this = std::env::current_exe().unwrap();
        Command::new("sh").args(["-c", &command]).arg(this).env("PAGESET_TEST_CHILD", "1").spawn().unwrap()
    }
}

impl Drop for Cpuset {
    fn drop(&mut self) {
        // The kernel may need a moment to empty the cpuset after its last process has ended.
        let until = Instant::now() + Duration::from_secs(2);
        while fs::remove_dir(&self.0).is_err() && Instant::now() < until {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn a_cpuset_may_change_while_threads_allocate() {
    if std::env::var_os("PAGESET_TEST_CHILD").is_some() {
        return churn(Duration::from_millis(400));
    }
    let _cpus = CPUS.lock().unwrap();
    let last = thread::available_parallelism().map_or(1, |cpus| cpus.get()) - 1;
    let (all, one) = (format!("0-{last}"), last.to_string());
    let set = match Cpuset::new().and_then(|set| set.allow(&one).map(|()| set)) {
        Ok(set) => set,
        Err(error) => return eprintln!("NOT TESTED: no cpuset can be made here: {error}"),
    };
    // The child may use only the last CPU at first, and then gets a different set of CPUs every 20 ms.
    let mut child = set.run("cpus::a_cpuset_may_change_while_threads_allocate");
    for cpus in ["0", &all, &one].into_iter().cycle() {
        if let Some(status) = child.try_wait().unwrap() {
            return assert!(status.success(), "{status}");
        }
        thread::sleep(Duration::from_millis(20));
        set.allow(cpus).unwrap();
    }
}

/// Takes the last CPU offline several times. An offline CPU affects all programs of the machine, so the test
/// runs only with `PAGESET_TEST_HOTPLUG=1`.
#[test]
fn a_cpu_may_go_away_and_come_back() {
    let _cpus = CPUS.lock().unwrap();
    let last = thread::available_parallelism().map_or(1, |cpus| cpus.get()) - 1;
    let online = format!("/sys/devices/system/cpu/cpu{last}/online");
    if std::env::var_os("PAGESET_TEST_HOTPLUG").is_none_or(|wish| wish != "1") {
        return eprintln!("NOT TESTED: CPUs are only unplugged with PAGESET_TEST_HOTPLUG=1");
    }
    if let Err(error) = fs::write(&online, "1") {
        return eprintln!("NOT TESTED: {online}: {error}");
    }
    thread::scope(|scope| {
        let busy = scope.spawn(|| churn(Duration::from_millis(600)));
        while !busy.is_finished() {
            for state in ["0", "1"] {
                fs::write(&online, state).unwrap();
                thread::sleep(Duration::from_millis(50));
            }
        }
        busy.join().unwrap();
    });
}
