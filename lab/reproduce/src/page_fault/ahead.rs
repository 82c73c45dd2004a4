//! Tests two promises of the published text: programs gain if the kernel maps pages before their first touch
//! (prefaulting), and if the kernel clears pages before their first touch (prezeroing).
//!
//! The published text says that prefaulting raises the highest fault rate three-fold, and may allocate pages
//! that no thread touches. The published text also says that prezeroing pays if a program uses few cache
//! lines of a page.

use anyhow::Result;
use pageset_fault::Strategy;
use pageset_measure::pft::Ahead;
use pageset_report::plot::{Axis, Figure, Mark, Panel, Series};
use pageset_report::{Cell, Column, Origin, Row, Table};

use super::printed::PAGES_PER_GIB;
use super::runs::{Key, Runs};

/// Highest fault rate with prefaulting, divided by the highest rate without prefaulting, as the published
/// text promises.
const CLAIM: f64 = 3.0;
/// Memory of all threads together, in GiB. 512 GiB is the largest size of memory with published rows for all
/// numbers of threads.
const GIB: u32 = 512;
/// The strategy with atomic operations, which the published text proposes to combine with prefaulting.
const STRATEGY: &str = "P2,V1,R1";
const ORDERS: [u8; 4] = [0, 1, 3, 5];

/// Number of pages that a thread skips after each 48 touched pages, in the runs that count untouched pages. A
/// quarter of the region is skipped.
const SKIPPED: u64 = 16;

fn counts(is_quick: bool) -> &'static [u32] {
    if is_quick { &[16, 512] } else { &[1, 4, 16, 64, 128, 256, 512] }
}

fn strategy() -> Strategy {
    STRATEGY.parse().expect("a strategy that exists")
}

fn prefault(order: u8, threads: u32, skipped: u64) -> Key {
    let pages = u64::from(GIB) * u64::from(PAGES_PER_GIB) / u64::from(threads);
    let ahead = Ahead { prefault_order: order, prezero: false };
    Key { shared_cache: true, ahead, skipped, ..Key::new(strategy(), threads, pages) }
}

/// Numbers of cache lines that a thread writes in each page, in the runs with prezeroing. A page has 128
/// lines of 128 bytes. `PREZERO_THREADS` has the numbers of threads of these runs.
const LINES: [u32; 4] = [1, 16, 64, 128];
const PREZERO_THREADS: [u32; 2] = [1, 16];
/// Number of pages of each thread in the runs with prezeroing. The pages of one thread take ten times as much
/// memory as a cache has, so pages that were cleared early have left the cache.
const PREZERO_PAGES: u64 = 4096;

fn prezero(lines: u32, threads: u32, prezero: bool) -> Key {
    let ahead = Ahead { prefault_order: 0, prezero };
    let key = Key::new(strategy(), threads, PREZERO_PAGES);
    Key { shared_cache: true, ahead, lines, pages_max: PREZERO_PAGES * u64::from(threads), ..key }
}

/// Returns the simulations that test both promises.
pub(super) fn keys(is_quick: bool) -> Vec<Key> {
    let pairs =
        ORDERS.iter().flat_map(|order| counts(is_quick).iter().map(move |threads| (*order, *threads)));
    let prefaults =
        pairs.flat_map(|(order, threads)| [0, SKIPPED].map(|skipped| prefault(order, threads, skipped)));
    let rows = PREZERO_THREADS.into_iter().flat_map(|threads| LINES.map(|lines| (lines, threads)));
    let prezeros =
        rows.flat_map(|(lines, threads)| [false, true].map(|ahead| prezero(lines, threads, ahead)));
    prefaults.chain(prezeros).collect()
}

/// Results of the simulations of prefaulting and prezeroing.
pub(super) struct Promises {
    rows: Vec<PrefaultRow>,
    prezero: Table,
}

struct PrefaultRow {
    order: u8,
    threads: u32,
    faults_per_second: f64,
    pages_untouched: u64,
    untouched_percent: f64,
}

impl Promises {
    pub(super) fn new(runs: &Runs, is_quick: bool) -> Result<Self> {
        let mut rows = Vec::new();
        for order in ORDERS {
            for &threads in counts(is_quick) {
                let sparse = runs.get(&prefault(order, threads, SKIPPED))?;
                rows.push(PrefaultRow {
                    order,
                    threads,
                    faults_per_second: runs.get(&prefault(order, threads, 0))?.faults_per_wall_s(),
                    pages_untouched: sparse.pages_untouched,
                    untouched_percent: 100.0 * sparse.pages_untouched as f64 / sparse.pages_computed as f64,
                });
            }
        }
        Ok(Self { rows, prezero: prezero_table(runs)? })
    }

