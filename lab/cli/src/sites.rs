//! Makes tables of call sites, and of locks that are not zone locks, for `stat`, `report` and `advise`.

use pageset_replay::sites::{Lock, Site, Sites};
use pageset_report::{Cell, Column, Row, Table, printable};
use pageset_trace::LockName;

use crate::who::own_rows;

/// Returns each table, with the name that the table has in CSV output.
pub(crate) fn tables(sites: &Sites) -> Vec<(&'static str, Table)> {
    let sites_of = sites.call_sites.iter().map(|all| ("call_sites", call_sites(all)));
    sites_of.chain(sites.other_locks.iter().map(|all| ("other_locks", other_locks(all)))).collect()
}

fn call_sites(all: &[Site]) -> Table {
    let columns = vec![
        Column::label("function", "call site"),
        Column::count("visits", "zone visits"),
        Column::ratio("visits_percent", "%"),
        Column::count("zone_waits", "lock waits"),
        Column::measure("zone_wait_ms", "their time").with_unit("ms"),
        Column::ratio("zone_wait_percent", "%"),
    ];
    let mut table = Table::new("Visits and waits by call site", columns);
    let (unknown, known): (Vec<_>, Vec<_>) = all.iter().partition(|site| site.function.is_none());
    let (first, others) = own_rows(&known);
    for site in first {
        let name = site.function.as_deref().unwrap_or_default();
        table.push(site_row(&printable(name), &[*site]));
    }
    if !others.is_empty() {
        table.push(site_row(&format!("{} others", others.len()), others));
    }
    if !unknown.is_empty() {
        table.push(site_row("unknown", &unknown));
    }
    table.note(
        "A call site is the first function of the call chain outside the allocators. If a visit or wait is \
         unknown, its call chain does not show the call site.",
    );
    if all.iter().any(|site| site.visits.is_some()) {
        table.note("Numbers of visits are estimates, because visits were counted only in slices of time.");
    }
    table.without_empty_columns()
}

fn site_row(name: &str, sites: &[&Site]) -> Row {
    let sum = |of: fn(&Site) -> Option<u64>| {
        sites.iter().map(|site| of(site)).try_fold(0_u64, |sum, part| Some(sum.saturating_add(part?)))
    };
    let share = |of: fn(&Site) -> Option<f64>| {
        let sum = sites.iter().map(|site| of(site)).try_fold(0.0, |sum, part| Some(sum + part?));
        Cell::real(sum, 1)
    };
    Row::new([
        name.into(),
        sum(|site| site.visits).into(),
        share(|site| site.visits_percent),
        sum(|site| site.zone_waits).into(),
        sum(|site| site.zone_wait_ns).map_or(Cell::Absent, ms),
        share(|site| site.zone_wait_percent),
    ])
}

fn other_locks(all: &[Lock]) -> Table {
    let columns = vec![
        Column::label("lock", "lock"),
        Column::count("waits", "waits"),
        Column::measure("wait_ms", "their time").with_unit("ms"),
        Column::ratio("wait_percent", "%"),
    ];
    let mut table = Table::new("Spinning locks other than the zones' that CPUs waited for", columns);
    let (unknown, known): (Vec<_>, Vec<_>) = all.iter().partition(|lock| lock.lock == LockName::Unknown);
    let (first, others) = own_rows(&known);
    for lock in first {
        let name = match &lock.lock {
            LockName::Variable(name) => printable(name).into_owned(),
            LockName::TakenIn(function) => format!("taken in {}", printable(function)),
            LockName::Unknown => "unknown".to_owned(),
        };
        table.push(lock_row(&name, &[*lock]));
    }
    if !others.is_empty() {
        table.push(lock_row(&format!("{} others", others.len()), others));
    }
    if !unknown.is_empty() {
        table.push(lock_row("unknown", &unknown));
    }
    table.note(if all.is_empty() {
        "No CPU waited for a lock other than zone locks."
    } else {
        "A lock that is a variable of the kernel has the variable's name. Other locks are named after the function that \
         took them, so one name may stand for several locks. Unknown locks have no call chain."
    });
    table
}

fn lock_row(name: &str, locks: &[&Lock]) -> Row {
    let sum = |of: fn(&Lock) -> u64| locks.iter().map(|lock| of(lock)).fold(0, u64::saturating_add);
    let share = locks.iter().map(|lock| lock.wait_percent).try_fold(0.0, |sum, part| Some(sum + part?));
    Row::new([name.into(), sum(|lock| lock.waits).into(), ms(sum(|lock| lock.wait_ns)), Cell::real(share, 1)])
}

fn ms(ns: u64) -> Cell {
    Cell::real(ns as f64 / 1e6, 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(function: Option<&str>, visits: u64) -> Site {
        Site {
            function: function.map(str::to_owned),
            visits: Some(visits),
            visits_percent: Some(visits as f64),
            zone_waits: None,
            zone_wait_ns: None,
            zone_wait_percent: None,
        }
    }

    #[test]
    fn ten_call_sites_are_shown_and_unknown_is_a_row_of_its_own() {
        let mut sites: Vec<Site> = (0..13).map(|at| site(Some(&format!("function_{at}\u{1b}")), 5)).collect();
        sites.push(site(None, 35));
        let text = call_sites(&sites).to_text(80);
        assert!(
            text.contains("3 others") && text.contains("15.0") && text.contains("function_9\\x1b"),
            "{text}"
        );
        assert!(!text.contains("function_10") && !text.contains('\u{1b}'), "{text:?}");
        let unknown =
            text.lines().find(|line| line.starts_with("unknown")).expect("the table has a row for this lock");
        assert!(unknown.contains("35.0"), "{text}");
        // The call sites have no waits, so the table has no column of waits.
        assert!(!text.contains("lock waits"), "{text}");
    }

    #[test]
    fn locks_are_named_and_none_is_said() {
        let lock = |lock| Lock { lock, waits: 2, wait_ns: 1_500_000, wait_percent: Some(50.0) };
        let locks = [
            lock(LockName::Variable("tasklist_lock".to_owned())),
            lock(LockName::TakenIn("folio_lruvec_lock_irqsave".to_owned())),
            lock(LockName::Unknown),
        ];
        let text = other_locks(&locks).to_text(80);
        for part in ["tasklist_lock ", "taken in folio_lruvec_lock_irqsave ", "unknown ", "1.500"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(other_locks(&[]).to_text(80).contains("No CPU waited for a lock other than zone locks."));
    }
}
