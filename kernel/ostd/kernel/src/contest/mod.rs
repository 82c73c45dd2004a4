//! Compares OSTD's allocator, Linux's and pageset's own: the same calls through the same interface, in one
//! run, each with 64 MiB.
//!
//! With `-icount shift=0` the clock counts instructions, and the results are exact. Otherwise they are times.

mod fragment;
mod work;

use alloc::vec::Vec;
use core::alloc::Layout;

use osdk_frame_allocator::FrameAllocator as OsdkFrames;
use ostd::arch::read_tsc;
use ostd::cpu::num_cpus;
use ostd::irq;
use ostd::mm::frame::GlobalFrameAllocator;
use ostd::mm::{PAGE_SIZE, Paddr};
use ostd::prelude::*;
use ostd::sync::SpinLock;
use pageset_core::policy::LINUX_6_18;
use pageset_ostd::{ArrayFrames, Frames, LinuxFrames, OwnFrames};
use work::{WORKS, Work};

use crate::{crew, frames, option};

/// Memory of each allocator.
const BYTES: usize = 64 << 20;

static LINUX: LinuxFrames = Frames::new(LINUX_6_18);
static OWN: OwnFrames = Frames::new(LINUX_6_18);
static OWN_WITH_ARRAYS: ArrayFrames = Frames::new(LINUX_6_18);

static CONTESTANTS: [(&str, &dyn GlobalFrameAllocator); 5] = [
    ("loop", &NoFrames),
    ("osdk", &OsdkFrames),
    ("linux-6.18", &LINUX),
    ("own", &OWN),
    ("own-with-arrays", &OWN_WITH_ARRAYS),
];

/// An allocator that does nothing. With it, the contest measures the cost of the loops.
struct NoFrames;

impl GlobalFrameAllocator for NoFrames {
    fn alloc(&self, _: Layout) -> Option<Paddr> {
        Some(0)
    }

    fn dealloc(&self, _: Paddr, _: usize) {}

    fn add_free_memory(&self, _: Paddr, _: usize) {}
}

/// Runs the contest on this CPU, at the same time as on all other CPUs.
pub(crate) fn run(cpu: usize) {
    assert_ne!(frames::NAME, "osdk", "a contestant cannot be the kernel's allocator too");
    if cpu == 0 {
        let layout = Layout::from_size_align(BYTES, PAGE_SIZE).expect("a layout");
        for (_, contestant) in &CONTESTANTS[1..] {
            let memory = frames::of_kernel().alloc(layout).expect("a machine of 512 MiB");
            contestant.add_free_memory(memory, BYTES);
        }
    }
    crew::wait_for_frees();
    for work in &WORKS {
        for (name, contestant) in CONTESTANTS {
            measure(cpu, work, name, contestant);
        }
    }
    if cpu == 0 {
        for (name, contestant) in &CONTESTANTS[1..] {
            fragment::run(name, *contestant);
        }
    }
    crew::wait_for_frees();
}

/// Measures the cost of a block over several rounds, with interrupts off.
fn measure(cpu: usize, work: &Work, name: &str, contestant: &dyn GlobalFrameAllocator) {
    const ROUNDS: usize = 40;
    static TICKS: SpinLock<[u64; ROUNDS]> = SpinLock::new([0; ROUNDS]);
    let mut blocks = Vec::with_capacity(work.blocks);
    if cpu == 0 {
        *TICKS.lock() = [0; ROUNDS];
    }
    for round in 0..ROUNDS {
        crew::meet();
        let off = irq::disable_local();
        let start = read_tsc();
        (work.run)(work, contestant, &mut blocks);
        let ticks = read_tsc() - start;
        drop(off);
        TICKS.lock()[round] += ticks;
    }
    crew::meet();
    if cpu == 0 {
        let mut ticks = *TICKS.lock();
        // Leave out the first rounds, because caches fill during these rounds. Some rounds have refills and
        // other rounds have none, so take the mean of instructions. Take the median of times.
        let ticks = &mut ticks[ROUNDS / 4..];
        ticks.sort_unstable();
        let typical = if num_cpus() > 1 {
            ticks[ticks.len() / 2]
        } else {
            ticks.iter().sum::<u64>() / ticks.len() as u64
        };
        let per_block = typical * 10 / (work.blocks * num_cpus()) as u64;
        let unit = option("unit=").unwrap_or("tsc");
        print!(r#"{{"contest":"{}","allocator":"{}","cpus":{},"#, work.name, name, num_cpus());
        println!(r#""unit":"{}","per_block":{}.{}}}"#, unit, per_block / 10, per_block % 10);
    }
    crew::meet();
}
