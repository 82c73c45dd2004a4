//! Counts how often forecast intervals contain the true value, for each class of recordings: `cargo run
//! --release --example coverage FOLDER [--rows] [--together] [--before=FILE]`.
//!
//! The recordings in FOLDER are named as for the example `pairs`. In a name without `_rN`, a last part such
//! as `f64` is the setting. From each recording, the example forecasts the zone visits of the same load under
//! each other kernel and setting in FOLDER. Each recording of the same load under the forecast kernel and
//! setting gives one true value (*truth*). A comparison of a forecast with a truth is in the class `machine
//! busy` if the name of one of the two recordings has `.busy`.
//!
//! Prints Markdown: the share of truths that lie in their intervals, the median width of intervals (upper end
//! divided by lower end), and the score. Also counts the truths that lie outside their interval by less than
//! a factor of 2, and lists the ten worst misses. The score is the interval score of the logarithm of visits;
//! lower is better. A score is the logarithm of the width, plus 10 times the logarithmic distance of the
//! truth from the interval. The factor 10 follows from intervals that are meant to contain 80 % of the
//! truths. `--rows` also prints every forecast. `--before=FILE` compares with another version of the replay:
//! FILE has the rows that the other version printed for the same folder. `--together` makes one forecast from
//! all runs of a load under one kernel and setting, as `pageset replay` does for several files.
//!
//! Repeats of one load are not independent, so a class counts each *pair* once: a load, the recorded kernel
//! and setting, and the forecast kernel and setting. A class of at least 40 pairs *may be 80 %* if the
//! binomial interval of its coverage includes 80 %. The confidence level of the binomial interval is 1 - 0.05
//! / the number of classes with at least 40 pairs. With `--before`, the difference between the scores of the
//! two versions has a 95 % interval. A bootstrap that draws loads gives the 95 % interval. In a class with
//! one load, the bootstrap draws pairs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pageset_replay::{
    Candidate, Interval, Replay, ReplayOptions, VmSettings, policy_of_kernel, replay_repeats,
};
use pageset_trace::TraceReader;

/// The part of all true values that should lie outside their 80 % intervals.
const MISSED: f64 = 0.2;
/// Repeated recordings agree if the range of their visits is at most this part of the mean.
const QUIET: f64 = 0.25;

/// Minimum number of pairs in a class whose coverage is judged.
const JUDGED_PAIRS: usize = 40;
/// Number of samples that a bootstrap draws.
const DRAWS: usize = 2000;

/// A load, the kernel and setting of its recording, and the kernel and setting of the forecast.
type Pair = (String, String, String);

#[derive(Default)]
struct Class {
    /// Number of truths whose forecast has no interval.
    silent: usize,
    covered: usize,
    widths: Vec<f64>,
    scores: Vec<f64>,
    /// For each truth outside its interval, the factor between the truth and the interval's nearer end.
    outside: Vec<f64>,
    /// For each pair, the number of truths, and the sums of the scores of this version and of the other
    /// version.
    pairs: BTreeMap<Pair, [f64; 3]>,
}

/// Returns three logarithms: how far a truth lies outside an interval, the interval's width, and the
/// interval's score. The first number is 0 for a truth inside the interval.
fn judged(Interval(low, high): Interval, truth: u64) -> (f64, f64, f64) {
    let log = |value: u64| (value as f64 + 1.0).ln();
    let (low, high, truth) = (log(low), log(high), log(truth));
    let outside = (low - truth).max(truth - high).max(0.0);
    (outside, high - low, high - low + 2.0 / MISSED * outside)
}

impl Class {
    /// Adds a truth. Returns the factor between the truth and the nearer end of the interval, or 1 for a
    /// truth inside the interval.
    fn add(&mut self, pair: &Pair, interval: Interval, before: Option<Interval>, truth: u64) -> f64 {
        let (outside, width, score) = judged(interval, truth);
        if outside > 0.0 {
            self.outside.push(outside.exp());
        } else {
            self.covered += 1;
        }
        self.widths.push(width.exp());
        self.scores.push(score);
        let sums = self.pairs.entry(pair.clone()).or_default();
        let before = before.map_or(0.0, |before| judged(before, truth).2);
        sums.iter_mut().zip([1.0, score, before]).for_each(|(sum, one)| *sum += one);
        outside.exp()
    }

