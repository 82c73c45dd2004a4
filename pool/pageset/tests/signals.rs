//! Tests signal handlers that use a pool, and the pool's thread in programs that use signals. Each test runs
//! in a process of its own.
#![cfg(not(miri))]

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::process::Command;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pageset::{AllocError, FastPath, Order, Pool, ReturnPolicy, Worker};

/// Runs one test of this file again, alone, and ends the test if it hangs.
fn again(test: &str) {
    let this = std::env::current_exe().unwrap();
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", "60"]).arg(this).args([
        "--exact",
        test,
        "--nocapture",
        "--include-ignored",
    ]);
    let output = command.env("PAGESET_TEST_CHILD", "1").output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&said));
}

fn is_child() -> bool {
    std::env::var_os("PAGESET_TEST_CHILD").is_some()
}

/// Runs `work` in a child with one thread, so that this thread takes all signals. Fails if `work` returns
/// `false` or panics.
fn in_one_thread(work: impl FnOnce() -> bool) {
    // SAFETY: the child has only this thread, and exits by `_exit`. glibc's heap works in a forked child.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        // SAFETY: the call ends the process without running the parent's destructors or exit handlers.
        unsafe { libc::_exit(if outcome.is_ok_and(|is_right| is_right) { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "killed by signal {}", libc::WTERMSIG(status));
    assert_eq!(libc::WEXITSTATUS(status), 0);
}

static POOLS: OnceLock<[Pool; 2]> = OnceLock::new();
static ALLOCATED: AtomicU64 = AtomicU64::new(0);
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// Allocates and frees blocks. The thread that the handler interrupts may also be allocating or freeing a
/// block.
extern "C" fn handler(_: libc::c_int) {
    for pool in POOLS.get().into_iter().flatten() {
        for order in [0, 2, 5, 9] {
            match pool.alloc(Order::new(order).unwrap()) {
                Ok(mut pages) => {
                    pages[0] = 1;
                    ALLOCATED.fetch_add(1, Relaxed);
                }
                Err(AllocError::WouldBlock) => _ = REFUSED.fetch_add(1, Relaxed),
                // A handler cannot print.
                Err(_) => {}
            }
        }
    }
}

/// Makes the kernel send SIGALRM to this process every `micros` microseconds. 0 stops the signals.
fn alarm_every(micros: libc::suseconds_t) {
    let time = libc::timeval { tv_sec: 0, tv_usec: micros };
    let timer = libc::itimerval { it_interval: time, it_value: time };
    // SAFETY: the timer outlives the call, and a null pointer means that the previous timer is not wanted.
    assert_eq!(unsafe { libc::syscall(libc::SYS_setitimer, libc::ITIMER_REAL, &raw const timer, 0) }, 0);
}

#[test]
fn fault_12_an_allocation_in_a_signal_handler_is_refused_and_never_waits_for_its_own_thread() {
    if !is_child() {
        return again(
            "fault_12_an_allocation_in_a_signal_handler_is_refused_and_never_waits_for_its_own_thread",
        );
    }
    in_one_thread(|| {
        allocate_under_alarms();
        true
    });
}

fn allocate_under_alarms() {
    let pools = [FastPath::Auto, FastPath::Locks].map(|path| {
        let returns = ReturnPolicy::default().with_worker(Worker::None);
        Pool::builder().size(64 << 20).fast_path(path).returns(returns).build().unwrap()
    });
    let pools = POOLS.get_or_init(|| pools);
    let action: extern "C" fn(libc::c_int) = handler;
    // SAFETY: the handler only allocates and frees pages, which a handler may.
    unsafe { libc::signal(libc::SIGALRM, action as libc::sighandler_t) };
    alarm_every(50);
    let mut held = VecDeque::new();
    for round in 0..3_000_000_u64 {
        let pool = &pools[(round / 1000 % 2) as usize];
        let order = Order::new([0, 0, 2, 5][(round % 4) as usize]).unwrap();
        held.extend(pool.alloc(order));
        if held.len() > 1000 {
            held.drain(..(round % 900) as usize);
        }
        if round % 5000 == 0 {
            let _ = pool.trim();
        }
        // Stop after enough refused and successful allocations.
        if round > 100_000 && REFUSED.load(Relaxed) > 100 && ALLOCATED.load(Relaxed) > 10_000 {
            break;
        }
    }
    alarm_every(0);
    drop(held);
    assert!(ALLOCATED.load(Relaxed) > 0, "the handler ran");
    for pool in pools {
        let stats = pool.stats();
        assert_eq!((stats.nr_used, stats.bad_frees), (0, 0), "{} refused", REFUSED.load(Relaxed));
        pool.validate().unwrap();
    }
}

/// A set of one signal.
fn only(signal: libc::c_int) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the call initialises the set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the set is initialised, and the signal exists.
    unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
    // SAFETY: as above.
    unsafe { set.assume_init() }
}

/// Tests a program that waits for a signal. The pool's thread must not take this signal.
#[test]
fn a_program_that_waits_for_a_signal_gets_it() {
    if !is_child() {
        return again("a_program_that_waits_for_a_signal_gets_it");
    }
    in_one_thread(|| {
        let pool = Pool::builder().size(64 << 20).build();
        let set = only(libc::SIGTERM);
        // SAFETY: the set outlives the call.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()) };
        // SAFETY: signals this process.
        unsafe { libc::kill(std::process::id() as libc::pid_t, libc::SIGTERM) };
        let mut signal = 0;
        // SAFETY: the set and the number outlive the call.
        unsafe { libc::sigwait(&raw const set, &raw mut signal) };
        pool.is_ok() && signal == libc::SIGTERM
    });
}

/// The directory of the pool's thread.
fn thread_of_pool() -> std::path::PathBuf {
    loop {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
        let is_ours = |task: &std::path::PathBuf| {
            std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "pageset")
        };
        match { tasks }.find(is_ours) {
            Some(task) => return task,
            // A thread gets its name a moment after it has begun.
            None => std::thread::yield_now(),
        }
    }
}

