//! One CPU allocates frames, and the next CPU frees them.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use ostd::cpu::num_cpus;
use ostd::mm::{Frame, FrameAllocOptions};
use ostd::sync::SpinLock;
use spin::Once;

use super::Test;

pub(crate) const TEST: Test = Test { name: "producer-consumer", counts: "frames", prepare, run, finish };

const FRAMES: u64 = 100_000;
/// Maximum number of frames on their way to a CPU.
const ROOM: usize = 256;

/// The frames that each CPU will free.
static QUEUES: Once<Vec<SpinLock<VecDeque<Frame<()>>>>> = Once::new();

fn prepare() {
    QUEUES.call_once(|| (0..num_cpus()).map(|_| SpinLock::new(VecDeque::with_capacity(ROOM))).collect());
}

fn run(cpu: usize) -> u64 {
    let queues = QUEUES.get().expect("it was prepared");
    let (mine, next) = (&queues[cpu], &queues[(cpu + 1) % queues.len()]);
    let mut options = FrameAllocOptions::new();
    options.zeroed(false);
    let (mut produced, mut consumed) = (0, 0);
    while produced < FRAMES || consumed < FRAMES {
        if produced < FRAMES && next.lock().len() < ROOM {
            let frame = options.alloc_frame().expect("memory enough");
            next.lock().push_back(frame);
            produced += 1;
        }
        let frame = mine.lock().pop_front();
        consumed += u64::from(frame.is_some());
    }
    produced
}

fn finish() {
    assert!(QUEUES.get().expect("it was prepared").iter().all(|queue| queue.lock().is_empty()));
}
