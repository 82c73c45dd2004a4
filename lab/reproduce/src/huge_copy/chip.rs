//! Reads chips from `caches.csv`, a table of the published machines.

use anyhow::{Context as _, Result};
use pageset_study::huge_copy::Chip;

use crate::published::published;

/// Returns the chip that `caches.csv` lists under this name.
pub(super) fn chip_named(name: &str) -> Result<Chip> {
    let table = published!("huge-copy/caches.csv")?;
    let row =
        table.rows_with("chip", name).next().with_context(|| format!("caches.csv has no chip `{name}`"))?;
    let value = |column| row.number(column)?.with_context(|| format!("`{name}` has no `{column}`"));
    Ok(Chip {
        processes: value("processes")? as usize,
        own_kib: value("own_kib")? as usize,
        shared_kib: value("shared_kib")? as usize,
        ways: value("ways")? as usize,
        word_ns: value("word_ns")?,
        memory_gb_per_s: value("memory_gb_per_s")?,
        process_gb_per_s: value("process_gb_per_s")?,
        jump_ns: value("jump_ns")?,
        call_ns: value("call_ns")?,
        shares_source: true,
    })
}
