//! Counters of instructions and cycles, from the kernel's performance events.

use std::io;

use perf_event_open::config::{Cpu, Opts, Proc};
use perf_event_open::count::Counter;
use perf_event_open::event::hw::Hardware;

/// Running counters of one thread's instructions and cycles.
pub(in super::super) struct Counters {
    instructions: Counter,
    cycles: Counter,
}

impl Counters {
    /// Starts counting this thread's work in user space.
    ///
    /// # Errors
    ///
    /// Returns the system's error if the system does not provide the counters.
    pub(in super::super) fn of_this_thread() -> Result<Self, String> {
        let counters = || -> io::Result<Self> {
            let counter = |event| {
                let mut options = Opts::default();
                // The counters leave out work in the kernel, because counting this work needs privileges that
                // the user may lack.
                options.exclude.kernel = true;
                options.exclude.hv = true;
                Counter::new(event, (Proc::CURRENT, Cpu::ALL), options)
            };
            let counters =
                Self { instructions: counter(Hardware::Instr)?, cycles: counter(Hardware::CpuCycle)? };
            counters.instructions.enable()?;
            counters.cycles.enable()?;
            Ok(counters)
        };
        counters().map_err(|error| error.to_string())
    }

    /// Returns the numbers of instructions and cycles since counting began.
    pub(in super::super) fn read(&self) -> Result<(u64, u64), String> {
        let read = || Ok((self.instructions.stat()?.count, self.cycles.stat()?.count));
        read().map_err(|error: io::Error| error.to_string())
    }
}
