//! Forecasts each load of a folder under another kernel or setting, and compares the forecast with recordings
//! under that kernel or setting: `cargo run --release --example pairs FOLDER`.
//!
//! The folder has recordings of loads under several kernels and settings. A file is called
//! `KERNEL_LOAD_SETTING_rN.pgtrace` if the folder has several runs of the load under the same kernel and
//! setting, and otherwise `KERNEL_LOAD.pgtrace`. The recordings of a load under one kernel and setting
//! forecast the load under each other kernel and setting, if both machines have about the same amount of
//! memory. A pair is a load with its recorded and its forecast kernel and setting. The example prints
//! Markdown: sums over all pairs, and a row for each pair. If repeats of a load differ, it also prints how
//! often one repeat forecasts the other repeats.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pageset_replay::{Change, KernelTotals, against};
use pageset_trace::TraceReader;

/// Repeated recordings agree if the range of their visits is at most this part of the mean. The example
/// counts whether the forecast direction is right only if visits change by more than this part.
const QUIET: f64 = 0.25;

type Group = BTreeMap<(String, String), Vec<PathBuf>>;

fn main() {
    let folder = std::env::args().nth(1).expect("a folder of recordings");
    let mut loads: BTreeMap<(u64, String), Group> = BTreeMap::new();
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.ends_with(".pgtrace") {
            continue;
        }
        let stem = name.split('.').next().unwrap_or_default();
        let Some((kernel, load)) = stem.split_once('_') else { continue };
        let (load, setting) = match load.rsplit_once("_r") {
            Some((load, _)) => load.rsplit_once('_').unwrap_or((load, "")),
            None => (load, ""),
        };
        let managed = open(&path)
            .info()
            .machine
            .as_ref()
            .map_or(0, |machine| machine.zones.iter().map(|zone| zone.managed).sum::<u64>() >> 16);
        let group = loads.entry((managed, load.to_owned())).or_default();
        group.entry((kernel.to_owned(), setting.to_owned())).or_default().push(path);
    }
    let (mut rows, mut sums) = (Vec::new(), Sums::default());
    let mut repeats = BTreeMap::new();
    for ((managed, load), group) in &loads {
        for (a, from) in group {
            for (b, to) in group.iter().filter(|(b, _)| *b != a) {
                let open_all = |paths: &[PathBuf]| paths.iter().map(|path| open(path)).collect::<Vec<_>>();
                let found =
                    against(&mut open_all(from), &mut open_all(to)).expect("recordings of known kernels");
                let (was, is) = (visits_of(&found.from.runs), visits_of(&found.to.runs));
                sums.add(&found.changes, &was, &is);
                repeats.insert((*managed, load, b), is);
                let visits =
                    found.changes.iter().find(|change| change.quantity == "visits").expect("one of them");
                let (low, high) = visits.interval.expect("visits have one");
                rows.push(format!(
                    "| {load} | {} {} | {} {} | {:.0} | {:.0} | {:.0} | {:.0}-{:.0} | {:.0} % | {:.2} | {} |",
                    a.0,
                    a.1,
                    b.0,
                    b.1,
                    visits.from,
                    visits.to,
                    visits.predicted,
                    low,
                    high,
                    visits.noise * 100.0,
                    visits.off_by(),
                    visits.covered.map_or(String::new(), |(covered, all)| format!("{covered}/{all}")),
                ));
            }
        }
    }
    sums.print();
    print_repeats(&repeats.into_values().collect::<Vec<_>>());
    println!("| load | from | to | was | is | predicted | interval | noise | off by | covered |");
    println!("|---|---|---|---:|---:|---:|---|---:|---:|---:|");
    rows.iter().for_each(|row| println!("{row}"));
}

fn open(path: &Path) -> Box<dyn TraceReader> {
    pageset_trace::open(path).expect("a readable recording")
}

fn visits_of(runs: &[KernelTotals]) -> Vec<u64> {
    runs.iter().filter_map(KernelTotals::visits).collect()
}

/// Returns the smallest and the largest value.
fn range(values: &[u64]) -> (u64, u64) {
    let least = values.iter().copied().min().unwrap_or(0);
    (least, values.iter().copied().max().unwrap_or(0))
}

