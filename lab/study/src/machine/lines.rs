//! Measures the cost of moving a cache line, or a message, from CPU to CPU on this machine.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use anyhow::Result;
use pageset_measure::host::{pin, usable_cpus};
use pageset_measure::pageops::median;

use super::rig::{fixed, score_per_ns};
use crate::load::ChannelSpec;
use crate::{ChannelId, Message, Target};

/// Number of atomic operations in one timing of atomic operations.
const ATOMICS: u32 = 100_000;
/// Number of writes of each CPU in one timing of two CPUs that write in turn. One timing of two CPUs that
/// write in turn takes only some microseconds, so nothing interrupts most timings.
const TURNS: u64 = 50;
/// Number of timings of two CPUs that write in turn.
const CHUNKS: u64 = 2001;
/// Number of timings of an atomic operation. The result is the median of the timings.
const ROUNDS: usize = 11;
/// Number of pages whose first write is timed. These pages take 64 MiB.
const FAULT_PAGES: usize = 16 << 10;
const PAGE_BYTES: usize = 4096;

/// A value that has a pair of cache lines to itself, because processors fetch pairs of adjacent lines
/// together.
#[repr(align(128))]
struct Line(AtomicU64);

/// Measures the time of an atomic operation on a line that only this CPU uses, in nanoseconds.
pub(super) fn atomic() -> f64 {
    let line = Line(AtomicU64::new(0));
    let mut times = (0..ROUNDS).map(|_| {
        let began = Instant::now();
        for _ in 0..ATOMICS {
            black_box(&line).0.fetch_add(1, Relaxed);
        }
        began.elapsed().as_nanos() as f64 / f64::from(ATOMICS)
    });
    median(&times.by_ref().collect::<Vec<_>>())
}

/// Measures the time from one write to the next when two CPUs write one line in turn, in nanoseconds. Returns
/// `None` if there is only one CPU.
pub(super) fn turn() -> Option<f64> {
    let cpus = usable_cpus();
    let [first, second] = *cpus.get(..2)? else { return None };
    let line = Line(AtomicU64::new(0));
    let play = |cpu, parity| {
        pin(cpu);
        let mut times = Vec::with_capacity(CHUNKS as usize);
        for chunk in 0..CHUNKS {
            let began = Instant::now();
            for turn in 0..TURNS {
                let mine = 2 * (chunk * TURNS + turn) + parity;
                // This loop has no pause, because a pause would take longer than the move of the line.
                while line.0.load(Relaxed) != mine {}
                line.0.fetch_add(1, Relaxed);
            }
            times.push(began.elapsed().as_nanos() as f64 / (2 * TURNS) as f64);
        }
        // The operating system interrupts some timings, which become long but hardly change the median.
        median(&times)
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| play(first, 0));
        let own = scope.spawn(|| play(second, 1)).join();
        // The threads do not panic, so both results exist.
        other.join().ok().and(own.ok())
    })
}

/// Measures the time from sending a message to a waiting CPU until that CPU has received it, in nanoseconds.
pub(super) fn message() -> Result<f64> {
    const THERE: ChannelId = ChannelId(0);
    const BACK: ChannelId = ChannelId(1);
    let ask = |target: &mut dyn Target| {
        while target.running() {
            target.send(THERE, Message::default());
            target.receive(BACK);
            target.score(1);
        }
        target.close(THERE);
    };
    let answer = |target: &mut dyn Target| {
        while let Some(message) = target.receive(THERE) {
            target.send(BACK, message);
        }
        target.close(BACK);
    };
    let channel = ChannelSpec { capacity: 1, senders: 1 };
    let round_trips = score_per_ns(fixed(63), vec![channel, channel], vec![Box::new(ask), Box::new(answer)])?;
    Ok(if round_trips > 0.0 { 0.5 / round_trips } else { 0.0 })
}

/// Measures the time of the first write to a page of new memory, in nanoseconds. The time includes the page
/// fault and the clearing of the page.
pub(super) fn fault() -> f64 {
    let time = |_| {
        let mut memory = vec![0_u8; FAULT_PAGES * PAGE_BYTES];
        let began = Instant::now();
        memory.iter_mut().step_by(PAGE_BYTES).for_each(|byte| *byte = 1);
        black_box(&mut memory);
        began.elapsed().as_nanos() as f64 / FAULT_PAGES as f64
    };
    median(&(0..3).map(time).collect::<Vec<_>>())
}
