//! The study of the 2018 patch series on copying huge pages. The study compares orders: sequences for copying
//! the base pages of a huge page. The study measures vm-scalability's anon-cow-seq on this machine with each
//! order. The study also simulates each order with a model of the published machines' caches.
//!
//! `pageset_study::huge_copy` has the load and the models. `chip` reads the inputs of the models, and
//! `orders` makes the tables.

mod chip;
mod orders;

use anyhow::{Context as _, Result};
use pageset_measure::host::{self, usable_cpus};
use pageset_pageops::{Isa, Kernel, Method, VisitOrder};
use pageset_report::Origin;
use pageset_report::Progress;
use pageset_report::Spread;
use pageset_report::comparison::{Comparison, Pair, Quantity};
use pageset_report::plot::{Axis, Figure, Mark, Panel, Point, Series};
use pageset_study::huge_copy::{AnonCow, Measured};
use pageset_study::jobs::Stage;

use super::prose::{EXPLANATIONS, NOTES, Prose};
use super::published::{Published, published};
use super::study::{Findings, Options, Study};

/// See [`Study`].
#[derive(Debug)]
pub(crate) struct HugeCopy;

/// Number of rounds of measurements. In each round, the study measures each order once.
const ROUNDS: usize = 9;
const ROUNDS_QUICK: usize = 3;

impl Study for HugeCopy {
    fn name(&self) -> &'static str {
        "huge-copy"
    }

    fn summary(&self) -> &'static str {
        "huge page copy, target sub-page last (2018): anon-cow-seq under each order of copying"
    }

    fn has_seeds(&self) -> bool {
        false
    }

    fn run(&self, options: &Options, progress: &mut dyn Progress) -> Result<Findings> {
        let rounds = if options.is_quick { ROUNDS_QUICK } else { ROUNDS };
        let machine = host::line();
        let claims = Claims::read()?;
        let prose = Prose::parse("data/tables/huge-copy/huge-copy.md", PROSE)?;
        let modelled = orders::model(&mut Stage::begin(progress, "modelling", "changes", orders::CHANGES))?;
        let mut stage = Stage::begin(progress, "copying", "rounds", 2 * rounds);
        let every_cpu = measure(&usable_cpus(), rounds, &mut stage)?;
        let alone = measure(&usable_cpus()[..1], rounds, &mut stage)?;
        let children = usable_cpus().len();
        let mut findings = Findings {
            tables: vec![
                orders::comparison(&modelled),
                table(
                    "anon-cow-seq",
                    &format!("anon-cow-seq, {children} children"),
                    &machine,
                    &every_cpu,
                    Some(&claims),
                ),
                table("anon-cow-seq-1", "anon-cow-seq, 1 child", &machine, &alone, None),
            ],
            more: vec![
                orders::winners(&modelled, every_cpu.change_percent()?),
                orders::rooms()?,
                orders::hits()?,
            ],
            figures: vec![("huge-copy".to_owned(), figure(&every_cpu, &alone))],
            notes: prose.below(NOTES).to_vec(),
            explanations: [verdict(&every_cpu, &claims)?]
                .into_iter()
                .chain(options.reasons(prose.below(EXPLANATIONS)))
                .collect(),
            machine,
            ..Findings::default()
        };
        findings.notes.extend(every_cpu.rows.iter().find_map(|row| row.no_counters.clone()).map(|reason| {
            format!("Instructions per cycle are not available: this machine has no such counters ({reason}).")
        }));
        Ok(findings)
    }
}

const PROSE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tables/huge-copy/huge-copy.md"));

/// The results that the published series reports for anon-cow-seq.
struct Claims {
    throughput_percent: f64,
    user_time_percent: f64,
    ipc_before: f64,
    ipc_after: f64,
}

impl Claims {
    fn read() -> Result<Self> {
        let table = published!("huge-copy/claims.csv")?;
        let value = |item| Self::value(&table, item);
        Ok(Self {
            throughput_percent: value("throughput change")?,
            user_time_percent: value("user time change")?,
            ipc_before: value("IPC before")?,
            ipc_after: value("IPC after")?,
        })
    }

