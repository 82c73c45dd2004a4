//! A thread that takes pages from the kernel and gives all these pages back, again and again.

use std::time::Duration;

use anyhow::{Context as _, Result};
use memmap2::{Advice, MmapMut};

use crate::host::thread_cpu;
use crate::host::{pin, usable_cpus};

/// Bytes of one pass. A pass has many batches of pages. The pages of a pass fit into a page set of the
/// largest limit if the machine has at least 1 GiB for each CPU.
const BYTES: usize = 32 << 20;
/// Number of passes after which page sets are in the loop's steady state.
pub(super) const PASSES_WARM: u32 = 3;

/// A fault loop on one CPU.
#[derive(Clone, Copy, Debug)]
pub struct FaultLoop {
    cpu: Option<usize>,
}

impl FaultLoop {
    /// Makes the loop for the last CPU that this program may use, because the first CPU has more interrupts.
    #[must_use]
    pub fn new() -> Self {
        Self { cpu: usable_cpus().last().copied() }
    }

    /// Runs the loop on the calling thread, which stays on the loop's CPU afterwards. Returns the CPU time of
    /// each pass.
    ///
    /// # Errors
    /// An error if the system gives no memory.
    pub fn run(self, passes: u32) -> Result<Vec<Duration>> {
        self.cpu.map(pin);
        (0..PASSES_WARM).try_for_each(|_| pass())?;
        let timed = |_| {
            let before = thread_cpu();
            pass().map(|()| thread_cpu() - before)
        };
        (0..passes).map(timed).collect()
    }
}

impl Default for FaultLoop {
    fn default() -> Self {
        Self::new()
    }
}

fn pass() -> Result<()> {
    let mut map = MmapMut::map_anon(BYTES)
        .with_context(|| format!("cannot map {} MiB for a fault loop", BYTES >> 20))?;
    // Huge pages must be off, because they would bypass the lists of single pages. A kernel without huge
    // pages refuses `MADV_NOHUGEPAGE`, but then huge pages are off anyway.
    #[cfg(target_os = "linux")]
    let _ = map.advise(Advice::NoHugePage);
    map.iter_mut().step_by(rustix::param::page_size()).for_each(|byte| *byte = 1);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_takes_time() {
        std::thread::spawn(|| assert!(FaultLoop::new().run(1).unwrap()[0] > Duration::ZERO)).join().unwrap();
    }
}
