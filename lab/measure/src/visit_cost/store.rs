//! Keeps the measured cost between commands, in one file for each user.

use std::env;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use pageset_trace::VisitCost;
use tempfile::NamedTempFile;

use crate::host;

/// The path `$XDG_STATE_HOME/pageset/visit-cost.json`. If the variable is not set, `~/.local/state` takes its
/// place. `None` if neither `XDG_STATE_HOME` nor `HOME` is set.
#[must_use]
pub fn path() -> Option<PathBuf> {
    let state = env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = state.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".local/state")))?;
    Some(state.join("pageset/visit-cost.json"))
}

/// Keeps a cost for later recordings. The file appears whole or not at all.
///
/// # Errors
/// An error if the file cannot be written.
pub fn keep(cost: &VisitCost, path: &Path) -> Result<()> {
    let cannot = || format!("{}: the cost of a visit cannot be kept", path.display());
    let directory = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(directory).with_context(cannot)?;
    let mut file = NamedTempFile::new_in(directory).with_context(cannot)?;
    serde_json::to_writer_pretty(&mut file, cost).with_context(cannot)?;
    file.write_all(b"\n").with_context(cannot)?;
    file.persist(path).with_context(cannot)?;
    Ok(())
}

/// The cost that was kept. `None` if there is no cost for this CPU and this kernel.
#[must_use]
pub fn kept() -> Option<VisitCost> {
    read(&path()?, &host::cpu_model()?, &host::kernel()?)
}

fn read(path: &Path, cpu: &str, kernel: &str) -> Option<VisitCost> {
    let cost: VisitCost = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    (cost.is_sound() && cost.cpu == cpu && cost.kernel == kernel).then_some(cost)
}

/// The date of today, in UTC.
#[must_use]
pub fn date() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    date_of(seconds / 86_400)
}

/// The date `days` after 1970-01-01.
fn date_of(mut days: u64) -> String {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let months = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= months[month] {
        days -= months[month];
        month += 1;
    }
    format!("{year}-{:02}-{:02}", month + 1, days + 1)
}

#[cfg(test)]
mod tests {
    use pageset_trace::CostRange;

    use super::*;

    #[test]
    fn a_cost_is_of_one_cpu_and_kernel() {
        let range = CostRange { min: 1.0, median: 2.0, max: 3.0 };
        let cost = VisitCost {
            visit_ns: range,
            page_ns: range,
            pages_per_visit: 63.0,
            rounds: 7,
            cpu: "a".into(),
            kernel: "6.18".into(),
            date: date(),
        };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("made/visit-cost.json");
        assert_eq!(read(&path, "a", "6.18"), None);
        keep(&cost, &path).unwrap();
        assert_eq!(read(&path, "a", "6.18"), Some(cost));
        assert_eq!((read(&path, "b", "6.18"), read(&path, "a", "6.12")), (None, None));
        fs::write(&path, "{}").unwrap();
        assert_eq!(read(&path, "a", "6.18"), None);
    }

    #[test]
    fn days_are_dates() {
        for (days, date) in [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (20_783, "2026-11-26"),
        ] {
            assert_eq!(date_of(days), date);
        }
    }
}
