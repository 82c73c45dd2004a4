//! Compares the printed tables with simulated values, and computes the errors of the simulated values.

use anyhow::Result;
use pageset_measure::pft::Run;
use pageset_report::Origin;
use pageset_report::comparison::{Comparison, Pair, Quantity};

use super::printed::{MACHINE, PAGES_PER_GIB, PrintedRow, THREADS_OF_LISTING};
use super::runs::{Key, Runs, Wiring};

/// The assumption about the number of threads that ran when a row was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// As many threads run as the row prints.
    Printed,
    /// As many threads run as the row prints, but at most as many as the program of 2005 has room for.
    Listing,
}

impl Reading {
    pub(super) const ALL: [Self; 2] = [Self::Printed, Self::Listing];

    /// Returns the name of the row in the study's tables.
    pub(super) fn name(self, row: &PrintedRow) -> String {
        match self {
            Self::Printed => row.threads.to_string(),
            Self::Listing => format!("{}, {THREADS_OF_LISTING} run", row.threads),
        }
    }
}

/// Returns the simulation of a printed row.
pub(super) fn key(row: &PrintedRow, reading: Reading) -> Key {
    let threads = match reading {
        Reading::Printed => row.threads,
        Reading::Listing => row.threads.min(THREADS_OF_LISTING),
    };
    let pages = u64::from(row.gib) * u64::from(PAGES_PER_GIB) / u64::from(row.threads);
    Key { shared_cache: true, ..Key::new(row.strategy, threads, pages) }
}

/// Returns simulations of a printed row under four changed assumptions. The study simulates changed
/// assumptions only for rows with so few threads that all threads certainly ran.
fn variants(row: &PrintedRow) -> [Key; 4] {
    let key = key(row, Reading::Printed);
    let with_requests = Wiring { has_requests: true, ..key.wiring };
    [
        Key { own_line: true, ..key },
        Key { shared_cache: false, ..key },
        Key { wiring: with_requests, ..key },
        Key { wiring: with_requests, own_line: true, ..key },
    ]
}

/// The assumption that each simulation of [`variants`] changes.
const VARIANTS: [&str; 4] = [
    "As printed, but with the counters on their own cache line",
    "As printed, but if each thread remembered its area itself",
    "As printed, but if waiting CPUs kept sending requests over the planes",
    "As printed, but with waiting CPUs' requests and with the counters on their own cache line",
];

/// Returns the simulations that the tables need.
pub(super) fn keys(rows: &[PrintedRow]) -> Vec<Key> {
    let few = rows.iter().filter(|row| row.threads <= THREADS_OF_LISTING);
    rows.iter()
        .flat_map(|row| Reading::ALL.map(|reading| key(row, reading)))
        .chain(few.flat_map(variants))
        .collect()
}

/// The figures that the original program would have printed for a run. The program's rates are requested
/// pages per second, even if the threads touched fewer pages.
pub(super) struct AsPrinted {
    pub(super) faults_per_cpu_s: f64,
    pub(super) faults_per_wall_s: f64,
    pub(super) busy_cpus: f64,
}

impl AsPrinted {
    pub(super) fn new(row: &PrintedRow, run: &Run) -> Self {
        let pages = row.pages() / f64::from(row.repetitions);
        Self {
            faults_per_cpu_s: pages / run.cpu_s(),
            faults_per_wall_s: pages / run.wall_s(),
            busy_cpus: run.busy_cpus(),
        }
    }
}

/// Makes one comparison for each printed table.
pub(super) fn comparisons(rows: &[PrintedRow], runs: &Runs, fault_ns: f64) -> Result<Vec<Comparison>> {
    rows.chunk_by(|row, next| row.table == next.table).map(|rows| comparison(rows, runs, fault_ns)).collect()
}

fn comparison(rows: &[PrintedRow], runs: &Runs, fault_ns: f64) -> Result<Comparison> {
    let quantities = vec![
        Quantity::relative("flt_per_cpu_s", "flt/cpu/s", "", 0),
        Quantity::relative("fault_per_wsec", "fault/wsec", "", 0),
        Quantity::relative("busy_cpus", "busy CPUs", "", 1),
    ];
    let title = format!("{}, {} GB: {}", words(&rows[0].table), rows[0].gib, rows[0].strategy);
    let mut table = Comparison::new(rows[0].table.clone(), title, MACHINE, quantities);
    if rows.iter().any(|row| row.threads == 1) {
        table.fitted_on(format!("private time of a fault {fault_ns:.0} ns, on fault/wsec of 1 thread"));
    }
    let mut base = None;
    for row in rows {
        let ours = AsPrinted::new(row, runs.get(&key(row, Reading::Printed))?);
        let origin = if row.threads == 1 { Origin::Fitted } else { Origin::Simulated };
        match base {
            None => base = Some(table.push_base(Reading::Printed.name(row), pairs(row, &ours, origin))),
            Some(base) => table.push(Reading::Printed.name(row), base, pairs(row, &ours, origin)),
        }
        if let Some(base) = base.filter(|_| row.threads > THREADS_OF_LISTING) {
            let ours = AsPrinted::new(row, runs.get(&key(row, Reading::Listing))?);
            table.push(Reading::Listing.name(row), base, pairs(row, &ours, origin));
        }
    }
    Ok(table)
}

