//! Measures the error of recording only some CPUs: `cargo run --release --example subset FILE...`.
//!
//! The example replays each recording whole, and once for each CPU as if only this CPU had been recorded. It
//! prints the sum of the zone visits over the single CPUs, and the zone visits of the whole recording. The
//! replays are under the recorded kernel's policy and under other policies.

use pageset_core::Policy;
use pageset_replay::{Candidate, ReplayOptions, replay};
use pageset_trace::{Event, LostEvents, TraceError, TraceInfo, TraceReader};

const POLICIES: [&str; 3] = ["linux-6.1", "linux-6.12", "linux-6.18"];

fn main() {
    println!(
        "| recording | CPUs | kernel itself | own, parts | {} |",
        POLICIES.map(|name| format!("{name}, whole | parts")).join(" | ")
    );
    println!("|---|---:|---:|---:|{}", "---:|".repeat(2 * POLICIES.len()));
    let mut off: Vec<(f64, f64)> = Vec::new();
    for path in std::env::args().skip(1) {
        let open = || pageset_trace::open(path.as_ref()).expect("a readable recording");
        let cpus = open().info().machine.as_ref().map_or(1, |machine| machine.cpus);
        let whole = played(open());
        let parts: Vec<Played> =
            (0..cpus).map(|cpu| played(Box::new(OneCpu { reader: open(), cpu: cpu as u16 }))).collect();
        let sum = |of: fn(&Played) -> u64| parts.iter().map(of).sum::<u64>();
        let mut cells = format!("| {} | {} ", sum(|part| part.itself), sum(|part| part.own));
        let ratio = |parts: u64, whole: u64| (parts as f64 + 1.0) / (whole as f64 + 1.0);
        off.push((ratio(sum(|part| part.own), whole.itself), 0.0));
        for (at, whole) in whole.others.iter().enumerate() {
            let parts: u64 = parts.iter().map(|part| part.others[at]).sum();
            off.push((ratio(parts, *whole), 1.0));
            cells += &format!("| {whole} | {parts} ");
        }
        let name = std::path::Path::new(&path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        println!("| {} | {cpus} {cells}|", name.split('.').next().unwrap_or_default());
    }
    for (what, kind) in [("the recorded kernel", 0.0), ("other kernels", 1.0)] {
        let mut factors: Vec<f64> =
            off.iter().filter(|(_, of)| *of == kind).map(|(ratio, _)| ratio.max(1.0 / ratio)).collect();
        factors.sort_by(f64::total_cmp);
        let at = |part: f64| factors.get((part * factors.len() as f64) as usize).copied().unwrap_or(1.0);
        println!(
            "\nparts of {what}: off by a factor of {:.2} in the median, {:.2} in nine tenths, {:.2} at most",
            at(0.5),
            at(0.9),
            factors.last().copied().unwrap_or(1.0)
        );
    }
}

/// Numbers of zone visits in a replay.
struct Played {
    itself: u64,
    own: u64,
    others: Vec<u64>,
}

fn played(mut reader: Box<dyn TraceReader>) -> Played {
    let candidates = POLICIES.map(|name| Candidate::from(*Policy::named(name).expect("a policy")));
    let options = ReplayOptions { candidates: candidates.into(), ..ReplayOptions::default() };
    let replay = replay(reader.as_mut(), &options, |_| {}).expect("a replay");
    Played {
        itself: replay.kernel_itself.visits().expect("what the kernel did"),
        own: replay.own.map_or(0, |own| own.visits()),
        others: replay.outcomes.iter().map(|outcome| outcome.visits()).collect(),
    }
}

/// A recording reduced to one CPU's events.
struct OneCpu {
    reader: Box<dyn TraceReader>,
    cpu: u16,
}

impl TraceReader for OneCpu {
    fn info(&self) -> &TraceInfo {
        self.reader.info()
    }

    fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError> {
        while self.reader.read_block(events)? > 0 {
            events.retain(|event| event.cpu == self.cpu);
            if !events.is_empty() {
                break;
            }
        }
        Ok(events.len())
    }

    fn has_ticks(&mut self, progress: &mut dyn FnMut()) -> Result<bool, TraceError> {
        self.reader.has_ticks(progress)
    }

    fn lost(&self) -> LostEvents {
        self.reader.lost()
    }
}
