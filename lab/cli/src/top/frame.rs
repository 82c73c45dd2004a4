//! Turns a view (what `pageset top` read in one interval) into the lines of a screen.

use std::collections::BTreeSet;

use pageset_live::{View, ZoneLockView};
use pageset_report::{Table, wrap};

use super::selection::Selection;
use super::tables;

/// Maximum length of a line in columns, even on a wider terminal.
pub(super) const WIDTH: usize = 80;

/// Minimum width of the screen, in columns.
pub(super) const WIDTH_MIN: usize = 60;

/// Largest number of zones on the screen. With more zones on the screen, too few lines would be left for page
/// sets.
const ZONES_SHOWN: usize = 4;

/// Columns of page sets that are left out on a narrow terminal, in this order. If the zones lie on several
/// nodes, the column of nodes stays.
const LEFT_OUT: [&str; 7] = ["node", "high_min", "high_max", "batch", "high", "unchanged_s", "change"];

/// The lines of a screen, from top to bottom. Rows that do not fit on the screen are not in `rows`.
pub(super) struct Frame {
    /// Lines about the machine, its zones, and waits for zone locks.
    pub(super) head: Vec<String>,
    /// Heading above the rows.
    pub(super) heading: Vec<String>,
    /// One row for each page set.
    pub(super) rows: Vec<String>,
}

impl Frame {
    pub(super) fn new(view: &View, selection: &Selection, width: usize) -> Self {
        let width = width.clamp(WIDTH_MIN, WIDTH);
        let mut head = wrap(&tables::headline(view), width);
        head.extend(wrap(&counted(view, selection.cpu), width));
        head.extend(view.zone_lock.iter().flat_map(|zone_lock| wrap(&waited(zone_lock), width)));
        head.push(String::new());
        let (heading, mut rows) = parts(tables::zones(view, |zone| selection.has_zone(zone)), width, &[]);
        let cut = rows.len().saturating_sub(ZONES_SHOWN);
        if cut > 0 {
            rows.truncate(ZONES_SHOWN);
            rows.push(format!("and {cut} more zones"));
        }
        head.extend(heading.into_iter().chain(rows));
        head.push(String::new());
        // If there are several nodes, do not drop the column of nodes, because a page set's row must name its
        // node.
        let nodes: BTreeSet<u16> = view.zones.iter().map(|zone| zone.node).collect();
        let dropped = if nodes.len() > 1 { &LEFT_OUT[1..] } else { &LEFT_OUT[..] };
        let (heading, rows) = parts(tables::pagesets(selection.of(view)), width, dropped);
        Self { head, heading, rows }
    }

    /// The lines for a screen of this height. If some rows do not fit, the last line has the number of rows
    /// that do not fit.
    pub(super) fn lines(&self, height: usize) -> Vec<String> {
        let above = self.head.len() + self.heading.len();
        let room = height.saturating_sub(above);
        let is_cut = self.rows.len() > room;
        let shown = if is_cut { room.saturating_sub(1) } else { self.rows.len() };
        let lines = self.head.iter().chain(&self.heading).chain(&self.rows[..shown]);
        let mut lines: Vec<_> = lines.take(height).cloned().collect();
        if is_cut && room > 0 {
            lines.push(format!("and {} more page sets", self.rows.len() - shown));
        }
        lines
    }
}

/// A line with the exact rates of one CPU, or of all CPUs together.
fn counted(view: &View, cpu: Option<u32>) -> String {
    let Some(counted) = &view.counted else {
        return NOT_COUNTED.to_owned();
    };
    let chosen = cpu.and_then(|cpu| counted.cpus.iter().find(|rates| rates.cpu == Some(cpu)));
    let rates = chosen.unwrap_or(&counted.total);
    let known = [
        (rates.refilled_blocks_per_s, "blocks refilled/s"),
        (rates.drained_blocks_per_s, "blocks drained/s"),
        (rates.contended_spin_locks_per_s, "spin locks waited for/s"),
    ];
    let known: Vec<_> =
        known.into_iter().filter_map(|(rate, name)| Some(format!("{:.0} {name}", rate?))).collect();
    let of = rates.cpu.map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
    if known.is_empty() {
        format!("counted{of}: nothing yet")
    } else {
        format!("counted{of}: {}", known.join(", "))
    }
}

/// The line that says why there are no exact rates.
#[cfg(feature = "perf")]
const NOT_COUNTED: &str = "not counted: exact rates need root";
#[cfg(not(feature = "perf"))]
const NOT_COUNTED: &str = "not counted: only the default build counts";

