//! Tests pools under limits of the process. Each test runs in a child, because a process cannot remove its
//! limit.
#![cfg(not(miri))]

use std::process::Command;

use pageset::{Backing, BuildError, FastPath, Order, Pool, Populated, Residency, ReturnPolicy, Worker};

/// Runs one test of this file again, alone, in a shell with a limit or an environment of its own.
fn again(test: &str, shell: &str) {
    let this = std::env::current_exe().unwrap();
    let command = format!("{shell} PAGESET_TEST_CHILD=1 exec \"$0\" --exact {test} --nocapture");
    let output = Command::new("sh").args(["-c", &command]).arg(this).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn is_child() -> bool {
    std::env::var_os("PAGESET_TEST_CHILD").is_some()
}

#[test]
fn exhausted_address_space_is_said() {
    if !is_child() {
        return again("exhausted_address_space_is_said", "ulimit -v 2000000;");
    }
    let error = Pool::builder().size(4 << 30).build().unwrap_err();
    assert!(matches!(error, BuildError::AddressSpace { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "cannot reserve 4294967296 bytes of address space (see ulimit -v and vm.max_map_count)"
    );
    // The failed build has kept no address space: a smaller pool can be built again and again.
    for _ in 0..50 {
        assert!(Pool::builder().size(256 << 20).build().is_ok());
    }
}

fn set_limit(resource: libc::__rlimit_resource_t, bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: the call reads the limit, which outlives the call.
    assert_eq!(unsafe { libc::setrlimit(resource, &raw const limit) }, 0);
}

/// Tests that a limit of file sizes gives an error and no signal. When the kernel refuses to make a file
/// larger than the limit, the kernel also sends SIGXFSZ. The pool must hide SIGXFSZ, because SIGXFSZ would
/// end the program.
#[test]
fn fault_09_a_limit_of_file_sizes_is_an_error_and_no_signal() {
    if !is_child() {
        return again("fault_09_a_limit_of_file_sizes_is_an_error_and_no_signal", "");
    }
    let states = || {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        // The line `SigQ` counts signals of all processes of this user, so another process may change the
        // count.
        let of_thread = ["SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt"];
        let is_of_signals = |line: &&str| of_thread.iter().any(|name| line.starts_with(name));
        status.lines().filter(is_of_signals).map(str::to_owned).collect::<Vec<_>>()
    };
    set_limit(libc::RLIMIT_FSIZE, 1 << 20);
    let before = states();
    let build = || Pool::builder().size(64 << 20).backing(Backing::Memfd).build();
    let error = build().unwrap_err();
    assert!(matches!(error, BuildError::Memfd { .. }), "{error:?}");
    assert!(error.to_string().contains("ulimit -f"), "{error}");
    assert_eq!(states(), before, "signals are blocked, pending and handled as before");
    // A SIGXFSZ that was pending before the build of the pool stays pending. SAFETY: a set of zeros is empty.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the call changes the set, which is valid.
    unsafe { libc::sigaddset(&raw mut set, libc::SIGXFSZ) };
    // SAFETY: the call reads the set, which outlives the call.
    assert_eq!(unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) }, 0);
    // SAFETY: a blocked signal only waits.
    assert_eq!(unsafe { libc::raise(libc::SIGXFSZ) }, 0);
    let before = states();
    assert!(build().is_err());
    assert_eq!(states(), before);
    assert!(Pool::builder().size(64 << 20).build().is_ok(), "no file, no limit");
}

#[test]
fn fault_11_populate_does_itself_what_threads_would_that_cannot_be_started() {
    if !is_child() {
        let test = "fault_11_populate_does_itself_what_threads_would_that_cannot_be_started";
        return again(test, "");
    }
    let pool = without_thread(1 << 30, Backing::Plain);
    // Leave room for a few small tables, but not for a thread's stack.
    set_limit(libc::RLIMIT_AS, mapped() + (1 << 20));
    assert!(std::thread::Builder::new().spawn(|| ()).is_err(), "the limit is felt");
    let threads = std::num::NonZero::new(64).unwrap();
    let mut calls = 0;
    let outcome = pool.populate(128 << 20, threads, |progress| {
        calls += 1;
        assert_eq!(progress.done_bytes, calls * (32 << 20));
        std::ops::ControlFlow::Continue(())
    });
    assert_eq!(outcome.unwrap(), Populated::All);
    let outcome = pool.populate(1 << 30, threads, |_| std::ops::ControlFlow::Break(()));
    assert_eq!(outcome.unwrap(), Populated::Cancelled(32 << 20));
    pool.validate().unwrap();
}

#[test]
fn a_lock_limit_is_said() {
    if !is_child() {
        return again("a_lock_limit_is_said", "ulimit -l 64;");
    }
    match Pool::builder().size(64 << 20).residency(Residency::Locked).build() {
        Err(error) => {
            assert!(matches!(error, BuildError::LockLimit { .. }), "{error:?}");
            assert_eq!(error.to_string(), "cannot lock 67108864 bytes in memory (see ulimit -l)");
        }
        // A process that may exceed limits (root) gets its pool.
        Ok(pool) => assert_eq!(pool.backing().unwrap().locked_bytes, 64 << 20),
    }
}

#[test]
fn a_file_that_no_descriptor_is_left_for_is_said() {
    if !is_child() {
        return again("a_file_that_no_descriptor_is_left_for_is_said", "ulimit -n 32;");
    }
    let files: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
    let error = Pool::builder().size(64 << 20).backing(Backing::Memfd).build().unwrap_err();
    assert!(matches!(error, BuildError::Memfd { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "cannot create the pool's file: no file descriptor is left (see ulimit -n)"
    );
    // Other pools need no file descriptor.
    assert!(Pool::builder().size(64 << 20).build().is_ok());
    drop(files);
    assert!(Pool::builder().size(64 << 20).backing(Backing::Memfd).build().is_ok());
}

#[test]
fn the_environment_can_refuse_sequences() {
    if !is_child() {
        return again("the_environment_can_refuse_sequences", "PAGESET_RSEQ=0");
    }
    let pool = Pool::builder().size(16 << 20).build().unwrap();
    assert!(!pool.uses_rseq());
    drop(pool.alloc(Order::ZERO).unwrap());
}

/// Tests threads without a registered area. glibc's tunable makes such threads, as old versions of glibc do.
#[test]
fn threads_without_an_area_work() {
    if !is_child() {
        return again("threads_without_an_area_work", "GLIBC_TUNABLES=glibc.pthread.rseq=0");
    }
    let pool = Pool::builder().size(16 << 20).build().unwrap();
    assert!(!pool.uses_rseq());
    let pages: Vec<_> = (0..1000).map(|_| pool.alloc(Order::ZERO).unwrap()).collect();
    drop(pages);
    pool.validate().unwrap();
}

/// Tests a process that may use only the last CPU, as can happen in a cpuset.
#[test]
fn a_process_of_one_cpu_works() {
    if !is_child() {
        let cpus = std::thread::available_parallelism().unwrap().get();
        return again("a_process_of_one_cpu_works", &format!("taskset -pc {} $$ >/dev/null;", cpus - 1));
    }
    for path in [FastPath::Auto, FastPath::Locks] {
        let pool = Pool::builder().size(16 << 20).fast_path(path).build().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| drop((0..500).map(|_| pool.alloc(Order::ZERO).unwrap()).collect::<Vec<_>>()));
            }
        });
        pool.validate().unwrap();
    }
}

