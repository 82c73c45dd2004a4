//! The timer interrupt frees and allocates frames while the interrupted CPU does the same.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use alloc::vec::Vec;

use ostd::cpu::PinCurrentCpu;
use ostd::cpu_local;
use ostd::irq;
use ostd::mm::{Frame, FrameAllocOptions};
use ostd::sync::{LocalIrqDisabled, SpinLock};

use super::Test;

pub(crate) const TEST: Test = Test { name: "interrupts", counts: "frames", prepare, run, finish };

const FRAMES: usize = 20_000;
/// Maximum number of frames that one interrupt frees and allocates.
const BATCH: usize = 64;

cpu_local! {
    /// Frames that this CPU's interrupts will free.
    static HANDED_OVER: SpinLock<Vec<Frame<()>>, LocalIrqDisabled> = SpinLock::new(Vec::new());
}

static IS_RUNNING: AtomicBool = AtomicBool::new(false);

fn prepare() {
    IS_RUNNING.store(true, Relaxed);
}

fn finish() {
    IS_RUNNING.store(false, Relaxed);
}

/// Runs in the timer interrupt.
pub(crate) fn on_timer() {
    if !IS_RUNNING.load(Relaxed) {
        return;
    }
    let guard = irq::disable_local();
    let handed_over = HANDED_OVER.get_on_cpu(guard.current_cpu());
    for _ in 0..BATCH {
        let frame = handed_over.lock().pop();
        // The new frame replaces the old frame, and the handler frees the old frame at once.
        let Some(_old) = frame else { break };
        drop(allocate());
    }
}

fn run(_: usize) -> u64 {
    let handed_over = HANDED_OVER.get_on_cpu(irq::disable_local().current_cpu());
    *handed_over.lock() = Vec::with_capacity(BATCH * 4);
    for _ in 0..FRAMES {
        // The timer interrupt may come at any point of this work.
        let frame = allocate();
        drop(allocate());
        while handed_over.lock().len() == BATCH * 4 {
            drop(allocate());
        }
        handed_over.lock().push(frame);
    }
    while !handed_over.lock().is_empty() {
        core::hint::spin_loop();
    }
    let room = core::mem::take(&mut *handed_over.lock());
    drop(room);
    FRAMES as u64
}

fn allocate() -> Frame<()> {
    FrameAllocOptions::new().zeroed(false).alloc_frame().expect("memory enough")
}