fn pairs(row: &PrintedRow, ours: &AsPrinted, origin: Origin) -> Vec<Pair> {
    let pair = |printed: f64, ours: f64| Pair::new(Some(printed), Some(ours), origin);
    vec![
        pair(row.faults_per_cpu_s, ours.faults_per_cpu_s),
        pair(row.faults_per_wall_s, ours.faults_per_wall_s),
        pair(row.busy_cpus(), ours.busy_cpus),
    ]
}

fn words(table: &str) -> String {
    let name = table.rsplit_once('_').map_or(table, |(name, _)| name);
    let mut words = name.replace('_', " ");
    words[..1].make_ascii_uppercase();
    words
}

/// The errors of the simulated values in the column fault/wsec, under each assumption about the number of
/// threads.
pub(super) struct Score {
    readings: Vec<ReadingScore>,
}

struct ReadingScore {
    name: String,
    /// Relative errors of all rows except the fitted row.
    errors: Vec<f64>,
    /// Relative errors of the rows of kernels without deltas.
    errors_without_deltas: Vec<f64>,
    /// The simulated value divided by the printed value, for each row without deltas that has 32 threads or
    /// more. The cache line that all threads write limits the rate of rows with 32 threads or more.
    crowded: Vec<f64>,
    /// The error of the worst row, as a factor of at least 1.
    worst: f64,
    steps: Steps,
}

/// Counts of steps. A step is the change from one row of a table to the next row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Steps {
    all: usize,
    agreed: usize,
    /// Number of steps without a printed change. The null model, the forecast that nothing ever changes, is
    /// right for steps without a printed change.
    null_model: usize,
    /// Number of steps with a printed change and a simulated change in the same direction.
    changes_met: usize,
}

impl Steps {
    fn count(&mut self, printed: i8, ours: i8) {
        self.all += 1;
        self.agreed += usize::from(printed == ours);
        self.null_model += usize::from(printed == 0);
        self.changes_met += usize::from(printed != 0 && printed == ours);
    }

    fn sentence(&self) -> String {
        let Self { all, agreed, null_model, changes_met } = self;
        let (changes, only_here) = (all - null_model, null_model - (agreed - changes_met));
        format!(
            "in {agreed} of {all} steps to the next number of threads, our value changes in the printed \
             direction (the forecast that nothing ever changes is right for {null_model} steps; \
             {changes_met} of {changes} printed changes are met, and {only_here} of our changes are not \
             printed)"
        )
    }
}

/// Smallest number of threads at which the cache line that all threads write limits the rate.
const CROWDED: u32 = 32;
/// A change of at most 2 % counts as no change.
const BAND: f64 = 0.02;

impl Score {
    pub(super) fn new(rows: &[PrintedRow], runs: &Runs) -> Result<Self> {
        let least = |row: &&PrintedRow| row.threads <= THREADS_OF_LISTING;
        let (all, few): (Vec<_>, Vec<_>) = (rows.iter().collect(), rows.iter().filter(least).collect());
        let score = |name: String, rows: &[&PrintedRow], key: &dyn Fn(&PrintedRow) -> Key| {
            let ours = |row: &&PrintedRow| Ok(AsPrinted::new(row, runs.get(&key(row))?).faults_per_wall_s);
            ReadingScore::new(name, rows, &rows.iter().map(ours).collect::<Result<Vec<_>>>()?)
        };
        let up_to = format!("up to {THREADS_OF_LISTING} threads");
        let readings = [
            score("As printed".to_owned(), &all, &|row| key(row, Reading::Printed)),
            score(format!("With at most {THREADS_OF_LISTING} threads"), &all, &|row| {
                key(row, Reading::Listing)
            }),
            score(format!("As printed, {up_to}"), &few, &|row| key(row, Reading::Printed)),
        ];
        let variants = VARIANTS
            .iter()
            .enumerate()
            .map(|(index, name)| score(format!("{name}, {up_to}"), &few, &|row| variants(row)[index]));
        Ok(Self { readings: readings.into_iter().chain(variants).collect::<Result<_>>()? })
    }