    fn is_judged(&self) -> bool {
        self.pairs.len() >= JUDGED_PAIRS
    }

    /// Whether the binomial interval of the coverage contains 80 %, at the confidence level 1 - `left_out`.
    fn may_be_right(&self, left_out: f64) -> bool {
        let pairs = self.pairs.len();
        let held = (self.covered as f64 / self.scores.len() as f64 * pairs as f64).round() as usize;
        // Compute with logarithms, because the chance that no pair is covered may be too small for a float.
        let mut chance = pairs as f64 * MISSED.ln();
        let (mut up_to, mut at_held) = (0.0, 0.0);
        for count in 0..=held {
            at_held = chance.exp();
            up_to += at_held;
            chance += ((pairs - count) as f64 / (count + 1) as f64 * (1.0 - MISSED) / MISSED).ln();
        }
        let from_on = 1.0 - up_to + at_held;
        up_to.min(from_on) > left_out / 2.0
    }

    /// Returns the mean score of this version minus the mean score of the other version, and the two ends of
    /// the 95 % interval of this difference.
    fn difference(&self) -> (f64, f64, f64) {
        let mut loads: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
        let is_one = self.pairs.keys().all(|pair| pair.0 == self.pairs.keys().next().unwrap().0);
        for ((load, from, to), [truths, now, before]) in &self.pairs {
            let unit = if is_one { format!("{from} {to}").leak() } else { load.as_str() };
            let sums = loads.entry(unit).or_default();
            (sums[0], sums[1]) = (sums[0] + truths, sums[1] + now - before);
        }
        let units: Vec<[f64; 2]> = loads.into_values().collect();
        let mean = |units: &mut dyn Iterator<Item = [f64; 2]>| {
            let [truths, sum] = units.fold([0.0, 0.0], |all, one| [all[0] + one[0], all[1] + one[1]]);
            sum / f64::max(truths, 1.0)
        };
        let mut random = 1;
        let mut draws: Vec<f64> = (0..DRAWS)
            .map(|_| mean(&mut (0..units.len()).map(|_| units[next(&mut random) as usize % units.len()])))
            .collect();
        draws.sort_by(f64::total_cmp);
        (mean(&mut units.iter().copied()), draws[DRAWS / 40], draws[DRAWS - 1 - DRAWS / 40])
    }

    fn print(&mut self, name: &str, left_out: f64, has_before: bool) {
        let truths = self.scores.len();
        if truths == 0 {
            return;
        }
        self.widths.sort_by(f64::total_cmp);
        let part = |count: usize, of: usize| 100.0 * count as f64 / of.max(1) as f64;
        let near = self.outside.iter().filter(|by| **by <= 2.0).count();
        let judged = match self.is_judged() {
            true if self.may_be_right(left_out) => "yes",
            true => "**no**",
            false => "",
        };
        print!(
            "| {name} | {truths} | {} | {} | {:.0} % | {judged} | {:.2} | {:.0} % | {:.2} |",
            self.pairs.len(),
            self.silent,
            part(self.covered, truths),
            self.widths[truths / 2],
            part(near, self.outside.len()),
            self.scores.iter().sum::<f64>() / truths as f64,
        );
        if has_before {
            let (mean, low, high) = self.difference();
            print!(" {mean:+.2} | {low:+.2} to {high:+.2} |");
        }
        println!();
    }
}

/// Returns the next number of a SplitMix64 generator.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// Reads the rows that another version printed. For each pair, returns the intervals in the order of the
/// rows.
fn rows_of(path: &str) -> BTreeMap<Pair, Vec<Interval>> {
    let mut rows: BTreeMap<Pair, Vec<Interval>> = BTreeMap::new();
    for line in std::fs::read_to_string(path).expect("readable rows").lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [load, from, to, _, interval, _] = cells[..] else { continue };
        let ends = interval.split_once(" to ").map(|(low, high)| (low.parse(), high.parse()));
        if let Some((Ok(low), Ok(high))) = ends {
            rows.entry((load.into(), from.into(), to.into())).or_default().push(Interval(low, high));
        }
    }
    rows
}

/// One recording of a load.
struct Run {
    kernel: String,
    setting: String,
    path: PathBuf,
    is_busy: bool,
}

