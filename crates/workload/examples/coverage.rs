//! How often intervals hold what happened, by class: `cargo run --release --example coverage FOLDER`.
//!
//! The folder is one of recordings as for the example `pairs`. Each recording forecasts the visits of the same load under each
//! other kernel and setting; each run of those is one truth. Prints Markdown: coverage, median width (upper end by lower
//! end), and the interval score of the logarithm of visits, lower is better: width, and 10 times the distance of each truth
//! that lies outside, since intervals are meant to hold 80 %.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pageset_trace::TraceReader;
use pageset_workload::{KernelTotals, against};

/// The part that intervals are meant to miss.
const MISSED: f64 = 0.2;

#[derive(Default)]
struct Class {
    covered: u32,
    widths: Vec<f64>,
    scores: Vec<f64>,
    /// For each truth outside: its distance from the nearer end.
    outside: Vec<f64>,
}

impl Class {
    fn add(&mut self, (low, high): (f64, f64), truth: u64) {
        let log = |value: f64| (value + 1.0).ln();
        let (low, high, truth) = (log(low), log(high), log(truth as f64));
        let outside = (low - truth).max(truth - high).max(0.0);
        self.covered += u32::from(outside == 0.0);
        if outside > 0.0 {
            self.outside.push(outside.exp());
        }
        self.widths.push((high - low).exp());
        self.scores.push(high - low + 2.0 / MISSED * outside);
    }

    fn row(&mut self, name: &str) {
        let n = self.scores.len();
        self.widths.sort_by(f64::total_cmp);
        self.outside.sort_by(f64::total_cmp);
        let score = self.scores.iter().sum::<f64>() / n.max(1) as f64;
        let at = |values: &[f64], part: f64| {
            values.get((part * values.len() as f64) as usize).copied().unwrap_or(1.0)
        };
        println!(
            "| {name} | {n} | {:.0} % | {:.2} | {score:.2} | {:.2} |",
            100.0 * f64::from(self.covered) / n.max(1) as f64,
            at(&self.widths, 0.5),
            at(&self.outside, 0.95),
        );
    }
}

fn main() {
    let folder = std::env::args().nth(1).expect("a folder of recordings");
    let mut loads: BTreeMap<(u64, String), Vec<(String, PathBuf)>> = BTreeMap::new();
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let stem = name.split('.').next().unwrap_or_default();
        let is_recording = name.contains(".pcpt") || name.ends_with(".pgtrace");
        let Some((kernel, rest)) = stem.split_once('_').filter(|_| is_recording) else { continue };
        let Some((load, _)) = rest.rsplit_once("_r") else { continue };
        let (load, setting) = load.rsplit_once('_').unwrap_or((load, ""));
        let zones =
            |machine: &pageset_trace::Layout| machine.zones.iter().map(|zone| zone.managed).sum::<u64>();
        let managed = open(&path).info().machine.as_ref().map_or(0, zones) >> 16;
        loads.entry((managed, load.into())).or_default().push((format!("{kernel} {setting}"), path));
    }
    let mut classes: BTreeMap<String, Class> = BTreeMap::new();
    for ((_, load), runs) in &loads {
        for (was, from) in runs {
            let mut others: BTreeMap<&str, Vec<Box<dyn TraceReader>>> = BTreeMap::new();
            for (is, path) in runs.iter().filter(|(is, _)| is != was) {
                others.entry(is).or_default().push(open(path));
            }
            for (is, mut to) in others {
                let found = against(&mut [open(from)], &mut to).expect("recordings of known kernels");
                let visits = found.changes.iter().find(|change| change.quantity == "visits");
                let (low, high) = visits.and_then(|visits| visits.interval).expect("visits have one");
                let width = match (high + 1.0) / (low + 1.0) {
                    width if width < 1.15 => "width below 1.15",
                    width if width < 2.0 => "width to 2",
                    width if width < 10.0 => "width to 10",
                    _ => "width above 10",
                };
                let (kernel, setting) = is.split_once(' ').unwrap_or((is, ""));
                let names = ["all".into(), format!("kernel {kernel}"), format!("load {load}")];
                let names = names.into_iter().chain([format!("setting {setting}"), width.into()]);
                for name in names {
                    let class = classes.entry(name).or_default();
                    let truths = found.to.runs.iter().filter_map(KernelTotals::visits);
                    truths.for_each(|truth| class.add((low, high), truth));
                }
            }
        }
    }
    println!("| class | forecasts | covered | width, median | score | outside by, 95 % |");
    println!("|---|---:|---:|---:|---:|---:|");
    classes.iter_mut().for_each(|(name, class)| class.row(name));
}

fn open(path: &Path) -> Box<dyn TraceReader> {
    pageset_trace::open(path).expect("a readable recording")
}
