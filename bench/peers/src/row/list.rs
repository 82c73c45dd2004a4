//! All jobs and their rows.

use anyhow::bail;

use super::bulk::{
    Bulk,
    FreeOrder::{self, Fifo, Lifo, Random},
};
use super::client::{Client, Sizes};
use super::mix::Orders;
use super::uring::Direction;
use super::{
    bulk, burst, client, handoff, huge, latency, mix, overhead, page_cache, pair, resident, touch, uring,
};
use crate::effort::Effort;
use crate::target::{Line, PAGE, Target};

/// Pages in the large rows.
const MILLION: usize = 1_000_000;

/// The work of a job.
#[derive(Clone, Copy, Debug)]
enum Work {
    Pair(Constant),
    Bulk { count: usize, free_order: FreeOrder },
    BulkHuge,
    Mix(Orders),
    Latency,
    Handoff,
    HandoffOrder3,
    Touch { order: u32, line: Line },
    Burst,
    Resident,
    Huge,
    Overhead,
    PageCache,
    Client(Client),
    Uring(Direction),
}

/// An order that is a constant in the measured loop, as orders are in programs.
#[derive(Clone, Copy, Debug)]
enum Constant {
    Order0,
    Order3,
    Order9,
}

/// One row of the results.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowInfo {
    /// Name on the command line and in results.
    pub(crate) name: &'static str,
    /// The unit of its values. In every row less is better.
    pub(crate) unit: &'static str,
}

/// The work of one child.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    /// The name that the parent passes to the child.
    pub(crate) name: &'static str,
    /// Threads that work.
    pub(crate) threads: usize,
    /// Whether `--quick` leaves the job out.
    pub(crate) is_long: bool,
    /// Whether the job needs so much preparation that it is repeated half as often.
    is_heavy: bool,
    /// Whether the job sleeps most of the time, so that several children may run it at once.
    pub(crate) sleeps: bool,
    /// The runs that leave the kernel's targets out.
    slow_for_kernel: SlowFor,
    /// The job's values, in this order.
    pub(crate) rows: &'static [RowInfo],
    work: Work,
}

/// The runs that leave the kernel out of a job, because it needs a system call for each of very many blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlowFor {
    None,
    QuickRuns,
    AllRuns,
}

impl Job {
    /// The repetitions of this job, where a quick job is repeated `rounds` times.
    pub(crate) fn rounds(&self, rounds: u32) -> u32 {
        rounds.div_ceil(match self {
            _ if self.is_long || self.sleeps => 3,
            _ if self.is_heavy => 2,
            _ => 1,
        })
    }

    /// The pages that the target needs: a 64th more than the burst, or 4 GiB for each thread that takes many.
    pub(crate) fn pages(&self, effort: &Effort) -> usize {
        match self.work {
            Work::Bulk { count: MILLION, .. } => self.threads << 20,
            Work::Client(client) => client.pages(),
            // 4 MiB. On many systems `ulimit -l` is 8 MiB, and the ring itself takes a part of it.
            Work::Uring(_) => 1 << 10,
            Work::Burst | Work::Resident | Work::Huge | Work::Overhead | Work::PageCache => {
                effort.burst / PAGE / 64 * 65
            }
            _ => 1 << 20,
        }
    }

    /// Whether the kernel may pin the target's memory.
    pub(crate) fn pins(&self) -> bool {
        matches!(self.work, Work::Uring(_))
    }

    /// The reason why the floor is meaningless here, if it is.
    pub(crate) fn without_floor(&self) -> Option<&'static str> {
        let has_floor = matches!(
            self.work,
            Work::Pair(_)
                | Work::Bulk { .. }
                | Work::BulkHuge
                | Work::Mix(_)
                | Work::Handoff
                | Work::HandoffOrder3
                | Work::Latency
        );
        (!has_floor).then_some("the row is about memory, and it has none")
    }

    /// The reason why the kernel does not take part, if it does not.
    pub(crate) fn without_kernel(&self, effort: &Effort) -> Option<&'static str> {
        let is_slow = match self.slow_for_kernel {
            SlowFor::None => false,
            SlowFor::QuickRuns => effort.is_quick,
            SlowFor::AllRuns => true,
        };
        is_slow.then_some(
            "a system call for each block takes too long here; see pair-0, bulk-10k and touch-128m",
        )
    }
}

const fn job(name: &'static str, threads: usize, rows: &'static [RowInfo], work: Work) -> Job {
    let is_long =
        matches!(work, Work::Bulk { count: MILLION, .. } | Work::Client(Client { mib: 4096.., .. }));
    let slow_for_kernel = match work {
        Work::Handoff
        | Work::HandoffOrder3
        | Work::Huge
        | Work::Client(_)
        | Work::Bulk { count: MILLION, .. } => SlowFor::AllRuns,
        Work::Mix(_) if threads > 1 => SlowFor::AllRuns,
        Work::Mix(_) | Work::Latency | Work::Bulk { .. } | Work::BulkHuge => SlowFor::QuickRuns,
        _ => SlowFor::None,
    };
    let is_light = matches!(
        work,
        Work::Pair(_)
            | Work::Handoff
            | Work::HandoffOrder3
            | Work::Bulk { count: 10_000, .. }
            | Work::BulkHuge
            | Work::Uring(_)
    );
    Job {
        name,
        threads,
        is_long,
        is_heavy: !is_light,
        sleeps: matches!(work, Work::Resident),
        slow_for_kernel,
        rows,
        work,
    }
}

