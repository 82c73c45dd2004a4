//! The work of the other CPUs during a measurement.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use crate::host::{pin, usable_cpus};

/// Number of bytes that the other CPU sweeps through: more than a third-level cache of 32 MiB holds.
const THRASH_BYTES: usize = 64 << 20;
/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// The load of the other CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// This program gives the other CPUs no work.
    Alone,
    /// One other CPU sweeps through memory.
    Thrash,
    /// All CPUs measure. Each CPU has its own pages.
    EveryCpu,
}

impl Load {
    /// All loads that this machine can run. With one CPU, the machine can run only `Alone`.
    pub fn all() -> Vec<Self> {
        if usable_cpus().len() > 1 {
            vec![Self::Alone, Self::Thrash, Self::EveryCpu]
        } else {
            vec![Self::Alone]
        }
    }

    /// Name of the load in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Thrash => "thrash",
            Self::EveryCpu => "every-cpu",
        }
    }

    /// The CPUs that measure. If only one CPU measures, the last CPU measures, because interrupts prefer the
    /// first CPU.
    pub fn measuring_cpus(self) -> Vec<usize> {
        let cpus = usable_cpus();
        match self {
            Self::Alone | Self::Thrash => cpus.last().copied().into_iter().collect(),
            Self::EveryCpu => cpus,
        }
    }

    /// Runs `measure` under this load.
    pub fn around<R>(self, measure: impl FnOnce() -> R) -> R {
        let neighbour = (self == Self::Thrash).then(|| usable_cpus()[0]);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            if let Some(cpu) = neighbour {
                let is_over = &is_over;
                scope.spawn(move || thrash(cpu, is_over));
            }
            // The other CPU's work ends even if the measurement panics.
            let _end = EndOnDrop(&is_over);
            measure()
        })
    }
}

/// Sets the flag when this value is dropped, even by a panic.
pub(super) struct EndOnDrop<'a>(pub(super) &'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

fn thrash(cpu: usize, is_over: &AtomicBool) {
    pin(cpu);
    let mut memory = vec![1_u8; THRASH_BYTES];
    while !is_over.load(Relaxed) {
        for line in memory.chunks_exact_mut(LINE_BYTES) {
            line[0] = line[0].wrapping_add(1);
        }
        std::hint::black_box(&mut memory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_ends_with_the_measurement() {
        for load in Load::all() {
            assert_eq!(load.around(|| load.measuring_cpus().len()), load.measuring_cpus().len());
        }
    }
}