    fn value(table: &Published, item: &str) -> Result<f64> {
        let row = table.rows_with("item", item).next();
        let row = row.with_context(|| format!("data/tables/huge-copy/claims.csv: no item `{item}`"))?;
        row.number("value")?
            .with_context(|| format!("data/tables/huge-copy/claims.csv: `{item}` has no value"))
    }
}

/// The measurements of all orders of copying. The first order is the base.
struct Results {
    rows: Vec<OrderResult>,
}

/// The measurements of one order of copying.
struct OrderResult {
    name: String,
    throughput: Spread,
    write: Spread,
    copy: Spread,
    ipc: Option<f64>,
    no_counters: Option<String>,
}

/// Returns the orders to compare: the orders that Linux has used, with Linux's instructions, and after them
/// this project's own order.
fn methods() -> Vec<Method> {
    let rep = Kernel::new(Isa::Rep).unwrap_or(Kernel::PORTABLE);
    let linux = VisitOrder::ALL.into_iter().filter(|order| *order != VisitOrder::StreamTargetLast);
    linux.map(|order| Method::new(order, rep, 0)).chain([Method::chosen()]).collect()
}

fn measure(cpus: &[usize], rounds: usize, stage: &mut Stage<'_>) -> Result<Results> {
    let methods = methods();
    let mut load = AnonCow::new(cpus)?;
    let mut measured: Vec<Vec<Measured>> = vec![Vec::new(); methods.len()];
    // The result of the first run does not count, because only the first run begins with caches that hold no
    // data of an earlier run.
    load.run(methods[0])?;
    for round in 0..rounds {
        for turn in 0..methods.len() {
            let which = (round + turn) % methods.len();
            measured[which].push(load.run(methods[which])?);
        }
        stage.step()?;
    }
    let rows = std::iter::zip(methods, measured).map(|(method, runs)| OrderResult::new(method, &runs));
    Ok(Results { rows: rows.collect::<Result<_>>()? })
}

impl OrderResult {
    fn new(method: Method, runs: &[Measured]) -> Result<Self> {
        let spread = |value: fn(&Measured) -> f64| {
            let values: Vec<_> = runs.iter().map(value).collect();
            Spread::of(&values).context("a study has at least one measured run")
        };
        let ipc: Option<Vec<_>> = runs.iter().map(|run| run.ipc.as_ref().ok().copied()).collect();
        Ok(Self {
            name: format!("{}, {}", method.order().name(), method.kernel().isa().name()),
            throughput: spread(|run| run.bytes_per_s)?,
            write: spread(|run| run.write_us)?,
            copy: spread(|run| run.copy_us)?,
            ipc: ipc.and_then(|values| Spread::of(&values)).map(|spread| spread.median),
            no_counters: runs.iter().find_map(|run| run.ipc.as_ref().err().cloned()),
        })
    }
}

impl Results {
    fn base(&self) -> &OrderResult {
        &self.rows[0]
    }

    /// Returns the throughput of one order of copying, in percent of the throughput of the base order.
    fn throughput_percent(&self, row: &OrderResult) -> f64 {
        row.throughput.median / self.base().throughput.median * 100.0
    }

    /// Returns the change of the throughput from the base order to the order of 2018, in percent.
    fn change_percent(&self) -> Result<f64> {
        let row = self.rows.get(1).context("the order of 2018 was measured")?;
        Ok(self.throughput_percent(row) - 100.0)
    }

    fn write_percent(&self, row: &OrderResult) -> f64 {
        row.write.median / self.base().write.median * 100.0
    }
}

fn table(id: &str, title: &str, machine: &str, results: &Results, claims: Option<&Claims>) -> Comparison {
    let quantities = vec![
        Quantity::relative("throughput", "throughput", "base = 100", 1),
        Quantity::relative("user_time", "user time", "base = 100", 1),
        Quantity::relative("ipc", "instructions per cycle", "", 2),
        Quantity::relative("copy_us", "copying 2 MiB", "us", 1),
        Quantity::relative("write_us", "writing 2 MiB", "us", 1),
    ];
    let mut table = Comparison::new(id, title, machine, quantities);
    let mut base = None;
    for (index, row) in results.rows.iter().enumerate() {
        let published = match (index, claims) {
            (0, Some(claims)) => [Some(100.0), Some(100.0), Some(claims.ipc_before)],
            (1, Some(claims)) => [
                Some(100.0 + claims.throughput_percent),
                Some(100.0 + claims.user_time_percent),
                Some(claims.ipc_after),
            ],
            _ => [None; 3],
        };
        let pair = |published, ours| Pair::new(published, ours, Origin::Measured);
        let pairs = vec![
            pair(published[0], Some(results.throughput_percent(row))),
            pair(published[1], Some(results.write_percent(row))),
            pair(published[2], row.ipc),
            pair(None, Some(row.copy.median)),
            pair(None, Some(row.write.median)),
        ];
        match base {
            None => base = Some(table.push_base(row.name.as_str(), pairs)),
            Some(base) => table.push(row.name.as_str(), base, pairs),
        }
    }
    table
}