/// Makes a list of rows from names and units.
macro_rules! rows {
    ($($name:literal: $unit:literal),+) => { &[$(RowInfo { name: $name, unit: $unit }),+] };
}

const fn pairs(name: &'static str, threads: usize, rows: &'static [RowInfo], order: Constant) -> Job {
    job(name, threads, rows, Work::Pair(order))
}

const fn pages(
    name: &'static str,
    threads: usize,
    rows: &'static [RowInfo],
    count: usize,
    free_order: FreeOrder,
) -> Job {
    job(name, threads, rows, Work::Bulk { count, free_order })
}

/// Makes a client's job, whose rows have its name.
macro_rules! client {
    ($name:literal, $sizes:ident, $mib:literal, $percent:literal) => {
        job(
            concat!("client-", $name),
            1,
            &[
                RowInfo { name: concat!("client-", $name), unit: "ns/request" },
                RowInfo { name: concat!("client-", $name, "-refused"), unit: "%" },
                RowInfo { name: concat!("client-", $name, "-huge-missing"), unit: "%" },
            ],
            Work::Client(Client { sizes: Sizes::$sizes, mib: $mib, percent: $percent }),
        )
    };
}

/// All jobs, in the order of running and printing.
pub(crate) const JOBS: &[Job] = &[
    pairs("pair-0", 1, rows!["pair-0": "ns/pair"], Constant::Order0),
    pairs("pair-0/2", 2, rows!["pair-0": "ns/pair"], Constant::Order0),
    pairs("pair-3", 1, rows!["pair-3": "ns/pair"], Constant::Order3),
    pairs("pair-3/2", 2, rows!["pair-3": "ns/pair"], Constant::Order3),
    pairs("pair-9", 1, rows!["pair-9": "ns/pair"], Constant::Order9),
    pairs("pair-9/2", 2, rows!["pair-9": "ns/pair"], Constant::Order9),
    pages("bulk-10k-lifo", 1, rows!["bulk-10k-lifo": "ns/page"], 10_000, Lifo),
    pages("bulk-10k-lifo/2", 2, rows!["bulk-10k-lifo": "ns/page"], 10_000, Lifo),
    pages("bulk-10k-fifo", 1, rows!["bulk-10k-fifo": "ns/page"], 10_000, Fifo),
    pages("bulk-10k-fifo/2", 2, rows!["bulk-10k-fifo": "ns/page"], 10_000, Fifo),
    pages("bulk-10k-random", 1, rows!["bulk-10k-random": "ns/page"], 10_000, Random),
    pages("bulk-10k-random/2", 2, rows!["bulk-10k-random": "ns/page"], 10_000, Random),
    pages("bulk-1m-lifo", 1, rows!["bulk-1m-lifo": "ns/page"], MILLION, Lifo),
    pages("bulk-1m-fifo", 1, rows!["bulk-1m-fifo": "ns/page"], MILLION, Fifo),
    pages(
        "bulk-1m-random",
        1,
        rows!["bulk-1m-random": "ns/page", "bulk-1m-random-alloc": "ns/page", "bulk-1m-random-free": "ns/page"],
        MILLION,
        Random,
    ),
    pages(
        "bulk-1m-random/2",
        2,
        rows!["bulk-1m-random": "ns/page", "bulk-1m-random-alloc": "ns/page", "bulk-1m-random-free": "ns/page"],
        MILLION,
        Random,
    ),
    job("bulk-order-9", 1, rows!["bulk-order-9": "ns/block"], Work::BulkHuge),
    job("mix", 1, rows!["mix": "ns/pair"], Work::Mix(Orders::Zero)),
    job("mix/2", 2, rows!["mix": "ns/pair"], Work::Mix(Orders::Zero)),
    job("mix-orders", 1, rows!["mix-orders": "ns/pair"], Work::Mix(Orders::UpToThree)),
    job("handoff-0", 2, rows!["handoff-0": "ns/page"], Work::Handoff),
    job("handoff-3", 2, rows!["handoff-3": "ns/block"], Work::HandoffOrder3),
    job(
        "latency",
        1,
        rows!["latency-p50": "ns", "latency-p99": "ns", "latency-p99.9": "ns", "latency-max": "ns"],
        Work::Latency,
    ),
    job("touch-128m", 1, rows!["touch-128m": "ns/page"], Work::Touch { order: 0, line: Line::First }),
    job(
        "touch-128m-order-9",
        1,
        rows!["touch-128m-order-9": "ns/page"],
        Work::Touch { order: 9, line: Line::First },
    ),
    job(
        "touch-128m-lines",
        1,
        rows!["touch-128m-lines": "ns/page"],
        Work::Touch { order: 9, line: Line::Next },
    ),
    job("burst", 1, rows!["burst": "ns/page", "burst-again": "ns/page"], Work::Burst),
    job(
        "resident",
        1,
        rows!["resident-0s": "MiB/GiB", "resident-1s": "MiB/GiB", "resident-10s": "MiB/GiB", "resident-next": "ns/page"],
        Work::Resident,
    ),
    job("huge-occupied", 1, rows!["huge-occupied": "2MiB/GiB"], Work::Huge),
    client!("sizes-10m-50", Orders, 10, 50),
    client!("sizes-10m-75", Orders, 10, 75),
    client!("sizes-10m-90", Orders, 10, 90),
    client!("sizes-64m-50", Orders, 64, 50),
    client!("sizes-64m-75", Orders, 64, 75),
    client!("sizes-64m-90", Orders, 64, 90),
    client!("sizes-1024m-50", Orders, 1024, 50),
    client!("sizes-1024m-75", Orders, 1024, 75),
    client!("sizes-1024m-90", Orders, 1024, 90),
    client!("large-64m-50", LargeOrders, 64, 50),
    client!("large-64m-75", LargeOrders, 64, 75),
    client!("large-64m-90", LargeOrders, 64, 90),
    client!("counts-256m-50", Counts, 256, 50),
    client!("counts-1024m-50", Counts, 1024, 50),
    client!("counts-4096m-50", Counts, 4096, 50),
    client!("counts-16384m-50", Counts, 16_384, 50),
    client!("aligned-256m-50", Aligned, 256, 50),
    client!("aligned-1024m-50", Aligned, 1024, 50),
    client!("aligned-4096m-50", Aligned, 4096, 50),
    client!("aligned-16384m-50", Aligned, 16_384, 50),
    job(
        "client-page-cache",
        1,
        rows![
            "client-page-cache": "ns/operation",
            "client-page-cache-p99.9": "ns",
            "client-page-cache-idle": "MiB/GiB"
        ],
        Work::PageCache,
    ),
    // `metadata` runs before the two jobs after it, because their memory stays resident for a while.
    job("metadata", 1, rows!["metadata": "KiB/GiB"], Work::Overhead),
    job("client-uring-read", 1, rows!["client-uring-read": "ns/request"], Work::Uring(Direction::Read)),
    job("client-uring-write", 1, rows!["client-uring-write": "ns/request"], Work::Uring(Direction::Write)),
];

