//! Makes the tables of measured times. For people, there is a table for each operation (clear or copy) and
//! load of the other CPUs, with medians over the targets. Another table has pages of 4 KiB and 1 GiB. CSV has
//! a row for each measurement.

use pageset_measure::pageops::{HUGE_PAGE_BYTES, Load, Measurement, Operation, TOUCHES, median};
use pageset_pageops::VisitOrder;
use pageset_report::{Cell, Column, Row, Table};

/// Number of bytes that are touched in the time of a total, after the page is cleared or copied.
const TOTAL_TOUCH_BYTES: usize = TOUCHES[1];

/// A table shows speeds relative to the speed of one method, which is the first method of this list that the
/// table contains. The methods are `rep stos` or `rep movs` over the whole page, and libc.
const BASES: [(&str, &str); 2] =
    [(VisitOrder::Sequential.name(), "rep"), (VisitOrder::Sequential.name(), "libc")];

/// Lists the methods of these rows in the order of the rows, each method once.
pub(crate) fn contenders(rows: &[Measurement]) -> Vec<(&'static str, &'static str)> {
    let mut names = Vec::new();
    for row in rows {
        if !names.contains(&(row.order, row.kernel)) {
            names.push((row.order, row.kernel));
        }
    }
    names
}

/// The measurements of one operation on huge pages under one load of the other CPUs.
pub(crate) fn huge(rows: &[Measurement], operation: Operation, load: Load) -> Vec<Measurement> {
    let is_it = |row: &&Measurement| {
        (row.op, row.load, row.page_bytes) == (operation.name(), load.name(), HUGE_PAGE_BYTES)
    };
    rows.iter().filter(is_it).cloned().collect()
}

/// The median of one method's values over the targets, for one number of touched bytes.
pub(crate) fn over_targets(
    rows: &[Measurement],
    (order, kernel): (&str, &str),
    touch_bytes: usize,
    value: impl Fn(&Measurement) -> f64,
) -> f64 {
    let is_it = |row: &&Measurement| (row.order, row.kernel, row.touch_bytes) == (order, kernel, touch_bytes);
    median(&rows.iter().filter(is_it).map(value).collect::<Vec<_>>())
}

/// The total time of a method: the operation, and then the touch of the bytes around the target.
pub(crate) fn total_us(rows: &[Measurement], contender: (&str, &str)) -> f64 {
    over_targets(rows, contender, TOTAL_TOUCH_BYTES, |row| row.total_us)
}

/// The table of one operation under one load of the other CPUs.
pub(crate) fn of_huge(rows: &[Measurement], operation: Operation, load: Load) -> Option<Table> {
    let rows = huge(rows, operation, load);
    let contenders = contenders(&rows);
    let base = BASES.into_iter().find(|base| contenders.contains(base))?;
    let columns = vec![
        Column::label("order", "order"),
        Column::label("kernel", "kernel"),
        Column::measure("op_us", "op").with_unit("us"),
        Column::measure("touch_4k_ns", "touch 4K").with_unit("ns"),
        Column::measure("touch_16k_ns", "touch 16K").with_unit("ns"),
        Column::measure("touch_64k_ns", "touch 64K").with_unit("ns"),
        Column::measure("total_us", "op + 16K").with_unit("us"),
        Column::ratio("speed", &format!("speed, {} = 1", base.1)),
    ];
    let title = format!("{} 2 MiB, {}", operation.name(), load.name());
    let mut table = Table::new(title, columns);
    let base_us = total_us(&rows, base);
    for name in contenders {
        let touch = |bytes| Cell::real(over_targets(&rows, name, bytes, |row| row.touch_ns), 0);
        let total = total_us(&rows, name);
        table.push(Row::new([
            name.0.into(),
            name.1.into(),
            Cell::real(over_targets(&rows, name, TOTAL_TOUCH_BYTES, |row| row.op_us), 1),
            touch(TOUCHES[0]),
            touch(TOUCHES[1]),
            touch(TOUCHES[2]),
            Cell::real(total, 1),
            Cell::real(base_us / total, 2),
        ]));
    }
    Some(table)
}

/// The table for pages of 4 KiB and of 1 GiB.
pub(crate) fn of_sizes(rows: &[Measurement]) -> Table {
    let columns = vec![
        Column::label("op", "op"),
        Column::label("page", "page"),
        Column::label("order", "order"),
        Column::label("kernel", "kernel"),
        Column::measure("op_us", "op").with_unit("us"),
        Column::measure("low_us", "low 10 %").with_unit("us"),
        Column::measure("high_us", "high 10 %").with_unit("us"),
        Column::ratio("gb_per_s", "GB/s"),
    ];
    let mut table = Table::new("Other sizes, nothing touched", columns);
    for row in rows.iter().filter(|row| row.page_bytes != HUGE_PAGE_BYTES) {
        let digits = if row.op_us < 100.0 { 4 } else { 0 };
        table.push(Row::new([
            row.op.into(),
            format!("{} {}", if row.page_bytes < HUGE_PAGE_BYTES { "4 KiB" } else { "1 GiB" }, row.memory)
                .into(),
            row.order.into(),
            row.kernel.into(),
            Cell::real(row.op_us, digits),
            Cell::real(row.total_us_low, digits),
            Cell::real(row.total_us_high, digits),
            Cell::real(row.gigabytes_per_s(), 1),
        ]));
    }
    table
}

/// One table with a row for every measurement, for CSV.
pub(crate) fn of_all(rows: &[Measurement]) -> Table {
    let columns = vec![
        Column::label("op", "op"),
        Column::count("page_bytes", "page").with_unit("bytes"),
        Column::label("order", "order"),
        Column::label("kernel", "kernel"),
        Column::label("target", "target"),
        Column::count("touch_bytes", "touch").with_unit("bytes"),
        Column::label("load", "load"),
        Column::label("memory", "memory"),
        Column::count("samples", "samples"),
        Column::measure("op_us", "op").with_unit("us"),
        Column::measure("touch_ns", "touch").with_unit("ns"),
        Column::measure("total_us", "total").with_unit("us"),
        Column::measure("total_us_low", "low 10 %").with_unit("us"),
        Column::measure("total_us_high", "high 10 %").with_unit("us"),
    ];
    let mut table = Table::new("Page operations", columns);
    for row in rows {
        table.push(Row::new([
            row.op.into(),
            (row.page_bytes as u64).into(),
            row.order.into(),
            row.kernel.into(),
            row.target.into(),
            (row.touch_bytes as u64).into(),
            row.load.into(),
            row.memory.into(),
            (row.samples as u64).into(),
            Cell::real(row.op_us, 4),
            Cell::real(row.touch_ns, 1),
            Cell::real(row.total_us, 4),
            Cell::real(row.total_us_low, 4),
            Cell::real(row.total_us_high, 4),
        ]));
    }
    table
}
