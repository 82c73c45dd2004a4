//! `pageset calibrate pageops`: which order, kernel and neighbourhood clear and copy huge pages fastest here.
//!
//! The time is short, so it goes in two steps: first the orders and kernels, all with one neighbourhood, then the
//! neighbourhoods of the winner. What is compared is measured in turn, in blocks of one method, since dirty lines that one
//! method leaves in the caches are paid for by the next.

use std::time::{Duration, Instant};

use anyhow::Result;
use pageset_pageops::{BASE_PAGE_BYTES, Method, Order};
use pageset_report::{Cell, Column, Format, Provenance, Row as Line, Table, json_document};
use serde::Serialize;

use crate::args::OutputArgs;
use crate::bench::pageops::clock::median;
use crate::bench::pageops::contender::{Contender, Operation};
use crate::bench::pageops::grid::{TOUCHES, Target, Workspace};
use crate::bench::pageops::load::{Load, pin};
use crate::invocation::Invocation;
use crate::{output, this_machine};

/// Huge pages used in turn, and as many sources: 128 MiB together, four times a third-level cache of 32 MiB. Making more
/// of them resident would take longer than measuring.
const PAGES: usize = 32;
/// When the orders and kernels are done, and when the neighbourhoods are, after the start: on a busy machine, where pages
/// become resident slowly, there are fewer samples.
const DEADLINES: [Duration; 2] = [Duration::from_millis(600), Duration::from_millis(850)];
/// Neighbourhoods whose cost is so near to the least count as equal; the largest is taken, which helps programs that touch
/// more than is measured. A guess, about what two runs differ by.
const EQUAL: f64 = 1.01;
/// Neighbourhoods that are tried.
const NEIGHBOURHOODS: [usize; 6] = [0, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10];

const READING: &str = "\
How to read this:
  Each row is a way to clear and copy a page of 2 MiB. Its cost is the mean of
  clearing and copying, each with a touch of 4, 16 and 64 KiB around the target
  afterwards, at the start, in the middle and at the end of the page. The
  method with the least cost is chosen; of its neighbourhoods, which stand
  below, the largest that costs at most 1 % more than the least.

Use it:
  The line below the table is what a program says once, at its start, in order
  to get this method for pageset_pageops::clear and copy. Without it, a program
  gets what the features of the CPU suggest.

Examples:
  pageset calibrate pageops
  pageset calibrate pageops --format json | jq .chosen";

/// Choose how this machine clears and copies pages, in a second
///
/// Measures orders, kernels and neighbourhoods on cold huge pages, prints all of them, and names the best.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING)]
pub(crate) struct CalibratePageopsArgs {
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &CalibratePageopsArgs, invocation: &Invocation) -> Result<()> {
    let started = Instant::now();
    // Before the thread is kept on one CPU, which hides the others.
    let machine = this_machine::line();
    Load::Alone.measuring_cpus().into_iter().for_each(pin);
    let mut workspace = Workspace::new(PAGES)?;
    let is_huge = workspace.is_huge();
    let (rows, chosen) = calibrate(&mut workspace, DEADLINES.map(|after| started + after));
    let provenance = Provenance { machine, ..invocation.provenance() };
    let calibration =
        Calibration { rows, chosen, is_huge, seconds: started.elapsed().as_secs_f64(), provenance };
    output::write(&args.output.target, |out| match args.output.format() {
        Format::Json => Ok(json_document(&calibration, out)?),
        format => Ok(format.exporter().export(&calibration.table(), out)?),
    })
}

/// What was measured, and what follows.
#[derive(Serialize)]
struct Calibration {
    rows: Vec<Row>,
    chosen: Choice,
    is_huge: bool,
    seconds: f64,
    provenance: Provenance,
}

/// A method in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Choice {
    order: &'static str,
    kernel: &'static str,
    neighbourhood_bytes: usize,
}

/// What a method costs.
#[derive(Clone, Copy, Debug, Serialize)]
struct Row {
    #[serde(flatten)]
    method: Choice,
    /// Each with its touch.
    clear_us: f64,
    copy_us: f64,
    cost_us: f64,
    samples: usize,
}

