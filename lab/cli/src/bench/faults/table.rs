//! Turns the result of the page fault test into tables.

use pageset_measure::host;
use pageset_measure::pft::{Run, Series, Zero};
use pageset_report::{Cell, Column, Provenance, Row, Table};
use pageset_study::pft::{FaultHandler, Test};
use serde::Serialize;

/// The tables of the result. The JSON document contains all tables of the result.
#[derive(Debug, Serialize)]
pub(super) struct PftTables {
    original: Table,
    phases: Table,
    pages: Table,
    /// A table with a row for each repetition. CSV output contains only this table.
    pub(super) runs: Table,
}

impl PftTables {
    pub(super) fn new(of_command: Provenance, test: &Test, series: &[Series]) -> Self {
        let provenance = Provenance { machine: machine(test), ..of_command };
        Self {
            original: original(test, series),
            phases: phases(series),
            pages: pages(test, series).with_provenance(provenance.clone()),
            runs: runs(series).with_provenance(provenance),
        }
    }

    pub(super) fn for_people(&self) -> [&Table; 3] {
        [&self.original, &self.phases, &self.pages]
    }
}

fn kind(test: &Test) -> &'static str {
    if test.machine.is_some() { "simulated" } else { "measured" }
}

/// The memory that the test touches, in GiB, without needless decimals.
fn gib(test: &Test) -> Cell {
    let bytes = test.shape.pages() * test.shape.geometry.page_bytes();
    let gib = bytes as f64 / f64::from(1 << 30);
    Cell::real(gib, if gib >= 10.0 { 0 } else { 3 })
}

/// The table with the columns that the page fault test of 2005 printed.
fn original(test: &Test, series: &[Series]) -> Table {
    let columns = vec![
        Column::label("strategy", "strategy"),
        Column::measure("gib", "Gb"),
        Column::count("repetitions", "Rep"),
        Column::count("threads", "Thr"),
        Column::count("lines", "CLine"),
        Column::measure("user_s", "User").with_unit("s"),
        Column::measure("system_s", "System").with_unit("s"),
        Column::measure("wall_s", "Wall").with_unit("s"),
        Column::ratio("faults_per_cpu_s", "flt/cpu/s"),
        Column::ratio("faults_per_wall_s", "fault/wsec"),
    ];
    let title = format!("Page fault test, {} ({})", test.shape.regions.name(), kind(test));
    let mut table = Table::new(title, columns);
    for series in series {
        let total = series.total();
        table.push(Row::new([
            series.name.as_str().into(),
            gib(test),
            (series.runs.len() as u64).into(),
            u64::from(test.shape.threads).into(),
            u64::from(test.shape.lines).into(),
            Cell::real(total.user_s, 2),
            Cell::real(total.system_s, 2),
            Cell::real(total.wall_s(), 2),
            Cell::real(total.faults_per_cpu_s(), 0),
            Cell::real(total.faults_per_wall_s(), 0),
        ]));
    }
    table
}

/// The table with the time of each phase of a run. The table of [`original`] has only the time of the whole
/// run.
fn phases(series: &[Series]) -> Table {
    let columns = vec![
        Column::label("strategy", "strategy"),
        Column::measure("start_ms", "start").with_unit("ms"),
        Column::measure("touch_ms", "touch").with_unit("ms"),
        Column::measure("touch_iqr_ms", "IQR").with_unit("ms"),
        Column::measure("exit_ms", "exit").with_unit("ms"),
        Column::measure("teardown_ms", "teardown").with_unit("ms"),
        Column::ratio("busy_cpus", "busy CPUs"),
        Column::ratio("imbalance", "imbal ance"),
        Column::count("pages_computed", "pages computed"),
        Column::count("pages_counted", "counted"),
    ];
    let mut table = Table::new("Phases apart, medians", columns);
    for series in series {
        let ms = |figure: fn(&Run) -> f64| Cell::real(series.quartiles(figure).median * 1e3, 2);
        let touch = series.quartiles(|run| run.touch_s * 1e3);
        let first = series.runs.first().copied().unwrap_or_default();
        table.push(Row::new([
            series.name.as_str().into(),
            ms(|run| run.start_s),
            Cell::real(touch.median, 2),
            Cell::real(touch.range(), 2),
            ms(|run| run.exit_s),
            ms(|run| run.teardown_s),
            Cell::real(series.quartiles(Run::busy_cpus).median, 2),
            Cell::real(series.quartiles(|run| run.imbalance).median, 2),
            first.pages_computed.into(),
            first.pages_counted.into(),
        ]));
    }
    table
}

