//! Every forecast that a folder of recordings can check: `cargo run --release --example pairs FOLDER`.
//!
//! The folder has recordings of loads under several kernels and settings, several times each, called
//! `KERNEL_LOAD_SETTING_rN.*` by whoever recorded them. Each load under each kernel and setting is predicted from each other
//! one on the same machine. Prints Markdown: the sums of all, then one row a pair.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pageset_trace::TraceReader;
use pageset_workload::{Change, against};

/// Repeats that agree within this say what is true; others span a range.
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
        if !name.contains(".pcpt") && !name.ends_with(".pgtrace") {
            continue;
        }
        let stem = name.split('.').next().unwrap_or_default();
        let parts: Vec<&str> = stem.split('_').collect();
        let [kernel, load, setting, _] = parts[..] else { continue };
        let managed = open(&path)
            .info()
            .machine
            .as_ref()
            .map_or(0, |machine| machine.zones.iter().map(|zone| zone.managed).sum::<u64>() >> 16);
        let group = loads.entry((managed, load.to_owned())).or_default();
        group.entry((kernel.to_owned(), setting.to_owned())).or_default().push(path);
    }
    let (mut rows, mut sums) = (Vec::new(), Sums::default());
    for ((_, load), group) in &loads {
        for (a, from) in group {
            for (b, to) in group.iter().filter(|(b, _)| *b != a) {
                let open_all = |paths: &[PathBuf]| paths.iter().map(|path| open(path)).collect::<Vec<_>>();
                let found =
                    against(&mut open_all(from), &mut open_all(to)).expect("recordings of known kernels");
                sums.add(&found.changes);
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
    println!("| load | from | to | was | is | predicted | interval | noise | off by | covered |");
    println!("|---|---|---|---:|---:|---:|---|---:|---:|---:|");
    rows.iter().for_each(|row| println!("{row}"));
}

fn open(path: &Path) -> Box<dyn TraceReader> {
    pageset_trace::open(path).expect("a readable recording")
}

/// What all pairs have in common, for pairs whose repeats agree and for others.
#[derive(Default)]
struct Sums {
    off_by: [Vec<f64>; 2],
    widths: [Vec<f64>; 2],
    covered: [(u64, u64); 2],
    directions: (u64, u64),
}

impl Sums {
    fn add(&mut self, changes: &[Change]) {
        for change in changes {
            let kind = usize::from(change.noise > QUIET);
            if change.quantity == "visits" {
                self.off_by[kind].push(change.off_by());
                let beyond = (change.real_ratio() - 1.0).abs() > change.noise.max(QUIET);
                if beyond {
                    let right = (change.real_ratio() > 1.0) == (change.predicted_ratio() > 1.0);
                    self.directions = (self.directions.0 + u64::from(right), self.directions.1 + 1);
                }
                if let (Some((low, high)), Some(covered)) = (change.interval, change.covered) {
                    self.widths[kind].push((high + 1.0) / (low + 1.0));
                    self.covered[kind].0 += covered.0;
                    self.covered[kind].1 += covered.1;
                }
            }
        }
    }

    fn print(&mut self) {
        println!(
            "| visits, in pairs whose repeats | pairs | off by, median | nine tenths | worst | covered | width, median |"
        );
        println!("|---|---:|---:|---:|---:|---:|---:|");
        for (kind, what) in ["agree within 25 %", "do not"].into_iter().enumerate() {
            let (off, widths) = (sorted(&mut self.off_by[kind]), sorted(&mut self.widths[kind]));
            let (covered, all) = self.covered[kind];
            println!(
                "| {what} | {} | {:.2} | {:.2} | {:.2} | {:.0} % | {:.2} |",
                off.len(),
                at(off, 0.5),
                at(off, 0.9),
                at(off, 1.0),
                100.0 * covered as f64 / all.max(1) as f64,
                at(widths, 0.5)
            );
        }
        println!(
            "\nDirection right where the change exceeds noise and 25 %: {} of {}.\n",
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
