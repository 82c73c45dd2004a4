//! The cost of clearing and copying pages on this machine, and of touching them afterwards.
//!
//! `way` has the ways that are compared, `load` the work of the other CPUs. `memory` and `clock` are the
//! means of measuring. `grid` measures huge pages, on CPUs that wait for each other at a `rendezvous`;
//! `sizes` measures the other sizes. `measurement` is the result.

pub(crate) mod clock;
pub(crate) mod grid;
pub(crate) mod load;
mod measurement;
pub(crate) mod memory;
mod rendezvous;
mod sizes;
pub(crate) mod way;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use pageset_pageops::{Isa, Kernel, Method};
use serde::{Deserialize, Serialize};

pub use clock::median;
use grid::Rounds;
pub use grid::{TOUCHES, Target};
use load::EndOnDrop;
pub use load::Load;
pub use measurement::Measurement;
pub use memory::{HUGE_PAGE_BYTES, HugeMemory};
use pageset_report::{Cancelled, Progress};
pub use way::Operation;

/// Rounds of a full run: the number of samples for each median.
const ROUNDS: usize = 100;
/// Rounds of a quick run.
const ROUNDS_QUICK: usize = 10;
/// Rounds for single base pages. Each has 512 operations.
const ROUNDS_SMALL: usize = 600;
/// Rounds of gigantic pages.
const ROUNDS_GIGANTIC: usize = 5;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BenchSpec {
    /// A tenth of the rounds, and no page of 1 GiB: less than a minute.
    pub is_quick: bool,
    /// Seed of the order of measurements and of random targets.
    pub seed: u64,
}

/// The result of a measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Measurements {
    /// One row for each way, target, touch and load.
    pub rows: Vec<Measurement>,
    /// Instructions for clearing and copying that this machine has or lacks.
    pub notes: Vec<String>,
}

/// Clears and copies pages of all sizes, with every way, under every load.
///
/// # Errors
///
/// There is too little memory; [`Cancelled`], which ends it after the load that is being measured.
pub fn bench(spec: &BenchSpec, progress: &mut dyn Progress) -> Result<Measurements> {
    let mut notes = notes();
    let rounds = if spec.is_quick { ROUNDS_QUICK } else { ROUNDS };
    let rounds = Rounds { rounds, seed: spec.seed };
    let loads = Load::all();
    let total: u64 =
        Operation::ALL.map(|operation| rounds.operations(operation)).iter().sum::<u64>() * loads.len() as u64;
    progress.begin("measuring", "operations", Some(total));
    let done = AtomicU64::new(0);
    let mut rows = Vec::new();
    let mut all_huge = true;
    for operation in Operation::ALL {
        for load in &loads {
            let measured = with_progress(&done, progress, || grid::measure(operation, *load, rounds, &done))?;
            let (measured, is_huge) = measured?;
            rows.extend(measured);
            all_huge &= is_huge;
        }
    }
    for operation in Operation::ALL {
        let rounds = if spec.is_quick { ROUNDS_SMALL / 5 } else { ROUNDS_SMALL };
        rows.extend(sizes::small(operation, rounds)?);
        if !spec.is_quick {
            match sizes::gigantic(operation, ROUNDS_GIGANTIC)? {
                Some(measured) => rows.extend(measured),
                None => {
                    notes.push(format!("Skipped: {} 1 GiB, which needs 3 GiB of memory.", operation.name()))
                }
            }
        }
    }
    if !all_huge {
        let remedy = "write `madvise` to /sys/kernel/mm/transparent_hugepage/enabled";
        notes.push(format!(
            "The system backs the pages with base pages, so the TLB is part of all times: {remedy}."
        ));
    }
    Ok(Measurements { rows, notes })
}

/// The machine's instructions for clearing and copying, and missing features.
fn notes() -> Vec<String> {
    let method = Method::chosen();
    let mut notes = vec![format!(
        "The library's choice here: {}, {}, {} base pages around the target in the cache.",
        method.order().name(),
        method.kernel().isa().name(),
        2 * method.radius_pages() + 1,
    )];
    let missing: Vec<_> =
        Isa::ALL.into_iter().filter(|isa| Kernel::new(*isa).is_none()).map(Isa::name).collect();
    if !missing.is_empty() {
        notes.push(format!("Skipped, since this CPU has none: {}.", missing.join(", ")));
    }
    if Load::all().len() == 1 {
        notes.push("Skipped, since this machine has one CPU: loads other than alone.".to_owned());
    }
    notes
}

/// Runs `work` while another thread reports progress, ten times a second. That is rare enough not to disturb
/// the measurement.
fn with_progress<R>(
    done: &AtomicU64,
    progress: &mut dyn Progress,
    work: impl FnOnce() -> R,
) -> Result<R, Cancelled> {
    let is_over = AtomicBool::new(false);
    let mut said = Ok(());
    let result = thread::scope(|scope| {
        let (is_over, said) = (&is_over, &mut said);
        scope.spawn(move || {
            while !is_over.load(Relaxed) && said.is_ok() {
                *said = progress.update(done.load(Relaxed));
                thread::park_timeout(Duration::from_millis(100));
            }
        });
        // The scope waits for that thread, so it must end even if the work panics.
        let _end = EndOnDrop(is_over);
        work()
    });
    said.map(|()| result)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// The thread that reports progress must learn of a panic of the work. Otherwise the scope would wait for
    /// it for ever, as it once did.
    #[test]
    fn work_that_panics_ends() {
        let done = AtomicU64::new(0);
        let work = || with_progress(&done, &mut (), || panic!("the work fails"));
        assert!(catch_unwind(AssertUnwindSafe(work)).is_err());
    }
}
