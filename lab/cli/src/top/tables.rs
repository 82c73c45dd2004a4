//! Turns a view (what `pageset top` read in one interval) into tables and sentences.

use pageset_live::{Answer, Counted, Flow, PagesetView, View, Why, ZoneLockView, ZoneView};
use pageset_replay::advise::SAVED_PERCENT;
use pageset_report::{Cell, Column, Row, Table};

/// A note on free pages and the pages in page sets.
const CHANGE: &str = "A zone's free pages change by the pages that page sets give back, minus the pages that \
                      they fetch. Only counted tracepoints show how many pages were given back, and how many \
                      were fetched.";
/// The note below the column of waits for spin locks.
const LOCKS: &str = "Waits for spin locks are waits for any spin lock of the kernel, including zone locks.";

/// A note on the rows of waits.
const WAITS: &str = "Waits for spinning locks, by call chain: to refill a page set, to drain one, to allocate or free past \
                     them, elsewhere in the page allocator (other). 'elsewhere' stands for other locks.";

/// Totals of the view, on one line.
pub(super) fn headline(view: &View) -> String {
    let totals = &view.totals;
    let rates = [(totals.allocated_pages_per_s, "allocated"), (totals.freed_pages_per_s, "freed")];
    let rates = rates.into_iter().filter_map(|(rate, name)| Some(format!(", {:.0} {name}/s", rate?)));
    format!(
        "{} CPUs, {} pages in page sets, {} free{}, over {:.1} s",
        totals.cpus,
        totals.pcp_pages,
        totals.free_pages,
        rates.collect::<String>(),
        view.interval_ns as f64 / 1e9
    )
}

/// Says in a sentence whether page sets may take so much CPU time that a change is worth it.
pub(super) fn verdict(view: &View) -> String {
    let Some(verdict) = view.verdict else { return "The caller does not want a verdict.".to_owned() };
    let share = verdict.all_percent.map(|all| {
        format!(
            " about {:.2} % of the busy time of all CPUs, if each visit moved a batch (if each moved one block, {:.2} %)",
            all.estimate, all.at_most
        )
    });
    let share = share.unwrap_or_else(|| format!(" {SAVED_PERCENT} % of the busy time of all CPUs or more"));
    match (verdict.answer, verdict.why) {
        (Answer::No, _) => format!("Page sets are not the problem: zone visits and waits took{share}."),
        (Answer::Unlikely, _) => {
            format!("Page sets are hardly a problem: zone visits and waits took{share}.")
        }
        (Answer::Perhaps, _) => {
            format!(
                "Page sets may be a problem: zone visits and waits took{share}. `pageset advise` finds out more."
            )
        }
        (Answer::Unknown, why) => format!(
            "Whether page sets take CPU time is unknown: {}.",
            match why {
                Some(Why::CostNotMeasured) =>
                    "the cost of a visit was not measured; `pageset bench machine` does, as root",
                Some(Why::NoBusyTime) => "how long CPUs were busy is not known",
                Some(Why::WaitsNotWatched) => "waits for zone locks were not watched",
                Some(Why::NotCounted) | None => "tracepoints were not counted, which needs root",
            }
        ),
    }
}

/// The table of zones, with a row for each zone that is shown.
pub(super) fn zones(view: &View, is_shown: impl Fn(&ZoneView) -> bool) -> Table {
    let mut table = Table::new(
        headline(view),
        vec![
            Column::label("zone", "zone"),
            Column::count("free_pages", "free"),
            Column::measure("free_change_pages_per_s", "free change").with_unit("pages/s"),
            Column::measure("above_low_pages", "above low"),
            Column::count("pcp_pages", "PCP pages"),
        ],
    );
    for zone in view.zones.iter().filter(|zone| is_shown(zone)) {
        table.push(zone_row(zone));
    }
    table.note(CHANGE);
    table
}