    fn highest(&self, order: u8) -> f64 {
        let rates = self.rows.iter().filter(|row| row.order == order).map(|row| row.faults_per_second);
        rates.fold(0.0, f64::max)
    }

    pub(super) fn tables(&self) -> [Table; 2] {
        let columns = vec![
            Column::count("prefault_order", "order"),
            Column::count("threads", "threads"),
            Column::ratio("faults_per_second", "faults").with_unit("1/s"),
            Column::ratio("times_without", "times none"),
            Column::count("pages_untouched", "pages untouched"),
            Column::ratio("untouched_percent", "of touched").with_unit("%"),
        ];
        let mut table = Table::new(format!("Prefaulting, {GIB} GB, {STRATEGY} (simulated)"), columns);
        for row in &self.rows {
            let without = self.rows.iter().find(|other| other.order == 0 && other.threads == row.threads);
            table.push(Row::new([
                u64::from(row.order).into(),
                u64::from(row.threads).into(),
                Cell::real(row.faults_per_second, 0),
                without.map_or(Cell::Absent, |base| {
                    Cell::real(row.faults_per_second / base.faults_per_second, 2)
                }),
                row.pages_untouched.into(),
                Cell::real(row.untouched_percent, 1),
            ]));
        }
        table.note(
            "Fault rates are touched pages divided by wall time, as in the published text, although with \
             prefaulting one fault maps up to 2^order pages. The untouched pages are from another run with \
             as many touched pages: a thread touches 48 pages and leaves out 16, again and again. In the \
             main run each thread touches all pages.",
        );
        [table, self.prezero.clone()]
    }

    pub(super) fn sentence(&self) -> String {
        let none = self.highest(0);
        let times = |order| self.highest(order) / none;
        format!(
            "Over all numbers of threads, the highest rate with prefaulting is {:.1} times the highest rate \
             without prefaulting for order 3, and {:.1} times for order 5. The published text says that \
             prefaulting makes the highest rate three times as high. No parameter is fitted on this figure.",
            times(3),
            times(5)
        )
    }

    pub(super) fn figure(&self) -> Figure {
        let mut figure =
            Figure::new(format!("Prefaulting, {GIB} GB on 512 CPUs: faults per second of wall time"));
        let mut panel = Panel::new("", Axis::log("threads", ""), Axis::log("faults", "1/s"));
        let of = |order| self.rows.iter().filter(move |row| row.order == order);
        let claim = CLAIM * self.highest(0);
        let claimed = of(0).map(|row| (f64::from(row.threads), claim)).collect::<Vec<_>>();
        panel.push(Series::new("the text: three-fold", Origin::Published, Mark::Line, claimed));
        for order in ORDERS {
            let name = if order == 0 { "none".to_owned() } else { format!("order {order}") };
            let points: Vec<_> =
                of(order).map(|row| (f64::from(row.threads), row.faults_per_second)).collect();
            panel.push(Series::new(name, Origin::Simulated, Mark::Line, points));
        }
        figure.push(panel);
        figure.note("The line of the published text is three times our highest rate without prefaulting.");
        figure
    }
}

fn prezero_table(runs: &Runs) -> Result<Table> {
    let columns = vec![
        Column::count("threads", "threads"),
        Column::count("lines", "CLine"),
        Column::measure("touch_ns_per_page", "cleared in the fault").with_unit("ns"),
        Column::measure("touch_ns_per_page_prezeroed", "cleared ahead").with_unit("ns"),
        Column::ratio("times_faster", "times as fast"),
    ];
    let mut table = Table::new(format!("Prezeroing, {STRATEGY}: one page (simulated)"), columns);
    for threads in PREZERO_THREADS {
        for lines in LINES {
            let ns = |ahead| {
                Ok::<_, anyhow::Error>(runs.get(&prezero(lines, threads, ahead))?.touch_ns_per_page(threads))
            };
            let (within, ahead) = (ns(false)?, ns(true)?);
            table.push(Row::new([
                u64::from(threads).into(),
                u64::from(lines).into(),
                Cell::real(within, 0),
                Cell::real(ahead, 0),
                Cell::real(within / ahead, 2),
            ]));
        }
    }
    table.note(
        "CLine: number of cache lines that a thread writes in each page. A page has 128 lines of 128 bytes. \
         A page that is cleared during its fault is in the cache afterwards. A page that was cleared ahead \
         comes from memory, line by line. The times of the table do not include the time of clearing ahead.",
    );
    Ok(table)
}