/// Prints how often an interval around one run holds the other runs of the same load under the same kernel
/// and settings, for intervals of several widths. Loads with repeats that agree are left out. Such a forecast
/// is wrong only because runs of a load differ.
fn print_repeats(groups: &[Vec<u64>]) {
    let noisy = groups.iter().filter(|runs| {
        let mean = runs.iter().sum::<u64>() as f64 / runs.len().max(1) as f64;
        let (least, most) = range(runs);
        runs.len() > 1 && (most - least) as f64 / mean.max(1.0) > QUIET
    });
    let noisy: Vec<_> = noisy.collect();
    if noisy.is_empty() {
        return;
    }
    println!("| one repeat as the forecast of the others, times and by | covered | width by range, median |");
    println!("|---:|---:|---:|");
    for factor in [1.5, 2.0, 3.0, 4.0, 5.0] {
        let interval = |run: u64| {
            let run = run as f64 + 1.0;
            ((run / factor - 1.0).max(0.0).floor(), (run * factor - 1.0).ceil())
        };
        let (mut covered, mut all, mut widths) = (0_u32, 0_u32, Vec::new());
        for runs in &noisy {
            for (at, run) in runs.iter().enumerate() {
                let (low, high) = interval(*run);
                let others = runs.iter().enumerate().filter(|(other, _)| *other != at);
                let inside = others.filter(|(_, other)| (low..=high).contains(&(**other as f64))).count();
                covered += inside as u32;
                all += runs.len() as u32 - 1;
            }
            let (least, most) = range(runs);
            let widths_of = runs.iter().map(|run| interval(*run).1 - interval(*run).0);
            widths.push(widths_of.sum::<f64>() / runs.len() as f64 / (most - least).max(1) as f64);
        }
        let share = 100.0 * f64::from(covered) / f64::from(all.max(1));
        println!("| {factor} | {share:.0} % | {:.1} |", at(sorted(&mut widths), 0.5));
    }
    println!();
}

/// Sums over all pairs, separately for pairs whose repeats agree and for pairs whose repeats differ.
#[derive(Default)]
struct Sums {
    off_by: [Vec<f64>; 2],
    widths: [Vec<f64>; 2],
    widths_by_range: [Vec<f64>; 2],
    covered: [(u64, u64); 2],
    directions: (u64, u64),
}

impl Sums {
    fn add(&mut self, changes: &[Change], was: &[u64], is: &[u64]) {
        let (was, is) = (range(was), range(is));
        for change in changes {
            let kind = usize::from(change.noise > QUIET);
            if change.quantity == "visits" {
                self.off_by[kind].push(change.off_by());
                let apart = was.1 < is.0 || is.1 < was.0;
                if apart && (change.real_ratio() - 1.0).abs() > QUIET {
                    let right = (change.real_ratio() > 1.0) == (change.predicted_ratio() > 1.0);
                    self.directions = (self.directions.0 + u64::from(right), self.directions.1 + 1);
                }
                if let (Some((low, high)), Some(covered)) = (change.interval, change.covered) {
                    self.widths[kind].push((high + 1.0) / (low + 1.0));
                    self.widths_by_range[kind].push((high - low) / (is.1 - is.0).max(1) as f64);
                    self.covered[kind].0 += covered.0;
                    self.covered[kind].1 += covered.1;
                }
            }
        }
    }

    fn print(&mut self) {
        println!(
            "| visits, in pairs whose repeats | pairs | off by, median | nine tenths | worst | covered | width, median | width by range, median |"
        );
        println!("|---|---:|---:|---:|---:|---:|---:|---:|");
        for (kind, what) in ["agree within 25 %", "do not"].into_iter().enumerate() {
            let (off, widths) = (sorted(&mut self.off_by[kind]), sorted(&mut self.widths[kind]));
            let by_range = sorted(&mut self.widths_by_range[kind]);
            let (covered, all) = self.covered[kind];
            println!(
                "| {what} | {} | {:.2} | {:.2} | {:.2} | {:.0} % | {:.2} | {:.1} |",
                off.len(),
                at(off, 0.5),
                at(off, 0.9),
                at(off, 1.0),
                100.0 * covered as f64 / all.max(1) as f64,
                at(widths, 0.5),
                at(by_range, 0.5)
            );
        }
        println!(
            "\nDirection right where the runs' ranges are apart and their means by 25 %: {} of {}.\n",
            self.directions.0, self.directions.1
        );
    }
}

fn sorted(values: &mut [f64]) -> &[f64] {
    values.sort_by(f64::total_cmp);
    values
}

fn at(sorted: &[f64], part: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get(((part * sorted.len() as f64) as usize).min(last)).copied().unwrap_or(0.0)
}
