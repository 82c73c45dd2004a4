//! Tests a pool in a program with a filter of system calls (seccomp). Each test runs in a process of its own,
//! because a filter cannot be removed.
#![cfg(not(miri))]

use std::io;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::process::Command;

use pageset::{Backing, BuildError, FastPath, Fork, Numa, Order, Pool, Residency, ReturnPolicy, Worker};

/// Runs one test of this file again, alone.
fn again(test: &str) {
    let this = std::env::current_exe().unwrap();
    let mut command = Command::new(this);
    command.args(["--exact", test, "--nocapture", "--include-ignored"]).env("PAGESET_TEST_CHILD", "1");
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&said));
}

fn is_child() -> bool {
    std::env::var_os("PAGESET_TEST_CHILD").is_some()
}

/// Instructions of a filter. Source: seccomp(2), and the kernel's documentation of BPF.
mod filter {
    use super::io;

    const LOAD_CALL: libc::sock_filter = libc::sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 };

    const fn jump_if_equal(number: u32, if_so: u8, if_not: u8) -> libc::sock_filter {
        libc::sock_filter { code: 0x15, jt: if_so, jf: if_not, k: number }
    }

    const fn answer(action: u32) -> libc::sock_filter {
        libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: action }
    }

    /// Denies this call with EPERM to all threads of the process until the process ends.
    pub(super) fn deny(call: libc::c_long) {
        install(&[
            LOAD_CALL,
            jump_if_equal(call as u32, 0, 1),
            answer(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
            answer(libc::SECCOMP_RET_ALLOW),
        ]);
    }

    /// Makes the kernel end the process at any call except the given `calls`.
    pub(super) fn allow_only(calls: &[libc::c_long]) {
        let mut program = vec![LOAD_CALL];
        for call in calls {
            program.extend([jump_if_equal(*call as u32, 0, 1), answer(libc::SECCOMP_RET_ALLOW)]);
        }
        program.push(answer(libc::SECCOMP_RET_KILL_PROCESS));
        install(&program);
    }

    fn install(program: &[libc::sock_filter]) {
        let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
        // SAFETY: `prctl` takes numbers only.
        let outcome = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        assert_eq!(outcome, 0, "{}", io::Error::last_os_error());
        let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_TSYNC);
        // SAFETY: the program outlives the call, and the call copies the program.
        let outcome = unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) };
        assert_eq!(outcome, 0, "{}", io::Error::last_os_error());
    }
}

fn quiet() -> ReturnPolicy {
    ReturnPolicy::default().with_worker(Worker::None)
}

fn held(pool: &Pool, order: Order) -> usize {
    let mut blocks: Vec<_> = std::iter::from_fn(|| pool.alloc(order).ok()).collect();
    blocks.iter_mut().for_each(|block| block[0] = 1);
    blocks.len()
}

#[test]
fn a_membarrier_that_is_denied_after_the_pool_was_built_is_counted() {
    if !is_child() {
        return again("a_membarrier_that_is_denied_after_the_pool_was_built_is_counted");
    }
    let pool = Pool::builder().size(64 << 20).returns(quiet()).build().unwrap();
    assert_eq!(held(&pool, Order::ZERO), 16_384);
    let _ = pool.trim();
    assert_eq!((pool.stats().array_drains_refused, pool.stats().nr_array), (0, 0));
    filter::deny(libc::SYS_membarrier);
    assert_eq!(held(&pool, Order::ZERO), 16_384, "this CPU's pages can still be had");
    let before = pool.stats();
    let _ = pool.trim();
    let stats = pool.stats();
    if pool.uses_rseq() {
        assert_eq!(stats.array_drains, before.array_drains);
        assert!(stats.array_drains_refused > before.array_drains_refused, "{stats:?}");
    } else {
        assert_eq!(stats.array_drains_refused, 0, "locks need no barrier");
    }
    pool.validate().unwrap();
}

/// Builds a pool that must fail. Returns the error, and its text in one line.
fn refusal(builder: pageset::Builder) -> (BuildError, String) {
    let error = builder.size(64 << 20).returns(quiet()).build().unwrap_err();
    let text = error.to_string();
    (error, text)
}

/// A call's name, its number, a pool that needs the call, and the error's text.
type Denial = (&'static str, libc::c_long, fn() -> pageset::Builder, &'static str);