/// Both steps.
fn calibrate(workspace: &mut Workspace, deadlines: [Instant; 2]) -> (Vec<Row>, Choice) {
    let methods: Vec<_> =
        Contender::all(Operation::Clear).into_iter().filter_map(Contender::method).collect();
    let mut rows = measure(workspace, &methods, deadlines[0]);
    let best = cheapest(&rows);
    let chosen = methods[best];
    if chosen.order() != Order::StreamTargetLast {
        let chosen = rows[best].method;
        return (rows, chosen);
    }
    let others = NEIGHBOURHOODS.map(|bytes| Method::new(chosen.order(), chosen.kernel(), bytes));
    let neighbourhoods = measure(workspace, &others, deadlines[1]);
    let least_us = neighbourhoods[cheapest(&neighbourhoods)].cost_us;
    let largest = neighbourhoods.iter().rposition(|row| row.cost_us <= least_us * EQUAL);
    let chosen = neighbourhoods[largest.unwrap_or(0)].method;
    rows.extend(neighbourhoods);
    (rows, chosen)
}

fn cheapest(rows: &[Row]) -> usize {
    let cost = |index: &usize| rows[*index].cost_us;
    (0..rows.len()).min_by(|one, other| cost(one).total_cmp(&cost(other))).unwrap_or(0)
}

/// Measures the methods in turn until `deadline`, each at least once.
fn measure(workspace: &mut Workspace, methods: &[Method], deadline: Instant) -> Vec<Row> {
    // One for each operation of each method.
    let mut times_us = vec![Vec::new(); methods.len() * Operation::ALL.len()];
    let mut round = 0;
    while round == 0 || Instant::now() < deadline {
        let touch_bytes = TOUCHES[round % TOUCHES.len()];
        for (number, times_us) in times_us.iter_mut().enumerate() {
            let (contender, operation) = (Contender::Method(methods[number / 2]), Operation::ALL[number % 2]);
            workspace.warm_up(contender, operation);
            for offset in Target::ALL.into_iter().filter_map(Target::fixed_offset) {
                let (op_ns, touch_ns) = workspace.sample(contender, operation, offset, touch_bytes);
                times_us.push((op_ns + touch_ns) / 1e3);
            }
        }
        round += 1;
    }
    let row = |index: usize| {
        let [clear_us, copy_us] =
            [0, 1].map(|operation| median(&mut times_us[index * 2 + operation].clone()));
        let method = methods[index];
        let method = Choice {
            order: method.order().name(),
            kernel: method.kernel().isa().name(),
            neighbourhood_bytes: match method.order() {
                Order::StreamTargetLast => method.radius_pages() * 2 * BASE_PAGE_BYTES,
                _ => 0,
            },
        };
        Row {
            method,
            clear_us,
            copy_us,
            cost_us: f64::midpoint(clear_us, copy_us),
            samples: times_us[index * 2].len(),
        }
    };
    (0..methods.len()).map(row).collect()
}

impl Calibration {
    fn table(&self) -> Table {
        let columns = vec![
            Column::label("order", "order"),
            Column::label("kernel", "kernel"),
            Column::count("neighbourhood_bytes", "neighbourhood").with_unit("bytes"),
            Column::measure("clear_us", "clear").with_unit("us"),
            Column::measure("copy_us", "copy").with_unit("us"),
            Column::measure("cost_us", "cost").with_unit("us"),
            Column::count("samples", "samples"),
        ];
        let mut table = Table::new("Clearing and copying 2 MiB, with a touch around the target", columns);
        for row in &self.rows {
            table.push(Line::new([
                row.method.order.into(),
                row.method.kernel.into(),
                (row.method.neighbourhood_bytes as u64).into(),
                Cell::real(row.clear_us, 1),
                Cell::real(row.copy_us, 1),
                Cell::real(row.cost_us, 1),
                (row.samples as u64).into(),
            ]));
        }
        let Choice { order, kernel, neighbourhood_bytes } = self.chosen;
        table.note(format!("Chosen: {order}, {kernel}, neighbourhood {neighbourhood_bytes} bytes."));
        table.note(format!(
            "In a program: Method::new(Order::named(\"{order}\")?, Kernel::new(Isa::named(\"{kernel}\")?)?, \
             {neighbourhood_bytes}).choose()"
        ));
        table.note(format!("Took {:.2} s, with making {} MiB resident.", self.seconds, PAGES * 4));
        if !self.is_huge {
            table.note("The system backs the pages with base pages, so the TLB is part of all times.");
        }
        table.with_provenance(self.provenance.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_of_all_is_chosen() {
        let mut workspace = Workspace::new(2).unwrap();
        let (rows, chosen) = calibrate(&mut workspace, [Instant::now(); 2]);
        assert!(Order::ALL.iter().all(|order| rows.iter().any(|row| row.method.order == order.name())));
        assert!(rows.iter().any(|row| row.method == chosen));
        assert!(rows.iter().all(|row| row.samples == 3 && row.cost_us > 0.0));
    }
}
