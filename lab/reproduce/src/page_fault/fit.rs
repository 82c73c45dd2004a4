//! Chooses the only fitted number of this study: the time of a fault that never waits (its *private time*).
//! With the fitted private time, the simulated row of one thread agrees with the published row.

use anyhow::{Context as _, Result};
use pageset_sim::Machine;

use super::printed::{PAGES_PER_GIB, PrintedRow};
use super::runs::Key;

/// Returns the private time of a fault that makes a single thread take the printed wall time. A single thread
/// never waits, so its wall time is the private time of its faults plus the time of all other work. Returns 0
/// if the work outside the private time takes longer than the printed time.
pub(super) fn fault_ns(machine: &Machine, rows: &[PrintedRow]) -> Result<f64> {
    let row = rows.iter().find(|row| row.threads == 1).context("the text has a row of one thread")?;
    let pages = u64::from(row.gib * PAGES_PER_GIB);
    let key = Key { shared_cache: true, ..Key::new(row.strategy, 1, pages) };
    let without = key.run(machine, 0.0)?;
    Ok((1e9 / row.faults_per_wall_s - 1e9 / without.faults_per_wall_s()).max(0.0))
}
