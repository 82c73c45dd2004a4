//! The scheduler: it keeps the clocks of virtual CPUs, and decides which CPU runs next.
//!
//! Each CPU has a clock. A CPU runs ahead of the other CPUs until its next operation is one that other CPUs
//! can see: taking a lock, touching a shared line, using a channel. Before an operation that other CPUs can
//! see, the CPU waits ([`Engine::sync`]) until no other CPU has an earlier clock. So visible operations
//! happen in the order of virtual time, and a run depends only on its input.

mod agenda;
pub(crate) mod current;
mod processor;
mod stack;

use std::cell::{Cell, RefCell};

use agenda::{Agenda, Entry};
pub(crate) use processor::Processor;
pub(crate) use stack::CpuCoroutine;

use crate::bandwidth::Bandwidth;
use crate::digest::Digest;
use crate::footprint::Footprint;
use crate::lines::Lines;
use crate::lock::{LockModel, LockTable};
use crate::prices::{Prices, SLOWDOWN_BITS};
use crate::tally::Tally;
use crate::time::Time;
use crate::variation::Variation;

/// Largest lead of a CPU's clock over the earliest clock, while the CPU does nothing that other CPUs can see.
/// The largest lead is 20 µs, in picoseconds. If a CPU reads a counter without a lock, it may miss changes
/// that other CPUs made during the last 20 µs. The largest lead of 20 µs is a guess: the simulator then
/// switches CPUs about once in forty allocations and not at each allocation.
const RUN_AHEAD_PS: u64 = 20_000_000;

/// The CPU number of agenda entries that belong to no CPU. An agenda entry with the CPU number `MARK` begins
/// or ends the measured time.
const MARK: u32 = u16::MAX as u32;

/// The next step of the simulation: a CPU runs, or the measuring begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The CPU with this number runs next.
    Cpu(u32),
    /// The measuring begins or ends now, because the time of an [`Engine::enter_mark`] has come.
    Mark,
}

/// The state of a simulation, except its allocator and the code of its CPUs.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) cpus: Box<[Processor]>,
    /// The CPU whose code is running.
    running: Cell<u32>,
    agenda: RefCell<Agenda>,
    /// The agenda entry that runs next, if the CPU that suspended itself last has already taken this entry
    /// from the agenda.
    upcoming: Cell<Option<Entry>>,
    /// Time of the earliest entry of the agenda.
    horizon: Cell<u64>,
    /// Number of CPUs that will run again, even if no other CPU wakes them or passes a lock to them.
    live: Cell<u32>,
    pub(crate) locks: LockTable,
    pub(crate) lines: Lines,
    pub(crate) model: LockModel,
    pub(crate) prices: Prices,
    pub(crate) footprint: RefCell<Footprint>,
    pub(crate) bandwidth: Bandwidth,
    pub(crate) variation: Variation,
    pub(crate) tally: RefCell<Tally>,
    digest: Cell<Digest>,
}

impl Engine {
    pub(crate) fn new(
        cpus: Box<[Processor]>,
        (locks, lines): (LockTable, Lines),
        model: LockModel,
        prices: Prices,
        footprint: Footprint,
        variation: Variation,
    ) -> Self {
        Self {
            cpus,
            running: Cell::new(0),
            agenda: RefCell::default(),
            upcoming: Cell::new(None),
            horizon: Cell::new(u64::MAX),
            live: Cell::new(0),
            locks,
            lines,
            model,
            bandwidth: Bandwidth::new(prices.nodes),
            prices,
            footprint: RefCell::new(footprint),
            variation,
            tally: RefCell::default(),
            digest: Cell::new(Digest::EMPTY),
        }
    }

    /// The CPU whose code is running.
    #[inline]
    pub(crate) fn cpu(&self) -> &Processor {
        &self.cpus[self.running.get() as usize]
    }

    /// Index of the CPU whose code is running.
    #[inline]
    pub(crate) fn cpu_index(&self) -> u32 {
        self.running.get()
    }

    /// Charges `ps` picoseconds of busy time to the running CPU.
    #[inline]
    pub(crate) fn charge(&self, ps: u64) {
        let clock = &self.cpu().clock;
        clock.set(clock.get().saturating_add(ps));
    }

    /// Charges `ps` picoseconds for computing, and more if another hardware thread of the core has a body
    /// too.
    #[inline]
    pub(crate) fn work(&self, ps: u64) {
        self.charge(ps.saturating_add(ps.saturating_mul(self.cpu().slowdown.get()) >> SLOWDOWN_BITS));
    }

    #[inline]
    pub(crate) fn note(&self, word: u64) {
        self.digest.set(self.digest.get().add(word));
    }

    pub(crate) fn digest(&self) -> u64 {
        self.digest.get().value()
    }

    /// Suspends the running CPU until no other CPU has an earlier clock. When this function returns, no other
    /// CPU will act at an earlier virtual time than the running CPU's next operation.
    #[inline]
    pub(crate) fn sync(&self) {
        while self.cpu().clock.get() > self.horizon.get() {
            self.step_aside();
        }
    }