#[test]
fn a_denied_call_is_named_with_what_allows_it() {
    let cases: [Denial; 4] = [
        (
            "memfd_create",
            libc::SYS_memfd_create,
            || Pool::builder().backing(Backing::Memfd),
            "memfd_create(2) is denied: allow it in the filter of system calls (seccomp)",
        ),
        (
            "mbind",
            libc::SYS_mbind,
            || Pool::builder().numa(Numa::Bind(0)),
            "mbind(2) is denied: allow it in the filter of system calls (seccomp), or give the container CAP_SYS_NICE",
        ),
        (
            "madvise",
            libc::SYS_madvise,
            Pool::builder,
            "madvise(2) is denied: allow it in the filter of system calls (seccomp)",
        ),
        (
            "mmap",
            libc::SYS_mmap,
            Pool::builder,
            "mmap(2) is denied: allow it in the filter of system calls (seccomp)",
        ),
    ];
    let Some(which) = std::env::var_os("PAGESET_TEST_CHILD") else {
        let this = std::env::current_exe().unwrap();
        for (index, (name, ..)) in cases.iter().enumerate() {
            let mut command = Command::new(&this);
            command.args(["--exact", "a_denied_call_is_named_with_what_allows_it", "--nocapture"]);
            let output = command.env("PAGESET_TEST_CHILD", index.to_string()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{name}: {}: {said}", output.status);
        }
        return;
    };
    let (name, number, builder, text) = &cases[which.to_str().unwrap().parse::<usize>().unwrap()];
    filter::deny(*number);
    let (error, said) = refusal(builder());
    assert!(matches!(error, BuildError::Denied { call, .. } if call == *name), "{error:?}");
    assert_eq!(said, *text);
}

/// Calls the operations of a pool that make system calls, except for `backing`. Populates with `threads`
/// threads.
fn use_everything(pool: &Pool, threads: NonZeroUsize) {
    for order in [Order::ZERO, Order::THP, Order::MAX] {
        assert!(held(pool, order) > 0);
    }
    if threads.get() > 1 {
        std::thread::scope(|scope| {
            for _ in 0..threads.get() {
                scope.spawn(|| (0..10_000).for_each(|_| drop(pool.alloc(Order::ZERO))));
            }
        });
    }
    pool.populate(BYTES, threads, |_| ControlFlow::Continue(())).unwrap();
    (0..3).for_each(|_| while pool.tick().more {});
    let _ = pool.trim();
    assert_eq!((pool.resize(BYTES / 2), pool.resize(BYTES)), (BYTES / 2, BYTES));
    pool.alloc_zeroed(Order::MAX).unwrap().fill(1);
    pool.validate().unwrap();
    assert_eq!(pool.stats().array_drains_refused, 0);
}

/// The pool's size, large enough that several threads populate it at once.
const BYTES: usize = 64 << 20;

fn every_kind(worker: Worker) -> Vec<Pool> {
    let kinds = [
        Pool::builder(),
        Pool::builder().fast_path(FastPath::Locks),
        Pool::builder().backing(Backing::Memfd),
        Pool::builder().pinned().fork(Fork::Hide),
        Pool::builder().fork(Fork::HandOver),
        Pool::builder().numa(Numa::Bind(0)),
        Pool::builder().residency(Residency::Locked),
    ];
    let mut returns = ReturnPolicy::default().with_worker(worker);
    returns.interval = std::time::Duration::from_millis(1);
    kinds.map(|builder| builder.size(BYTES).returns(returns).build().unwrap()).into()
}

/// The page of the guide that has the table of calls.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/guide/your-pages.md");

/// The calls in the rows of the table whose first cell begins with `row`.
fn listed(row: &str) -> Vec<libc::c_long> {
    let page = std::fs::read_to_string(PAGE).expect("the guide is in the repository");
    let rows: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_prefix(row)).collect();
    assert!(!rows.is_empty(), "the page has no row that begins with {row:?}");
    let cells = rows.iter().filter_map(|line| line.split('|').nth(1));
    let names = cells.flat_map(|cell| cell.split_whitespace().map(|name| name.trim_matches('`')));
    names.map(number_of).collect()
}

/// The system calls that the guide's page may name, with their numbers.
const NUMBERS: [(&str, libc::c_long); 33] = [
    ("clone", libc::SYS_clone),
    ("clone3", libc::SYS_clone3),
    ("clock_nanosleep", libc::SYS_clock_nanosleep),
    ("close", libc::SYS_close),
    ("exit", libc::SYS_exit),
    ("fcntl", libc::SYS_fcntl),
    ("ftruncate", libc::SYS_ftruncate),
    ("futex", libc::SYS_futex),
    ("getpid", libc::SYS_getpid),
    ("gettid", libc::SYS_gettid),
    ("kill", libc::SYS_kill),
    ("madvise", libc::SYS_madvise),
    ("mbind", libc::SYS_mbind),
    ("membarrier", libc::SYS_membarrier),
    ("memfd_create", libc::SYS_memfd_create),
    ("mlock", libc::SYS_mlock),
    ("mmap", libc::SYS_mmap),
    ("mprotect", libc::SYS_mprotect),
    ("munmap", libc::SYS_munmap),
    ("openat", libc::SYS_openat),
    ("prctl", libc::SYS_prctl),
    ("read", libc::SYS_read),
    ("rseq", libc::SYS_rseq),
    ("rt_sigpending", libc::SYS_rt_sigpending),
    ("rt_sigprocmask", libc::SYS_rt_sigprocmask),
    ("rt_sigtimedwait", libc::SYS_rt_sigtimedwait),
    ("sched_getaffinity", libc::SYS_sched_getaffinity),
    ("sched_getscheduler", libc::SYS_sched_getscheduler),
    ("sched_setaffinity", libc::SYS_sched_setaffinity),
    ("sched_setscheduler", libc::SYS_sched_setscheduler),
    ("sched_yield", libc::SYS_sched_yield),
    ("set_robust_list", libc::SYS_set_robust_list),
    ("sigaltstack", libc::SYS_sigaltstack),
];