/// A pool without a thread of its own, which would also use memory.
fn without_thread(bytes: usize, backing: Backing) -> Pool {
    let returns = ReturnPolicy::default().with_worker(Worker::None);
    Pool::builder().size(bytes).backing(backing).returns(returns).build().unwrap()
}

fn mapped() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').next().unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn nothing_is_mapped_beyond_what_was_asked_for() {
    if !is_child() {
        return again("nothing_is_mapped_beyond_what_was_asked_for", "");
    }
    let before = mapped();
    for backing in [Backing::Thp, Backing::Plain, Backing::Memfd] {
        let pool = without_thread(1 << 30, backing);
        let beyond = mapped() - before - (1 << 30);
        let metadata = pool.stats().metadata_bytes;
        assert!(metadata <= (5 << 20) / 2, "{metadata} bytes of metadata");
        assert!(beyond <= metadata + (1 << 20), "{beyond} bytes beyond the pool, metadata {metadata}");
        drop(pool);
    }
    assert!(mapped() < before + (4 << 20), "a dropped pool leaves nothing");
}

#[test]
fn tables_that_are_not_used_take_no_memory() {
    if !is_child() {
        return again("tables_that_are_not_used_take_no_memory", "");
    }
    let anonymous = || {
        let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
        let line = rollup.lines().find_map(|line| line.strip_prefix("Anonymous:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    };
    let before = anonymous();
    let pool = without_thread(16 << 30, Backing::Plain);
    for order in [0, 3, 9] {
        drop(pool.alloc(Order::new(order).unwrap()).unwrap());
    }
    let (resident, metadata) = (anonymous() - before, pool.stats().metadata_bytes);
    assert!(resident * 3 < metadata * 2, "{resident} bytes are resident of {metadata}");
}
