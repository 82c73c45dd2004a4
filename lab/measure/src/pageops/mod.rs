//! Measures the cost of clearing and copying pages on this machine, and the cost of touching the pages
//! afterwards.
//!
//! `way` has the ways that are compared, and `load` has the work of the other CPUs. `memory` and `clock` have
//! the memory and the clock of the measurements. `grid` measures huge pages, on CPUs that wait for each other
//! at a `rendezvous`. `sizes` measures pages of 4 KiB and 1 GiB. `measurement` is the result.

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

/// Rounds of a full run. If one CPU measures, each median has this number of samples.
const ROUNDS: usize = 100;
/// Rounds of a quick run.
const ROUNDS_QUICK: usize = 10;
/// Rounds for single base pages. In each round, each way does 512 operations.
const ROUNDS_SMALL: usize = 600;
/// Rounds for pages of 1 GiB.
const ROUNDS_GIGANTIC: usize = 5;

/// The choices for a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BenchSpec {
    /// Whether to measure less, in less than a minute. A quick measurement has a tenth of the rounds for huge
    /// pages, a fifth of the rounds for base pages, and no page of 1 GiB.
    pub is_quick: bool,
    /// Seed of the order of measurements and of random targets.
    pub seed: u64,
}

/// The result of a measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Measurements {
    /// One row for each way, target, touch and load.
    pub rows: Vec<Measurement>,
    /// Sentences about the chosen method, and about measurements that were skipped.
    pub notes: Vec<String>,
}

/// Measures the clearing and copying of pages of 4 KiB, 2 MiB and 1 GiB. Pages of 2 MiB are measured in every
/// way, under every load.
///
/// # Errors
///
/// An error if there is too little memory, or [`Cancelled`] if `progress` cancels. After a cancellation, the
/// function returns only when the measurement under the present load has ended.
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

/// Returns sentences about the library's choice on this machine, and about instructions and loads that this
/// machine does not have.
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

/// Runs `work` while another thread reports progress, ten times a second. The thread that reports runs too
/// rarely to disturb the measurement.
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
        // The scope waits for the thread that reports progress, so this thread must end even if the work
        // panics.
        let _end = EndOnDrop(is_over);
        work()
    });
    said.map(|()| result)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Tests that the thread that reports progress ends if the work panics. If the thread did not end, the
    /// scope would wait for the thread for ever.
    #[test]
    fn work_that_panics_ends() {
        let done = AtomicU64::new(0);
        let work = || with_progress(&done, &mut (), || panic!("the work fails"));
        assert!(catch_unwind(AssertUnwindSafe(work)).is_err());
    }
}
