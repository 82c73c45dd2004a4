//! Reads the state of page sets at both ends of one interval, and prints tables.

use std::fs;
use std::io::Write;
use std::time::Duration;

use anyhow::Result;
use pageset_live::{Monitor, View, openmetrics};
use pageset_measure::visit_cost;
use pageset_replay::advise::SAVED_PERCENT;
use pageset_report::{Format, Provenance, Table, json_document};
use serde::Serialize;

use super::args::{TopArgs, TopFormat};
use super::frame::WIDTH;
use super::{size, tables};
use crate::invocation::Invocation;
use crate::output;
use crate::paragraph;
use crate::signals::Signals;
use crate::terminal;

/// If the interval is at least this long, a message on the terminal says that pageset is reading.
const LONG: Duration = Duration::from_secs(5);

#[derive(Serialize)]
struct TopDocument<'a> {
    #[serde(flatten)]
    view: &'a View,
    provenance: &'a Provenance,
}

pub(super) fn run(
    args: &TopArgs,
    mut monitor: Monitor,
    signals: &Signals,
    invocation: &Invocation,
) -> Result<()> {
    if args.interval >= LONG && terminal::is_attended() {
        output::say(&format!("reading for {:?} ...", args.interval));
    }
    if !signals.sleep(args.interval) {
        return Ok(());
    }
    let mut view = monitor.step()?;
    view.judge(visit_cost::kept().as_ref(), SAVED_PERCENT);
    let provenance = Provenance { machine: machine(&view), ..invocation.provenance() };
    output::write(&args.target, |out| match args.format {
        TopFormat::Printed(format) => write(&view, &provenance, format, out),
        TopFormat::OpenMetrics => Ok(out.write_all(openmetrics(&view).as_bytes())?),
    })
}

fn write(view: &View, provenance: &Provenance, format: Format, out: &mut dyn Write) -> Result<()> {
    let pagesets = || tables::pagesets(&view.pagesets);
    match format {
        Format::Json => json_document(&TopDocument { view, provenance }, out)?,
        Format::Csv => format.exporter().export(&pagesets(), out)?,
        Format::Table | Format::Markdown => {
            paragraph::write(out, 0, &tables::verdict(view))?;
            writeln!(out)?;
            let counters = view.counted.as_ref().map(tables::counters);
            let zone_lock = view.zone_lock.as_ref().map(tables::zone_lock);
            for table in [Some(tables::zones(view, |_| true)), counters, zone_lock].into_iter().flatten() {
                writeln!(out, "{}", printed(table, format))?;
            }
            let mut last = pagesets();
            view.missing.iter().for_each(|sentence| last.note(sentence));
            write!(out, "{}", printed(last.with_provenance(provenance.clone()), format))?;
        }
    }
    Ok(())
}

/// Formats a table. As plain text, the table is no wider than the terminal and [`WIDTH`]. Columns without any
/// value are left out.
fn printed(table: Table, format: Format) -> String {
    let table = table.without_empty_columns();
    match format {
        Format::Table => table.to_text(size::width().min(WIDTH)),
        _ => format.exporter().to_string(&table),
    }
}

/// One line with the machine's number of CPUs, number of zones, and kernel.
fn machine(view: &View) -> String {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = if kernel.trim().is_empty() { String::new() } else { format!(", Linux {}", kernel.trim()) };
    format!("{} CPUs, {} zones{kernel}", view.totals.cpus, view.zones.len())
}