/// Returns a sentence that says whether this machine reproduces the published result.
fn verdict(results: &Results, claims: &Claims) -> Result<String> {
    let row = results.rows.get(1).context("the order of 2018 was measured")?;
    let change = results.change_percent()?;
    let is_apart = row.throughput.is_apart_from(&results.base().throughput);
    let outcome = match change {
        change if change >= claims.throughput_percent / 2.0 => "The published result reproduces here",
        change if change > 0.0 && is_apart => {
            "The published result reproduces here in direction, but not in size"
        }
        _ => "The published result does not reproduce here",
    };
    let runs = if is_apart {
        "each run of one order is faster than each run of the other"
    } else {
        "their runs overlap"
    };
    let user_time = results.write_percent(row) - 100.0;
    Ok(format!(
        "{outcome}: the order of 2018 changes the throughput by {change:+.1} % ({runs}), published {:+.1} %; user time by \
         {user_time:+.1} %, published {:+.1} %.",
        claims.throughput_percent, claims.user_time_percent
    ))
}

fn figure(every_cpu: &Results, alone: &Results) -> Figure {
    let mut figure = Figure::new("anon-cow-seq: bytes copied and written per second, by order of copying");
    let names = every_cpu.rows.iter().map(|row| row.name.as_str());
    let x = Axis::categories("order and kernel", names);
    let mut panel = Panel::new("", x, Axis::from_zero("throughput", "GB/s"));
    for (name, results) in [("every CPU a child", every_cpu), ("1 child", alone)] {
        let points = results.rows.iter().enumerate().map(|(index, row)| {
            let spread = &row.throughput;
            Point {
                x: index as f64,
                y: spread.median / 1e9,
                range: Some((spread.min / 1e9, spread.max / 1e9)),
            }
        });
        panel.push(Series::new(name, Origin::Measured, Mark::Bars, points));
    }
    figure.push(panel);
    figure
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(throughputs: [&[f64]; 2]) -> Results {
        let row = |throughput: &[f64]| OrderResult {
            name: String::new(),
            throughput: Spread::of(throughput).unwrap(),
            write: Spread::of(&[1.0]).unwrap(),
            copy: Spread::of(&[1.0]).unwrap(),
            ipc: None,
            no_counters: None,
        };
        Results { rows: throughputs.into_iter().map(row).collect() }
    }

    #[test]
    fn the_claims_are_those_of_the_series() {
        let claims = Claims::read().unwrap();
        assert_eq!((claims.throughput_percent, claims.user_time_percent), (16.6, -7.2));
        assert_eq!((claims.ipc_before, claims.ipc_after), (0.63, 0.78));
    }

    #[test]
    fn the_verdict_follows_the_figures() {
        let claims = Claims::read().unwrap();
        for (ours, expected) in [
            ([110.0, 112.0], "The published result reproduces here:"),
            ([104.0, 105.0], "The published result reproduces here in direction"),
            ([99.0, 105.0], "The published result does not reproduce here:"),
            ([80.0, 81.0], "The published result does not reproduce here:"),
        ] {
            let text = verdict(&results([&[100.0, 100.0], &ours]), &claims).unwrap();
            assert!(text.starts_with(expected), "{ours:?}: {text}");
        }
    }

    #[test]
    fn the_base_is_what_linux_did_before_and_the_order_of_2018_follows() {
        let orders: Vec<_> = methods().iter().map(|method| method.order()).collect();
        assert_eq!(orders, VisitOrder::ALL);
    }
}
