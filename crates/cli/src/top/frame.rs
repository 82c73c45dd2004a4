//! A view as the lines of a screen.

use pageset_live::{View, ZoneLockView};
use pageset_report::{Format, Table, wrap};

use super::selection::Selection;
use super::tables;

/// Columns of text that lines need at most.
pub(super) const WIDTH: usize = 80;

/// Rows of zones at most, so that there is room for page sets.
const ZONES_SHOWN: usize = 4;

/// Lines from top to bottom. What does not fit is left out of `rows`.
pub(super) struct Frame {
    /// The machine and its zones.
    pub(super) head: Vec<String>,
    /// Above the rows.
    pub(super) heading: Vec<String>,
    /// Page sets.
    pub(super) rows: Vec<String>,
}

impl Frame {
    pub(super) fn new(view: &View, selection: &Selection) -> Self {
        let mut head = wrap(&tables::headline(view), WIDTH);
        head.push(counted(view, selection.cpu));
        head.extend(view.zone_lock.as_ref().map(waited));
        head.push(String::new());
        let (heading, mut rows) = parts(&tables::zones(view, |zone| selection.has_zone(zone)));
        let cut = rows.len().saturating_sub(ZONES_SHOWN);
        if cut > 0 {
            rows.truncate(ZONES_SHOWN);
            rows.push(format!("and {cut} more zones"));
        }
        head.extend(heading.into_iter().chain(rows));
        head.push(String::new());
        let (heading, rows) = parts(&tables::pagesets(selection.of(view)));
        Self { head, heading, rows }
    }

    /// All that fits into so many lines; the last says how many rows do not.
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

/// The exact rates of a CPU, or of all together, on one line.
fn counted(view: &View, cpu: Option<u32>) -> String {
    let Some(counted) = &view.counted else {
        return "not counted: exact rates need privileges and `--features perf`".to_owned();
    };
    let text = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"));
    let chosen = cpu.and_then(|cpu| counted.cpus.iter().find(|rates| rates.cpu == Some(cpu)));
    let rates = chosen.unwrap_or(&counted.total);
    format!(
        "counted{}: {} blocks refilled/s, {} drained/s, {} spin locks waited for/s",
        rates.cpu.map_or_else(String::new, |cpu| format!(" on CPU {cpu}")),
        text(rates.refilled_blocks_per_s),
        text(rates.drained_blocks_per_s),
        text(rates.contended_spin_locks_per_s)
    )
}

/// How long zone locks are waited for, on one line.
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

/// The heading of a table, and its rows.
fn parts(table: &Table) -> (Vec<String>, Vec<String>) {
    let text = Format::Table.exporter().to_string(table);
    // Title and a blank line before, notes after a blank line behind.
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
        let frame = Frame::new(&sample::view(64), &Selection::default());
        for height in 0..40 {
            assert!(frame.lines(height).len() <= height);
        }
        let lines = frame.lines(24);
        assert_eq!(lines.len(), 24);
        assert_eq!(lines.last().unwrap(), "and 119 more page sets");
        assert!(lines.iter().all(|line| line.len() <= WIDTH), "{lines:#?}");
        assert_eq!(frame.lines(1000).len(), frame.head.len() + frame.heading.len() + 128);
    }

    #[test]
    fn many_zones_leave_room_for_page_sets() {
        let mut view = sample::view(2);
        view.zones = (0..9).map(|node| ZoneView { node, ..view.zones[1].clone() }).collect();
        let frame = Frame::new(&view, &Selection::default());
        assert!(frame.head.contains(&"and 5 more zones".to_owned()), "{:#?}", frame.head);
        assert!(frame.head.len() + frame.heading.len() <= 18);
    }

    #[test]
    fn it_begins_with_the_machine() {
        let lines = Frame::new(&sample::view(2), &Selection::default()).lines(24);
        assert_eq!(
            lines[0],
            "2 CPUs, 180 pages in page sets, 5000 free, 7 allocated/s, - freed/s, over 1.0 s"
        );
        assert_eq!(lines[1], "counted: 12 blocks refilled/s, - drained/s, - spin locks waited for/s");
        assert!(lines.last().unwrap().starts_with("   0  DMA32     1      0       0"), "{lines:#?}");
    }
}