/// Splits a recording's file name, without its endings, into kernel, load and setting.
fn parts(stem: &str) -> Option<(&str, &str, &str)> {
    let (kernel, rest) = stem.split_once('_')?;
    let number = |text: &str| text.parse::<u32>().is_ok();
    match rest.rsplit_once("_r").filter(|(_, run)| number(run)) {
        Some((load, _)) => {
            let (load, setting) = load.rsplit_once('_').unwrap_or((load, ""));
            Some((kernel, load, setting))
        }
        None => {
            let of = rest.rsplit_once('_');
            let of = of.filter(|(_, setting)| setting.strip_prefix('f').is_some_and(number));
            let (load, setting) = of.unwrap_or((rest, ""));
            Some((kernel, load, setting))
        }
    }
}

fn main() {
    let (flags, folders): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|arg| arg.starts_with("--"));
    let folder = folders.first().expect("a folder of recordings");
    let is_asked = |flag: &str| flags.iter().any(|arg| arg == flag);
    let (prints_rows, is_together) = (is_asked("--rows"), is_asked("--together"));
    let before = flags.iter().find_map(|flag| flag.strip_prefix("--before=")).map(rows_of);
    let mut loads: BTreeMap<(u64, String), Vec<Run>> = BTreeMap::new();
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_recording = name.ends_with(".pgtrace");
        let stem = name.split('.').next().unwrap_or_default();
        let Some((kernel, load, setting)) = parts(stem).filter(|_| is_recording) else { continue };
        let zones =
            |machine: &pageset_trace::Layout| machine.zones.iter().map(|zone| zone.managed).sum::<u64>();
        let managed = open(&path).info().machine.as_ref().map_or(0, zones) >> 16;
        let run =
            Run { kernel: kernel.into(), setting: setting.into(), is_busy: name.contains(".busy"), path };
        loads.entry((managed, load.into())).or_default().push(run);
    }
    if prints_rows {
        println!("| load | from | to | forecast | interval | truths |\n|---|---|---|---:|---|---|");
    }
    let mut classes: BTreeMap<String, Class> = BTreeMap::new();
    let mut worst = Vec::new();
    for ((_, load), runs) in &loads {
        let mut groups: BTreeMap<(&str, &str), Vec<&Run>> = BTreeMap::new();
        for run in runs {
            groups.entry((&run.kernel, &run.setting)).or_default().push(run);
        }
        let mut forecasts = Vec::new();
        let mut truths: BTreeMap<(&str, &str), Vec<(u64, bool)>> = BTreeMap::new();
        for run in runs {
            let own = (run.kernel.as_str(), run.setting.as_str());
            // With `--together`, the runs of a group make one forecast. Count this forecast only for the
            // first run.
            let is_counted = !is_together || groups[&own][0].path == run.path;
            let others: Vec<_> = groups.iter().filter(|(group, _)| is_counted && **group != own).collect();
            let candidates = others.iter().map(|(_, to)| candidate(&run.path, &to[0].path)).collect();
            let siblings = groups[&own].iter().filter(|_| is_together && is_counted).skip(1);
            let siblings: Vec<_> = siblings.map(|sibling| open(&sibling.path)).collect();
            let Some(done) = replayed(&run.path, siblings, candidates) else { continue };
            if let Some(visits) = done.kernel_itself.visits() {
                truths.entry(own).or_default().push((visits, run.is_busy));
            }
            for ((group, _), outcome) in others.iter().zip(done.outcomes) {
                let interval = outcome.interval.map(|interval| interval.visits);
                forecasts.push((run, **group, outcome.visits(), interval));
            }
        }
        let mut seen: BTreeMap<Pair, usize> = BTreeMap::new();
        for (run, group, forecast, interval) in forecasts {
            let Some(truths) = truths.get(&group) else { continue };
            let visits: Vec<u64> = truths.iter().map(|(visits, _)| *visits).collect();
            let from = format!("{} {}", run.kernel, run.setting);
            let to = format!("{} {}", group.0, group.1);
            let pair = (load.clone(), from.trim().to_owned(), to.trim().to_owned());
            let nth = seen.entry(pair.clone()).or_default();
            let was = before.as_ref().map(|rows| rows[&pair][*nth]);
            *nth += 1;
            if prints_rows {
                let ends = interval.map_or_else(String::new, |ends| format!("{} to {}", ends.0, ends.1));
                println!("| {load} | {from} | {to} | {forecast} | {ends} | {visits:?} |");
            }
            for (truth, is_busy) in truths {
                let mut names = vec!["all".to_owned(), format!("kernel {}", group.0), format!("load {load}")];
                names.push(format!("setting {}", group.1));
                names.push(if run.kernel == group.0 { "same kernel" } else { "another kernel" }.into());
                names.push(if run.is_busy || *is_busy { "machine busy" } else { "machine quiet" }.into());
                names.extend(agreement(&visits).map(str::to_owned));
                names.extend(interval.map(width).map(str::to_owned));
                if interval.is_some_and(|interval| !interval.is_wide()) {
                    names.push("not wide".into());
                    names.extend(agreement(&visits).map(|agreement| format!("not wide, {agreement}")));
                }
                let mut by = 1.0_f64;
                for name in names {
                    let class = classes.entry(name).or_default();
                    match interval {
                        Some(interval) => by = class.add(&pair, interval, was, *truth),
                        None => class.silent += 1,
                    }
                }
                if let Some(Interval(low, high)) = interval.filter(|_| by > 1.0) {
                    worst.push((by, format!("{load}, {from} to {to}: {low} to {high}, and it was {truth}")));
                }
            }
        }
    }
    let (compared, rule) = match before {
        Some(_) => (" less before | 95 % |", "---:|---:|"),
        None => ("", ""),
    };
    println!(
        "\n| class | truths | pairs | no interval | covered | may be 80 % | width, median \
         | outside: within a factor of 2 | score |{compared}\n|---|---:|---:|---:|---:|---|---:|---:|---:|{rule}"
    );
    let judged = classes.values().filter(|class| class.is_judged()).count();
    let left_out = 0.05 / judged.max(1) as f64;
    classes.iter_mut().for_each(|(name, class)| class.print(name, left_out, before.is_some()));
    worst.sort_by(|a, b| b.0.total_cmp(&a.0));
    println!("\nThe ten truths that lie furthest outside, by the factor from the nearer end:\n");
    worst.iter().take(10).for_each(|(by, what)| println!("- {by:.1}: {what}"));
}

