//! One task on each CPU. All run the same work at the same time.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ostd::cpu::num_cpus;
use ostd::task::{Task, TaskOptions};
use ostd::timer::{TIMER_FREQ, register_callback_on_cpu};

use crate::{frames, scheduler, tests};

/// Starts a task on each CPU that runs `work` with the CPU's number. A second task on each CPU only yields to
/// this task, because OSTD frees some memory when a CPU switches tasks.
pub(crate) fn start(work: fn(usize)) {
    scheduler::start();
    for cpu in 0..num_cpus() {
        for task in [TaskOptions::new(move || work(cpu)), TaskOptions::new(idle)] {
            Arc::new(task.data(cpu).build().expect("memory for a stack")).run();
        }
    }
}

fn idle() {
    loop {
        Task::yield_now();
    }
}

/// Starts this CPU's tasks. Does not return.
pub(crate) fn enter() {
    // ANCHOR: tick
    let ticks = AtomicUsize::new(0);
    register_callback_on_cpu(move || {
        tests::interrupts::on_timer();
        let is_due = ticks.fetch_add(1, Ordering::Relaxed) % TIMER_FREQ as usize == 0;
        if is_due && !IS_STILL.load(Ordering::Acquire) {
            frames::tick();
        }
    });
    // ANCHOR_END: tick
    Task::yield_now();
}

/// `true` while the timers of all CPUs make no calls to the allocator.
static IS_STILL: AtomicBool = AtomicBool::new(false);

/// Sets whether timers make no calls to the allocator. The setting takes effect when all CPUs have met again.
pub(crate) fn keep_still(still: bool) {
    IS_STILL.store(still, Ordering::Release);
}

/// Waits until all CPUs have arrived.
pub(crate) fn meet() {
    static ARRIVED: AtomicUsize = AtomicUsize::new(0);
    let place = ARRIVED.fetch_add(1, Ordering::AcqRel);
    let all = (place / num_cpus() + 1) * num_cpus();
    while ARRIVED.load(Ordering::Acquire) < all {
        Task::yield_now();
    }
}

/// Gives OSTD time to free memory that it keeps until no CPU can still use it.
pub(crate) fn wait_for_frees() {
    for _ in 0..20 {
        meet();
        Task::yield_now();
    }
}
