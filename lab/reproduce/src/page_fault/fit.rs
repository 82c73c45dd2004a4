//! Chooses the only fitted number of this study: the time of a fault that never waits (its *private time*).
//! The number is chosen so that the row of one thread agrees with the published row.

use anyhow::{Context as _, Result};
use pageset_sim::Machine;

use super::printed::{PAGES_PER_GIB, PrintedRow};
use super::runs::Key;

/// Returns the private time of a fault that makes one thread take the printed wall time. Returns 0 if the
/// work besides faults alone takes longer than the printed time. One thread alone never waits, so its wall
/// time is the time of its faults plus the time of its work besides faults.
pub(super) fn fault_ns(machine: &Machine, rows: &[PrintedRow]) -> Result<f64> {
    let row = rows.iter().find(|row| row.threads == 1).context("the text has a row of one thread")?;
    let pages = u64::from(row.gib * PAGES_PER_GIB);
    let key = Key { shared_cache: true, ..Key::new(row.strategy, 1, pages) };
    let without = key.run(machine, 0.0)?;
    Ok((1e9 / row.faults_per_wall_s - 1e9 / without.faults_per_wall_s()).max(0.0))
}