/// Says whether the visits of a load's repeats agree. `None` for a single run.
fn agreement(visits: &[u64]) -> Option<&'static str> {
    let range = visits.iter().max()? - visits.iter().min()?;
    let mean = visits.iter().sum::<u64>() as f64 / visits.len() as f64;
    let agree = range as f64 <= QUIET * mean.max(1.0);
    (visits.len() > 1).then_some(if agree { "repeats agree" } else { "repeats differ" })
}

fn width(Interval(low, high): Interval) -> &'static str {
    match (high as f64 + 1.0) / (low as f64 + 1.0) {
        width if width < 1.15 => "width below 1.15",
        width if width < 2.0 => "width to 2",
        width if width < 10.0 => "width to 10",
        _ => "width above 10",
    }
}

/// Returns the kernel and settings of the recording `to`, as a candidate for a replay of the recording
/// `from`.
fn candidate(from: &Path, to: &Path) -> Candidate {
    let (from, to) = (open(from), open(to));
    let machine = to.info().machine.as_ref().expect("a recording of this project describes its machine");
    let kernel = to.info().kernel.as_ref().unwrap_or(&machine.kernel);
    let policy = *policy_of_kernel(kernel).expect("a known kernel");
    let settings = from.info().machine.as_ref().map(|from| VmSettings::between(from, machine));
    Candidate { policy, settings: settings.unwrap_or_default() }
}

/// Replays a recording. If the replay fails, prints the error to standard error and returns `None`.
fn replayed(
    path: &Path,
    mut repeats: Vec<Box<dyn TraceReader>>,
    candidates: Vec<Candidate>,
) -> Option<Replay> {
    let options = ReplayOptions { candidates, ..ReplayOptions::default() };
    let done = replay_repeats(open(path).as_mut(), &mut repeats, &options, |_| {});
    done.inspect_err(|error| eprintln!("{}: {error}", path.display())).ok()
}

fn open(path: &Path) -> Box<dyn TraceReader> {
    pageset_trace::open(path).expect("a readable recording")
}