fn status_of(task: &std::path::Path, key: &str) -> String {
    let status = std::fs::read_to_string(task.join("status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.expect("the kernel says so").trim_start_matches(':').trim().to_owned()
}

#[test]
fn the_pools_thread_blocks_every_signal_and_its_builder_none() {
    if !is_child() {
        return again("the_pools_thread_blocks_every_signal_and_its_builder_none");
    }
    let before = status_of(std::path::Path::new("/proc/thread-self"), "SigBlk");
    let _pool = Pool::builder().size(64 << 20).build().unwrap();
    let blocked = u64::from_str_radix(&status_of(&thread_of_pool(), "SigBlk"), 16).unwrap();
    // glibc reserves signals 32 and 33, and the kernel never blocks SIGKILL and SIGSTOP.
    let never = [libc::SIGKILL, libc::SIGSTOP, 32, 33];
    let expected = never.into_iter().fold(u64::MAX, |all, signal| all & !(1 << (signal - 1)));
    assert_eq!(blocked, expected, "{blocked:016x}");
    assert_eq!(status_of(std::path::Path::new("/proc/thread-self"), "SigBlk"), before);
}

#[test]
fn a_pool_gets_and_loses_its_thread_by_its_policy() {
    if !is_child() {
        return again("a_pool_gets_and_loses_its_thread_by_its_policy");
    }
    let tasks = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let without = tasks();
    let mut returns = ReturnPolicy::default().with_worker(Worker::None);
    returns.keep_bytes = Some(0);
    let pool = Pool::builder().size(64 << 20).pinned().returns(returns).build().unwrap();
    pool.set_returns(returns.with_worker(Worker::Thread)).unwrap();
    assert_eq!(tasks(), without, "nothing goes back from a pinned pool");
    pool.set_pinned(false);
    for round in 1..4 {
        pool.set_returns(returns.with_worker(Worker::Thread)).unwrap();
        pool.set_returns(returns.with_worker(Worker::Thread)).unwrap();
        assert_eq!(tasks(), without + 1, "one thread");
        pool.alloc(Order::MAX).unwrap().fill(1);
        wait_for("memory goes back", || pool.stats().returned_bytes == round * (4 << 20));
        pool.set_returns(returns).unwrap();
        wait_for("the thread is gone", || tasks() == without);
    }
    pool.set_returns(returns.with_worker(Worker::Thread)).unwrap();
    drop(pool);
    wait_for("the thread is gone", || tasks() == without);
}

/// Waits up to 30 seconds until `is_so` returns `true`. `what` names the awaited event in the message of a
/// failure.
fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("not within 30 s: {what}");
}

#[test]
fn the_pools_thread_may_run_wherever_its_process_may() {
    if !is_child() {
        return again("the_pools_thread_may_run_wherever_its_process_may");
    }
    let all = status_of(std::path::Path::new("/proc/thread-self"), "Cpus_allowed_list");
    let last = std::thread::available_parallelism().unwrap().get() - 1;
    // SAFETY: a set whose bytes are all zero is a valid, empty set.
    let mut one = unsafe { MaybeUninit::<libc::cpu_set_t>::zeroed().assume_init() };
    // SAFETY: the set has room for every CPU of this machine.
    unsafe { libc::CPU_SET(last, &mut one) };
    // SAFETY: the set outlives the call.
    let outcome = unsafe { libc::sched_setaffinity(0, size_of_val(&one), &raw const one) };
    assert_eq!(outcome, 0, "{}", std::io::Error::last_os_error());
    let _pool = Pool::builder().size(64 << 20).build().unwrap();
    let task = thread_of_pool();
    wait_for(&all, || status_of(&task, "Cpus_allowed_list") == all);
}

#[test]
#[ignore = "needs root, or another right to real-time priorities"]
fn the_pools_thread_has_no_real_time_policy() {
    if !is_child() {
        return again("the_pools_thread_has_no_real_time_policy");
    }
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameter outlives the call.
    let outcome = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) };
    assert_eq!(outcome, 0, "{}", std::io::Error::last_os_error());
    let _pool = Pool::builder().size(64 << 20).build().unwrap();
    let task = thread_of_pool();
    let number = task.file_name().unwrap().to_str().unwrap().parse::<libc::pid_t>().unwrap();
    // SAFETY: has no memory arguments.
    wait_for("SCHED_OTHER", || unsafe { libc::sched_getscheduler(number) } == libc::SCHED_OTHER);
}