/// The table with the time that one page takes.
fn pages(test: &Test, series: &[Series]) -> Table {
    let columns = vec![
        Column::label("strategy", "strategy"),
        Column::measure("touch_ns_per_page", "one page").with_unit("ns"),
        Column::measure("touch_ns_per_page_iqr", "IQR").with_unit("ns"),
        Column::measure("touch_cpu_ns_per_page", "CPU").with_unit("ns"),
        Column::ratio("times_kernel", "kernel takes").with_unit("times"),
        Column::ratio("times_clear", "of clear"),
        Column::measure("teardown_pages_per_s", "torn down").with_unit("pages/s"),
        Column::count("lost", "lost"),
        Column::count("contended", "locks contended"),
    ];
    let threads = test.shape.threads;
    let of = |handler: FaultHandler| {
        let series = series.iter().find(|series| series.name == handler.name())?;
        Some(series.quartiles(Run::touch_cpu_ns_per_page).median)
    };
    let (kernel_ns, clear_ns) = (of(FaultHandler::Kernel), of(FaultHandler::Clear));
    let mut table = Table::new("One page", columns);
    for series in series {
        let touch = series.quartiles(|run| run.touch_ns_per_page(threads));
        let cpu_ns = series.quartiles(Run::touch_cpu_ns_per_page).median;
        let ratio = |value: Option<f64>| Cell::real(value, 2);
        let last = series.runs.last().and_then(|run| run.stats);
        table.push(Row::new([
            series.name.as_str().into(),
            Cell::real(touch.median, 1),
            Cell::real(touch.range(), 1),
            Cell::real(cpu_ns, 1),
            ratio(kernel_ns.map(|kernel| kernel / cpu_ns)),
            ratio(clear_ns.map(|clear| cpu_ns / clear)),
            Cell::real(series.quartiles(Run::teardown_pages_per_s).median, 0),
            last.map(|stats| stats.lost_pte).into(),
            last.map(|stats| stats.locks.contended).into(),
        ]));
    }
    notes(test, &mut table);
    table
}

fn notes(test: &Test, table: &mut Table) {
    if test.machine.is_some() {
        table.note(
            "Simulated: each thread touches only a few thousand pages, on a machine that is smaller by the \
             same factor. The times of touching and teardown are multiplied by this factor, but not the time \
             of the start.",
        );
    } else {
        table.note(
            "Faults of the engine are calls, not traps: the engine has its own page table, over memory that \
             was mapped before. Faults of the kernel are traps.",
        );
    }
    if test.ahead.prefault_order > 0 {
        table.note(format!(
            "Prefaulting: if the faults of a thread come one after another, one fault maps up to {} pages.",
            1_u32 << test.ahead.prefault_order
        ));
    }
    if test.ahead.prezero {
        table.note("Pages were cleared before the time that is measured.");
    }
    if test.zero == Zero::Skip {
        table.note("Pages are not cleared.");
    }
    if test.contestants.iter().any(|handler| matches!(handler, FaultHandler::Engine(_))) {
        table.note(
            "Checked after every run: pages, tables, references and counters agree, and teardown leaves nothing.",
        );
    }
}

/// Every repetition, with its times in seconds.
fn runs(series: &[Series]) -> Table {
    let columns = vec![
        Column::label("strategy", "strategy"),
        Column::count("repetition", "repetition"),
        Column::measure("start_s", "start").with_unit("s"),
        Column::measure("touch_s", "touch").with_unit("s"),
        Column::measure("exit_s", "exit").with_unit("s"),
        Column::measure("teardown_s", "teardown").with_unit("s"),
        Column::measure("user_s", "user").with_unit("s"),
        Column::measure("system_s", "system").with_unit("s"),
        Column::measure("touch_cpu_s", "touch CPU").with_unit("s"),
        Column::ratio("imbalance", "imbalance"),
        Column::count("pages_computed", "pages computed"),
        Column::count("pages_counted", "pages counted"),
        Column::count("pages_untouched", "pages untouched"),
        Column::count("tables", "tables"),
    ];
    let mut table = Table::new("Every repetition", columns);
    for series in series {
        for (repetition, run) in (1u64..).zip(&series.runs) {
            let seconds = |value: f64| Cell::real(value, 6);
            table.push(Row::new([
                series.name.as_str().into(),
                repetition.into(),
                seconds(run.start_s),
                seconds(run.touch_s),
                seconds(run.exit_s),
                seconds(run.teardown_s),
                seconds(run.user_s),
                seconds(run.system_s),
                seconds(run.touch_cpu_s),
                Cell::real(run.imbalance, 3),
                run.pages_computed.into(),
                run.pages_counted.into(),
                run.pages_untouched.into(),
                run.census.map(|census| census.tables).into(),
            ]));
        }
    }
    table
}

/// Describes the machine of the test: the simulated machine, or this machine.
fn machine(test: &Test) -> String {
    match &test.machine {
        Some(machine) => format!("{}: {}", machine.name, machine.title),
        None => host::line(),
    }
}