fn number_of(name: &str) -> libc::c_long {
    let known = NUMBERS.iter().find(|(known, _)| *known == name);
    known.unwrap_or_else(|| panic!("the page names {name}, which this test does not know")).1
}

/// The calls of the test itself: to exit, to print a failure, and to use the heap.
const OF_THE_TEST: [libc::c_long; 7] = [
    libc::SYS_exit_group,
    libc::SYS_write,
    libc::SYS_brk,
    libc::SYS_mremap,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
];

/// Runs `prepare` and then `work` in a child. The kernel ends the child if `work` makes a call that is not in
/// the given `rows` of the table.
fn under_a_filter<T>(rows: &[&str], prepare: impl FnOnce() -> T, work: impl FnOnce(T)) {
    let mut calls: Vec<_> = rows.iter().flat_map(|row| listed(row)).collect();
    calls.extend(OF_THE_TEST);
    // SAFETY: the child has only this thread, and exits by `_exit`. glibc's heap works in a forked child.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let prepared = prepare();
            filter::allow_only(&calls);
            work(prepared);
        }));
        // SAFETY: the call ends the process without running the parent's destructors or exit handlers.
        unsafe { libc::_exit(if outcome.is_ok() { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "signal {} at a call beyond {rows:?}", libc::WTERMSIG(status));
    assert_eq!(libc::WEXITSTATUS(status), 0);
}

#[test]
fn the_calls_that_the_guide_lists_are_all_that_a_pool_makes() {
    if !is_child() {
        return again("the_calls_that_the_guide_lists_are_all_that_a_pool_makes");
    }
    let all = ["building", "each thread", "every operation", "`backing`", "dropping"];
    under_a_filter(
        &all,
        || (),
        |()| {
            let pools = every_kind(Worker::Thread);
            pools.iter().for_each(|pool| use_everything(pool, NonZeroUsize::new(2).unwrap()));
            assert!(pools.iter().all(|pool| pool.backing().is_ok()));
        },
    );
    // If the program builds its pool before it installs the filter, the filter must allow fewer calls.
    under_a_filter(
        &["every operation", "dropping"],
        || every_kind(Worker::None),
        |pools| {
            pools.iter().for_each(|pool| use_everything(pool, NonZeroUsize::MIN));
        },
    );
    under_a_filter(
        &["every operation"],
        || every_kind(Worker::Thread),
        |pools| {
            pools.iter().for_each(|pool| use_everything(pool, NonZeroUsize::MIN));
            // Trim the pools that have given back no memory yet.
            pools.iter().filter(|pool| pool.stats().returned_bytes == 0).for_each(|pool| _ = pool.trim());
            std::mem::forget(pools);
        },
    );
}

#[test]
fn the_calls_that_the_guide_lists_are_all_that_taking_over_makes() {
    if !is_child() {
        return again("the_calls_that_the_guide_lists_are_all_that_taking_over_makes");
    }
    let rows = ["`take_over`", "each thread", "every operation", "dropping"];
    let mut calls: Vec<_> = rows.iter().flat_map(|row| listed(row)).collect();
    calls.extend(OF_THE_TEST);
    let (mut done, mut says) = io::pipe().unwrap();
    // SAFETY: the children have only this thread, and exit by `_exit`. glibc's heap works in a forked child.
    let owner = unsafe { libc::fork() };
    if owner == 0 {
        let pool = Pool::builder().size(BYTES).fork(Fork::HandOver).build().unwrap();
        // SAFETY: as above.
        if unsafe { libc::fork() } == 0 {
            filter::allow_only(&calls);
            pool.take_over(std::time::Duration::from_secs(20)).unwrap();
            use_everything(&pool, NonZeroUsize::MIN);
            drop(pool);
            io::Write::write_all(&mut says, b"done").unwrap();
        } else {
            // The child waits for the end of this process.
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        // SAFETY: the call ends the process without running the rest of the test.
        unsafe { libc::_exit(0) };
    }
    drop(says);
    let mut said = Vec::new();
    io::Read::read_to_end(&mut done, &mut said).unwrap();
    // SAFETY: this test made the child, and a null pointer means that its status is not wanted.
    assert_eq!(unsafe { libc::waitpid(owner, std::ptr::null_mut(), 0) }, owner);
    assert_eq!(said, b"done", "a call beyond {rows:?}");
}

/// Tests that `under_a_filter` can fail: the filter ends a process that makes a call that is not listed.
#[test]
#[should_panic(expected = "at a call beyond")]
fn a_call_that_is_not_listed_ends_the_process() {
    under_a_filter(
        &["every operation"],
        || (),
        |()| {
            // SAFETY: `getppid` has no arguments.
            unsafe { libc::syscall(libc::SYS_getppid) };
        },
    );
}