/// Does a job with an opened target. `before` is the resident memory before it was opened. An error names
/// what the system lacks.
pub(crate) fn run<T: Target>(
    target: &T,
    job: &Job,
    before: u64,
    effort: &Effort,
) -> Result<Vec<f64>, String> {
    Ok(match job.work {
        Work::Pair(Constant::Order0) => vec![pair::run::<T, 0>(target, job.threads, effort)],
        Work::Pair(Constant::Order3) => vec![pair::run::<T, 3>(target, job.threads, effort)],
        Work::Pair(Constant::Order9) => vec![pair::run::<T, 9>(target, job.threads, effort)],
        Work::Bulk { count, free_order } => {
            let bulk = Bulk { count, free_order, threads: job.threads };
            bulk::run::<T, 0>(target, bulk, effort)[..job.rows.len()].to_vec()
        }
        Work::BulkHuge => {
            let bulk = Bulk { count: 512, free_order: Lifo, threads: 1 };
            bulk::run::<T, 9>(target, bulk, effort)[..job.rows.len()].to_vec()
        }
        Work::Mix(orders) => vec![mix::run(target, orders, job.threads, effort)],
        Work::Latency => latency::run(target, effort),
        Work::Handoff => vec![handoff::run::<T, 0>(target, effort)],
        Work::HandoffOrder3 => vec![handoff::run::<T, 3>(target, effort)],
        Work::Touch { order, line } => vec![touch::run(target, order, line, effort)],
        Work::Burst => burst::run(target, effort),
        Work::Resident => resident::run(target, before, effort),
        Work::Huge => vec![huge::run(target, effort)],
        Work::PageCache => page_cache::run(target, before, effort),
        Work::Client(client) => client::run(target, client, effort),
        Work::Overhead => vec![overhead::run(target, before, effort)],
        Work::Uring(direction) => uring::run(target, direction, effort)?,
    })
}

/// The jobs with a row whose name begins with one of these. All jobs if there are no names.
pub(crate) fn selected(names: &[String]) -> anyhow::Result<Vec<&'static Job>> {
    let has = |job: &Job, name: &str| job.rows.iter().any(|row| row.name.starts_with(name));
    for name in names {
        if !JOBS.iter().any(|job| has(job, name)) {
            let mut known: Vec<_> = JOBS.iter().flat_map(|job| job.rows).map(|row| row.name).collect();
            known.dedup();
            bail!("no row `{name}`; there are: {}", known.join(", "));
        }
    }
    Ok(JOBS.iter().filter(|job| names.is_empty() || names.iter().any(|name| has(job, name))).collect())
}
