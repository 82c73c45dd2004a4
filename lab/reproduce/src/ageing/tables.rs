//! Makes tables and a figure from the results of the days.

use pageset_report::plot::{Axis, Figure, Mark, Panel, Series};
use pageset_report::{Cell, Column, Origin, Row, Table};
use pageset_study::ageing::{Census, Moment};

use super::runs::{Days, MOMENTS};

impl Days {
    /// Returns the mean of a figure over all seeds, in the sample with the number `moment`, counted from 0.
    fn mean_at(&self, moment: usize, figure: impl Fn(&Moment) -> f64) -> Option<f64> {
        let there = self.courses.iter().filter_map(|course| course.moments.get(moment));
        mean(there.map(figure))
    }

    fn mean_at_end(&self, figure: impl Fn(&Moment) -> f64) -> Option<f64> {
        mean(self.courses.iter().map(|course| figure(course.end())))
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Returns the number of clean units, in percent of the largest possible number of clean units. A unit of 1
/// GiB is clean if all of its pages in use can be moved. The number of clean units is largest if the pages
/// that cannot be moved are in as few units as possible.
fn of_others_percent(census: &Census) -> f64 {
    let others = census.units.saturating_sub(census.unclean_units_needed).max(1);
    100.0 * census.clean_units as f64 / others as f64
}

fn percent(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { 100.0 * part as f64 / all as f64 }
}

/// Makes a table of the state of memory at the end of the day, with one row for each policy.
pub(super) fn end(runs: &[Days]) -> Table {
    let columns = vec![
        Column::label("policy", "policy"),
        Column::measure("clean_units", "clean units"),
        Column::measure("units", "of"),
        Column::measure("needed_unclean_units", "needed"),
        Column::measure("clean_of_others_percent", "of others").with_unit("%"),
        Column::measure("free_units", "free units"),
        Column::measure("clean_pageblocks_percent", "clean pageblocks").with_unit("%"),
        Column::measure("free_pageblocks", "free pageblocks"),
        Column::measure("huge_failures_percent", "no huge page").with_unit("%"),
        Column::measure("fallbacks", "fallbacks"),
        Column::measure("visits", "visits"),
        Column::measure("moved_pages", "pages moved"),
        Column::measure("failures", "failures"),
    ];
    let mut table = Table::new("ageing: memory at the end of the day", columns);
    for days in runs {
        let cell = |digits, figure: &dyn Fn(&Moment) -> f64| Cell::real(days.mean_at_end(figure), digits);
        table.push(Row::new([
            days.candidate.name.as_str().into(),
            cell(1, &|moment| moment.census.clean_units as f64),
            cell(0, &|moment| moment.census.units as f64),
            cell(1, &|moment| moment.census.unclean_units_needed as f64),
            cell(1, &|moment| of_others_percent(&moment.census)),
            cell(1, &|moment| moment.census.free_units as f64),
            cell(1, &|moment| percent(moment.census.clean_pageblocks, moment.census.units * 512)),
            cell(0, &|moment| moment.census.free_pageblocks as f64),
            cell(1, &|moment| percent(moment.work.huge_failures, moment.work.huge_requests)),
            cell(0, &|moment| moment.work.fallbacks as f64),
            cell(0, &|moment| moment.work.visits as f64),
            cell(0, &|moment| moment.work.moved_pages as f64),
            cell(0, &|moment| moment.work.failures as f64),
        ]));
    }
    table
}

/// Makes a table of all samples of memory during the day.
pub(super) fn timeline(runs: &[Days]) -> Table {
    let columns = vec![
        Column::label("played_with", "policy"),
        Column::measure("day_percent", "of the day").with_unit("%"),
        Column::measure("clean_mean", "clean units"),
        Column::measure("free_mean", "free units"),
        Column::measure("pinned_percent", "unmovable").with_unit("%"),
        Column::measure("used_percent", "in use").with_unit("%"),
    ];
    let mut table = Table::new("ageing: memory over the day", columns);
    for days in runs {
        for moment in 0..days.courses.first().map_or(0, |course| course.moments.len()) {
            let cell =
                |digits, figure: &dyn Fn(&Moment) -> f64| Cell::real(days.mean_at(moment, figure), digits);
            let frames = |moment: &Moment| moment.census.units << 18;
            table.push(Row::new([
                days.candidate.name.as_str().into(),
                Cell::real(day_percent(moment), 1),
                cell(1, &|moment| moment.census.clean_units as f64),
                cell(1, &|moment| moment.census.free_units as f64),
                cell(2, &|moment| percent(moment.census.pinned_frames, frames(moment))),
                cell(1, &|moment| percent(moment.census.used_frames, frames(moment))),
            ]));
        }
    }
    table
}

fn day_percent(moment: usize) -> f64 {
    100.0 * ((moment + 1) as f64 / f64::from(MOMENTS)).min(1.0)
}

/// Draws the number of clean units over the day, with one line for each policy. The first line of the figure
/// shows the largest possible number of clean units.
pub(super) fn figure(runs: &[Days]) -> Figure {
    let mut figure =
        Figure::new("What a day does to memory: units of 1 GiB that could still become one page");
    let (x, y) = (Axis::from_zero("part of the day", "%"), Axis::from_zero("clean units of 1 GiB", ""));
    let mut panel = Panel::new("", x, y);
    let line = |days: &Days, name: &str, figure: fn(&Census) -> u64| {
        let moments = days.courses.first().map_or(0, |course| course.moments.len());
        let points = (0..moments).filter_map(|moment| {
            let mean = days.mean_at(moment, |moment| figure(&moment.census) as f64)?;
            Some((day_percent(moment), mean))
        });
        Series::new(name, Origin::Simulated, Mark::Line, points)
    };
    for days in runs.iter().take(1) {
        let most = |census: &Census| census.units.saturating_sub(census.unclean_units_needed);
        panel.push(line(days, "most units that could be clean", most));
    }
    for days in runs {
        panel.push(line(days, &days.candidate.name, |census| census.clean_units));
    }
    figure.push(panel);
    figure.note("A unit is clean if each of its pages in use can be moved, so that the kernel can empty it.");
    figure
}