    /// If the running CPU is more than [`RUN_AHEAD_PS`] ahead of the earliest clock, suspends the CPU until
    /// no other CPU has an earlier clock.
    #[inline]
    pub(crate) fn keep_close(&self) {
        if self.cpu().clock.get() > self.horizon.get().saturating_add(RUN_AHEAD_PS) {
            self.sync();
        }
    }

    #[cold]
    fn step_aside(&self) {
        let cpu = self.cpu();
        let (sequence, first) = self.agenda.borrow_mut().exchange(cpu.clock.get(), self.cpu_index());
        cpu.entry.set(sequence);
        self.upcoming.set(Some(first));
        cpu.way_back.suspend();
    }

    /// Adds an entry to the agenda: `cpu` continues at `time`.
    pub(crate) fn enter(&self, cpu: u32, time: Time) {
        let mut agenda = self.agenda.borrow_mut();
        self.cpus[cpu as usize].entry.set(agenda.push(time.0, cpu));
        self.horizon.set(agenda.earliest());
    }

    /// Adds an entry to the agenda that belongs to no CPU: the measuring begins or ends at `time`.
    pub(crate) fn enter_mark(&self, time: Time) {
        let mut agenda = self.agenda.borrow_mut();
        agenda.push(time.0, MARK);
        self.horizon.set(agenda.earliest());
    }

    /// Adds the first entry of a CPU to the agenda.
    pub(crate) fn start(&self, cpu: u32) {
        self.live.set(self.live.get() + 1);
        self.enter(cpu, Time::ZERO);
    }

    /// Finds the next step of the simulation. Returns `None` if the agenda has no more entries.
    pub(crate) fn next(&self) -> Option<Next> {
        let mut agenda = self.agenda.borrow_mut();
        loop {
            let entry = self.upcoming.take().or_else(|| agenda.pop())?;
            self.horizon.set(agenda.earliest());
            let Some(cpu) = self.cpus.get(entry.cpu() as usize) else { return Some(Next::Mark) };
            // If another CPU woke this CPU before the time of `entry`, a newer entry has replaced `entry`.
            if cpu.entry.get() != entry.sequence() {
                continue;
            }
            cpu.entry.set(0);
            debug_assert!(cpu.clock.get() <= entry.time(), "time runs forward");
            self.running.set(entry.cpu());
            return Some(Next::Cpu(entry.cpu()));
        }
    }

    /// Records that the code of a CPU has ended.
    pub(crate) fn ended(&self, cpu: u32) {
        self.live.set(self.live.get() - 1);
        self.note(self.cpus[cpu as usize].clock.get());
    }

    /// Whether every CPU has ended, or waits for another CPU.
    pub(crate) fn is_stalled(&self) -> bool {
        self.live.get() == 0
    }

    /// Suspends the running CPU, which waits for a lock, until [`hand_over`](Self::hand_over) sets its clock.
    pub(crate) fn spin(&self) {
        self.live.set(self.live.get() - 1);
        let cpu = self.cpu();
        cpu.is_spinning.set(true);
        cpu.way_back.suspend();
        cpu.is_spinning.set(false);
    }

    /// Lets a spinning CPU continue at `time`.
    pub(crate) fn hand_over(&self, cpu: u32, time: u64) {
        self.live.set(self.live.get() + 1);
        self.cpus[cpu as usize].clock.set(time);
        self.enter(cpu, Time(time));
    }

    /// Leaves the running CPU idle until `until`, or until another CPU wakes it. Returns whether another CPU
    /// woke the running CPU. `is_promised` says whether the CPU's body continues at `until` even if no CPU
    /// wakes it.
    pub(crate) fn idle(&self, until: Time, is_promised: bool) -> bool {
        let cpu = self.cpu();
        // Another CPU woke the running CPU while the running CPU did its periodic work. So the running CPU
        // must not wait.
        if cpu.is_woken.replace(false) {
            return true;
        }
        let began = cpu.clock.get();
        cpu.is_idle.set(true);
        if until.0 < u64::MAX {
            self.enter(self.cpu_index(), until.max(Time(began)));
        }
        if !is_promised {
            self.live.set(self.live.get() - 1);
        }
        cpu.is_counted.set(is_promised);
        cpu.way_back.suspend();
        cpu.is_idle.set(false);
        if !cpu.is_counted.replace(true) {
            self.live.set(self.live.get() + 1);
        }
        let woken = cpu.is_woken.replace(false);
        if !woken {
            cpu.clock.set(began.max(until.0));
        }
        cpu.idle_ps.set(cpu.idle_ps.get() + (cpu.clock.get() - began));
        woken
    }

    /// Wakes a waiting CPU. The CPU continues at `time` at the earliest. If the CPU is doing its periodic
    /// work, it finishes this work before it continues.
    pub(crate) fn wake(&self, cpu: u32, time: Time) {
        let target = &self.cpus[cpu as usize];
        if target.is_woken.replace(true) || !target.is_idle.get() {
            return;
        }
        if !target.is_counted.replace(true) {
            self.live.set(self.live.get() + 1);
        }
        let clock = target.clock.get().max(time.0);
        target.clock.set(clock);
        self.enter(cpu, Time(clock));
    }
}