fn zone_row(zone: &ZoneView) -> Row {
    // `/proc` shows only the difference between drained and refilled pages, so the lower bound of one of the
    // two is 0.
    let change = |flow: &Flow| flow.drained_pages_per_s.at_least - flow.refilled_pages_per_s.at_least;
    Row::new([
        format!("{} {}", zone.node, zone.zone).into(),
        zone.free_pages.into(),
        rate(zone.flow.as_ref().map(change)),
        Cell::real(zone.above_low_pages as f64, 0),
        zone.pcp_pages.into(),
    ])
}

/// The table of page sets, with a row for each.
pub(super) fn pagesets<'a>(pagesets: impl IntoIterator<Item = &'a PagesetView>) -> Table {
    let mut table = Table::new(
        "Page sets",
        vec![
            Column::count("node", "node"),
            Column::label("zone", "zone"),
            Column::count("cpu", "cpu"),
            Column::count("count", "count"),
            Column::measure("change", "change"),
            Column::count("high", "high"),
            Column::count("high_min", "high_min"),
            Column::count("high_max", "high_max"),
            Column::count("batch", "batch"),
            Column::measure("unchanged_s", "unchanged").with_unit("s"),
        ],
    );
    for pageset in pagesets {
        let count = |pages: u32| Cell::Count(pages.into());
        table.push(Row::new([
            count(pageset.node.into()),
            pageset.zone.into(),
            count(pageset.cpu),
            count(pageset.count),
            pageset.change.map_or(Cell::Absent, |change| Cell::real(change as f64, 0)),
            count(pageset.high),
            pageset.high_min.map_or(Cell::Absent, count),
            pageset.high_max.map_or(Cell::Absent, count),
            count(pageset.batch),
            Cell::real(pageset.unchanged_ns as f64 / 1e9, 1),
        ]));
    }
    table
}

/// The table of counted tracepoints: a row for each CPU, and the sums.
pub(super) fn counters(counted: &Counted) -> Table {
    let mut table = Table::new(
        "Counted tracepoints, exact",
        vec![
            Column::label("cpu", "cpu"),
            Column::ratio("refilled_blocks_per_s", "refilled blocks").with_unit("/s"),
            Column::ratio("drained_blocks_per_s", "drained blocks").with_unit("/s"),
            Column::ratio("refills_per_s", "refills").with_unit("/s"),
            Column::ratio("contended_spin_locks_per_s", "spin locks waited for").with_unit("/s"),
        ],
    );
    for rates in counted.cpus.iter().chain([&counted.total]) {
        table.push(Row::new([
            rates.cpu.map_or_else(|| "all".to_owned(), |cpu| cpu.to_string()).into(),
            rate(rates.refilled_blocks_per_s),
            rate(rates.drained_blocks_per_s),
            rate(rates.refills_per_s),
            rate(rates.contended_spin_locks_per_s),
        ]));
    }
    table.note(LOCKS);
    table
}

/// The table of waits for locks: a row for each caller.
pub(super) fn zone_lock(view: &ZoneLockView) -> Table {
    let mut table = Table::new(
        format!(
            "Zone locks: {:.0} waits/s, {:.2} % of the time of all CPUs",
            view.waits_per_s, view.wait_percent
        ),
        vec![
            Column::label("caller", "who waits"),
            Column::ratio("waits_per_s", "waits").with_unit("/s"),
            Column::ratio("wait_percent", "time of all CPUs").with_unit("%"),
        ],
    );
    for row in &view.callers {
        table.push(Row::new([
            row.caller.into(),
            Cell::real(row.waits_per_s, 0),
            Cell::real(row.wait_percent, 3),
        ]));
    }
    table.note(WAITS);
    if view.lost > 0 {
        table.note(format!("pageset missed {} events of waits for locks.", view.lost));
    }
    table
}

fn rate(rate: Option<f64>) -> Cell {
    // A change of zero is printed as `0`, never as `-0`.
    rate.map_or(Cell::Absent, |rate| Cell::real(rate + 0.0, 0))
}