/// The time that CPUs waited for zone locks, on one line.
fn waited(view: &ZoneLockView) -> String {
    let callers = view.callers.iter().filter(|row| row.waits_per_s > 0.0);
    let callers: Vec<_> = callers.map(|row| format!("{} {:.0}", row.caller, row.waits_per_s)).collect();
    format!(
        "zone locks: {:.0} waits/s, {:.2} % of CPU time{}{}",
        view.waits_per_s,
        view.wait_percent,
        if callers.is_empty() { "" } else { "; waits/s: " },
        callers.join(", ")
    )
}

/// The heading of a table, and its rows, without columns that have no value. If the table is too wide,
/// columns in `dropped` are left out, one after the other.
fn parts(table: Table, width: usize, dropped: &[&str]) -> (Vec<String>, Vec<String>) {
    let mut table = table.without_empty_columns();
    let mut dropped = dropped.iter();
    let text = loop {
        let text = table.to_text(usize::MAX);
        let lines = text.lines().skip_while(|line| !line.is_empty()).skip(1);
        let widest = lines.take_while(|line| !line.is_empty()).map(str::len).max().unwrap_or(0);
        match dropped.next() {
            Some(key) if widest > width => table = table.without(&[key]),
            _ => break text,
        }
    };
    // The table's text begins with the title and a blank line, and ends with a blank line and notes. Remove
    // the title, the notes and the blank lines.
    let lines: Vec<_> = text.lines().map(str::to_owned).collect();
    let from = lines.iter().position(String::is_empty).map_or(0, |blank| blank + 1);
    let rule = lines.iter().position(|line| line.starts_with("---")).map_or(from, |rule| rule + 1);
    let rows = lines[rule..].iter().take_while(|line| !line.is_empty());
    (lines[from..rule].to_vec(), rows.cloned().collect())
}

#[cfg(test)]
mod tests {
    use pageset_live::ZoneView;

    use super::super::sample;
    use super::*;

    #[test]
    fn lines_fit_into_the_height() {
        let frame = Frame::new(&sample::view(64), &Selection::default(), 80);
        for height in 0..40 {
            assert!(frame.lines(height).len() <= height);
        }
        let lines = frame.lines(24);
        assert_eq!(lines.len(), 24);
        assert_eq!(lines.last().unwrap(), "and 118 more page sets");
        assert!(lines.iter().all(|line| line.len() <= WIDTH), "{lines:#?}");
        assert_eq!(frame.lines(1000).len(), frame.head.len() + frame.heading.len() + 128);
    }

    #[test]
    fn many_zones_leave_room_for_page_sets() {
        let mut view = sample::view(2);
        view.zones = (0..9).map(|node| ZoneView { node, ..view.zones[1].clone() }).collect();
        let frame = Frame::new(&view, &Selection::default(), 80);
        assert!(frame.head.contains(&"and 5 more zones".to_owned()), "{:#?}", frame.head);
        assert!(frame.head.len() + frame.heading.len() <= 18);
    }

    #[test]
    fn no_line_is_wider_than_60_columns_where_the_terminal_is() {
        let mut view = sample::view(64);
        for set in &mut view.pagesets {
            (set.count, set.high, set.high_min, set.high_max) =
                (1_000_000, 2_000_000, Some(9_999_999), Some(9_999_999));
            set.node = 1;
        }
        view.zones.push(ZoneView { node: 1, ..view.zones[1].clone() });
        view.zones[0].free_pages = 999_999_999;
        for counted in [view.counted.clone(), None] {
            view.counted = counted;
            let lines = Frame::new(&view, &Selection::default(), 60).lines(100);
            assert!(lines.iter().all(|line| line.len() <= 60), "{lines:#?}");
            let heading = lines.join(" ");
            assert!(
                heading.contains("count") && heading.contains("node") && !heading.contains("high_max"),
                "{heading}"
            );
        }
    }

    #[test]
    fn every_column_says_something() {
        let mut view = sample::view(2);
        view.pagesets.iter_mut().for_each(|set| (set.high_min, set.high_max) = (None, None));
        let text = Frame::new(&view, &Selection::default(), 80).lines(24).join("\n");
        assert!(!text.contains("high_m") && !text.contains("at least") && !text.contains(" - "), "{text}");
    }

    #[test]
    fn it_begins_with_the_machine() {
        let lines = Frame::new(&sample::view(2), &Selection::default(), 80).lines(24);
        assert_eq!(lines[0], "2 CPUs, 180 pages in page sets, 5000 free, 7 allocated/s, over 1.0 s");
        assert_eq!(lines[1], "counted: 12 blocks refilled/s");
        assert!(lines.last().unwrap().starts_with("   0  DMA32     1      0       0"), "{lines:#?}");
    }
}
