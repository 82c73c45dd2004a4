//! Compares a run of `pageset bench pages` with the aims of `pageset-pageops`. An aim is a bound on the ratio
//! of two methods' times in one run.

use pageset_measure::pageops::{Measurement, Operation, Target};
use pageset_pageops::{Method, VisitOrder};
use pageset_report::{Cell, Column, Row, Table};

/// Number of bytes that a program reads after a page is cleared or copied, in the measurements of clear +
/// touch and copy + touch.
const TOUCH_BYTES: usize = 16 << 10;

/// An aim, with the smallest and the largest measured ratio of two methods' times.
struct Goal {
    what: String,
    wanted: f64,
    /// The smallest and the largest ratio over all targets. [`Bound::AtLeast`] checks the smallest ratio, and
    /// [`Bound::AtMost`] checks the largest ratio.
    measured: (f64, f64),
    bound: Bound,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    AtLeast,
    AtMost,
}

impl Goal {
    fn is_reached(&self) -> bool {
        match self.bound {
            Bound::AtLeast => self.measured.0 >= self.wanted,
            Bound::AtMost => self.measured.1 <= self.wanted,
        }
    }
}

/// Makes a table of the aims, with the ratios of this run.
pub(crate) fn table(rows: &[Measurement]) -> Table {
    let columns = vec![
        Column::label("aim", "aim"),
        Column::ratio("wanted", "wanted"),
        Column::ratio("least", "least"),
        Column::ratio("most", "most"),
        Column::label("reached", "reached"),
    ];
    let mut table =
        Table::new("Aims of the library, as ratios of this run (least and most over the targets)", columns);
    for goal in goals(rows) {
        table.push(Row::new([
            goal.what.as_str().into(),
            Cell::real(goal.wanted, 2),
            Cell::real(goal.measured.0, 2),
            Cell::real(goal.measured.1, 2),
            if goal.is_reached() { "yes" } else { "NO" }.into(),
        ]));
    }
    table
}

fn goals(rows: &[Measurement]) -> Vec<Goal> {
    let huge = Huge { rows };
    let mut goals = Vec::new();
    let mut add = |what: String, wanted, measured: Option<(f64, f64)>, bound| {
        goals.extend(measured.map(|measured| Goal { what, wanted, measured, bound }));
    };
    let converge = [(VisitOrder::Converge2018.name(), "rep"), (VisitOrder::Converge2018.name(), "libc")];
    let rep = (VisitOrder::Sequential.name(), "rep");
    let libc = (VisitOrder::Sequential.name(), "libc");
    for load in ["alone", "thrash", "every-cpu"] {
        use Bound::{AtLeast, AtMost};
        let clear =
            |others: &[(&str, &str)]| huge.over_targets(Operation::Clear, load, others, |row| row.total_us);
        let copy =
            |others: &[(&str, &str)]| huge.over_targets(Operation::Copy, load, others, |row| row.total_us);
        add(format!("clear + touch, {load}: rep / ours"), 2.0, clear(&[rep]), AtLeast);
        add(format!("clear + touch, {load}: 2018 / ours"), 5.0, clear(&converge), AtLeast);
        let touch = huge.over_targets(Operation::Clear, load, &converge, |row| 1.0 / row.touch_ns);
        add(format!("touch after clear, {load}: ours / 2018"), 1.3, touch, AtMost);
        add(format!("copy + touch, {load}: best of libc, rep / ours"), 1.25, copy(&[libc, rep]), AtLeast);
        add(format!("copy + touch, {load}: 2018 / ours"), 2.5, copy(&converge), AtLeast);
    }
    for operation in Operation::ALL {
        for memory in ["hot", "cold"] {
            let time = |kernel| small(rows, operation, memory, kernel);
            let ours = time(Method::chosen().kernel().isa().name());
            let ratio = ours.zip(time("libc")).map(|(ours, libc)| ours / libc);
            let what = format!("{} 4 KiB, {memory}: ours / libc", operation.name());
            add(what, 1.03, ratio.map(|ratio| (ratio, ratio)), Bound::AtMost);
        }
        let what = format!("{} 1 GiB: ours / best stream", operation.name());
        add(what, 0.95, gigantic(rows, operation).map(|ratio| (ratio, ratio)), Bound::AtLeast);
    }
    goals
}

/// The measurements of huge pages, for the ratios of aims.
struct Huge<'r> {
    rows: &'r [Measurement],
}

impl Huge<'_> {
    /// For each target, divides the time of the fastest of `others` by the time of the method that
    /// `pageset-pageops` chooses. Returns the smallest and the largest ratio over the targets.
    fn over_targets(
        &self,
        operation: Operation,
        load: &str,
        others: &[(&str, &str)],
        value: impl Fn(&Measurement) -> f64,
    ) -> Option<(f64, f64)> {
        let ours = (VisitOrder::StreamTargetLast.name(), Method::chosen().kernel().isa().name());
        let mut extremes: Option<(f64, f64)> = None;
        for target in Target::ALL {
            let find = |(order, kernel): (&str, &str)| {
                self.rows.iter().find(|row| {
                    (row.op, row.load, row.target) == (operation.name(), load, target.name())
                        && (row.order, row.kernel, row.touch_bytes) == (order, kernel, TOUCH_BYTES)
                })
            };
            let other = others.iter().filter_map(|other| find(*other)).map(&value).reduce(f64::min)?;
            let ratio = other / value(find(ours)?);
            let (low, high) = extremes.unwrap_or((ratio, ratio));
            extremes = Some((low.min(ratio), high.max(ratio)));
        }
        extremes
    }
}

fn small(rows: &[Measurement], operation: Operation, memory: &str, kernel: &str) -> Option<f64> {
    let is_it = |row: &&Measurement| {
        (row.op, row.page_bytes, row.memory, row.kernel) == (operation.name(), 4096, memory, kernel)
    };
    Some(rows.iter().find(is_it)?.op_us)
}

fn gigantic(rows: &[Measurement], operation: Operation) -> Option<f64> {
    let gigantic = || rows.iter().filter(|row| row.op == operation.name() && row.page_bytes == 1 << 30);
    let ours = gigantic().find(|row| row.order == "parts")?;
    let best = gigantic().filter(|row| row.order == "stream").map(|row| row.op_us).reduce(f64::min)?;
    Some(best / ours.op_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(order: &'static str, kernel: &'static str, target: Target, total_us: f64) -> Measurement {
        Measurement {
            op: "clear",
            page_bytes: 2 << 20,
            order,
            kernel,
            target: target.name(),
            touch_bytes: TOUCH_BYTES,
            load: "alone",
            memory: "cold",
            samples: 1,
            op_us: total_us,
            touch_ns: total_us,
            total_us,
            total_us_low: total_us,
            total_us_high: total_us,
        }
    }

    #[test]
    fn an_aim_holds_for_the_worst_target() {
        let ours = Method::chosen().kernel().isa().name();
        let mut rows = Vec::new();
        for (target, rep) in Target::ALL.into_iter().zip([60.0, 50.0, 39.0, 60.0]) {
            rows.push(row(VisitOrder::StreamTargetLast.name(), ours, target, 20.0));
            rows.push(row(VisitOrder::Sequential.name(), "rep", target, rep));
            rows.push(row(VisitOrder::Converge2018.name(), "rep", target, 160.0));
        }
        let goals = goals(&rows);
        let found: Vec<_> = goals.iter().map(|goal| (goal.measured, goal.is_reached())).collect();
        assert_eq!(found, [((1.95, 3.0), false), ((8.0, 8.0), true), ((0.125, 0.125), true)]);
    }
}
