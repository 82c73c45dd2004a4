//! How far replays are from the kernels that were recorded: `cargo run --release --example forecasts FILE...`.
//!
//! Each recording is replayed under its own kernel's policy; printed are both totals, and the errors of all together.

use pageset_workload::{KernelTotals, ReplayOptions, replay};

fn main() {
    let mut errors: [Vec<f64>; 3] = Default::default();
    for path in std::env::args().skip(1) {
        let mut reader = pageset_trace::open(path.as_ref()).expect("a readable recording");
        let replay = replay(reader.as_mut(), &ReplayOptions::default(), |_| {}).expect("a replay");
        let (kernel, Some(own)) = (replay.kernel_itself, replay.own) else { continue };
        let replayed = KernelTotals {
            refills: own.refills,
            refilled_pages: own.refilled_pages,
            drains: own.drains,
            drained_pages: own.drained_pages,
        };
        println!("{path}");
        for (who, totals) in [("kernel", kernel), ("replay", replayed)] {
            let KernelTotals { refills, refilled_pages, drains, drained_pages } = totals;
            println!(
                "  {who} {refills:7} refills {refilled_pages:9} pages {drains:7} drains {drained_pages:9} pages"
            );
        }
        let off = |ours: u64, truth: u64| (ours as f64 - truth as f64).abs() / truth.max(1) as f64;
        errors[0].push(off(replayed.refilled_pages, kernel.refilled_pages));
        errors[1].push(off(replayed.drained_pages, kernel.drained_pages));
        errors[2].push(off(replayed.visits(), kernel.visits()));
        println!("  {:?} {:?}", replay.unseen, replay.unreplayed);
    }
    for (what, mut errors) in ["refilled pages", "drained pages", "visits"].into_iter().zip(errors) {
        errors.sort_by(f64::total_cmp);
        let at =
            |part: f64| errors.get((part * errors.len() as f64) as usize).copied().unwrap_or(0.0) * 100.0;
        let worst = errors.last().copied().unwrap_or(0.0) * 100.0;
        println!(
            "{what}: off by {:.1} % in the median, {:.1} % in nine tenths, {worst:.1} % at most",
            at(0.5),
            at(0.9)
        );
    }
}