    pub(super) fn sentences(&self) -> Vec<String> {
        self.readings.iter().map(ReadingScore::sentence).collect()
    }
}

impl ReadingScore {
    fn new(name: String, rows: &[&PrintedRow], ours: &[f64]) -> Result<Self> {
        let error = |(row, ours): (&&PrintedRow, &f64)| (ours / row.faults_per_wall_s - 1.0).abs();
        let predicted = || rows.iter().zip(ours).filter(|(row, _)| row.threads > 1);
        let has_deltas = |row: &PrintedRow| row.table.contains("delta");
        let mut steps = Steps::default();
        for (rows, ours) in rows.windows(2).zip(ours.windows(2)) {
            if rows[0].table == rows[1].table {
                let printed = rows[1].faults_per_wall_s / rows[0].faults_per_wall_s;
                steps.count(direction(printed), direction(ours[1] / ours[0]));
            }
        }
        Ok(Self {
            name,
            errors: predicted().map(error).collect(),
            errors_without_deltas: predicted().filter(|(row, _)| !has_deltas(row)).map(error).collect(),
            crowded: predicted()
                .filter(|(row, _)| row.threads >= CROWDED && !has_deltas(row))
                .map(|(row, ours)| ours / row.faults_per_wall_s)
                .collect(),
            worst: predicted().map(|(row, ours)| factor(ours / row.faults_per_wall_s)).fold(1.0, f64::max),
            steps,
        })
    }

    fn sentence(&self) -> String {
        let factor = median(&self.crowded);
        let rest: Vec<_> = self.crowded.iter().map(|ratio| (ratio / factor - 1.0).abs()).collect();
        let factor = format!(
            "From {CROWDED} threads on, our value is {factor:.2} times the printed value in the median row \
             without deltas. Divided by this factor, our values would be off by {:.0} % in the median row. \
             They are not divided.",
            100.0 * median(&rest)
        );
        format!(
            "{}: fault/wsec is off by {:.0} % in the median row ({:.0} % without the rows of deltas), by a factor of {:.1} in \
             the worst; {}. {factor}",
            self.name,
            100.0 * median(&self.errors),
            100.0 * median(&self.errors_without_deltas),
            self.worst,
            self.steps.sentence()
        )
    }
}

/// Returns the larger number of a ratio and its reciprocal.
fn factor(ratio: f64) -> f64 {
    ratio.max(1.0 / ratio)
}

/// Returns the direction of a change: -1, 0 or 1.
fn direction(ratio: f64) -> i8 {
    if ratio > 1.0 + BAND {
        1
    } else if ratio < 1.0 - BAND {
        -1
    } else {
        0
    }
}

fn median(values: &[f64]) -> f64 {
    pageset_report::Spread::of(values).map_or(f64::NAN, |spread| spread.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_table_are_steps() {
        let rows = super::super::printed::rows().unwrap();
        let rows: Vec<_> = rows.iter().collect();
        let ours: Vec<_> = rows.iter().map(|row| row.faults_per_wall_s * 1.1).collect();
        let score = ReadingScore::new("x".to_owned(), &rows, &ours).unwrap();
        assert_eq!((score.steps.all, score.steps.agreed, score.errors.len()), (25, 25, 30));
        assert!((score.worst - 1.1).abs() < 1e-9);
        assert!((median(&score.errors) - 0.1).abs() < 1e-9);
        assert_eq!([0.97, 0.99, 1.01, 1.03].map(direction), [-1, 0, 0, 1]);
    }

    #[test]
    fn steps_stand_beside_those_of_nothing_ever_changes() {
        let mut steps = Steps::default();
        for (printed, ours) in [(1, 1), (-1, 1), (0, 0), (0, 1), (0, 0)] {
            steps.count(printed, ours);
        }
        assert_eq!(steps, Steps { all: 5, agreed: 3, null_model: 3, changes_met: 1 });
        assert!(steps.sentence().ends_with(
            "right for 3 steps; 1 of 2 printed changes are met, and 1 of our \
         changes are not printed)"
        ));
    }

    #[test]
    fn only_more_threads_than_the_listing_has_are_read_twice() {
        for row in super::super::printed::rows().unwrap() {
            let same = key(&row, Reading::Printed) == key(&row, Reading::Listing);
            assert_eq!(same, row.threads <= 128);
        }
    }
}
