//! Compares replays with the kernels that were recorded: `cargo run --release --example forecasts FILE...`.
//!
//! Replays each recording under its own kernel's policy. Prints the totals of the kernel and of the replay,
//! and the replay's errors over all recordings.

use pageset_replay::{Outcome, ReplayOptions, replay};

fn main() {
    let mut errors: [Vec<f64>; 3] = Default::default();
    for path in std::env::args().skip(1) {
        let mut reader = pageset_trace::open(path.as_ref()).expect("a readable recording");
        let replay = replay(reader.as_mut(), &ReplayOptions::default(), |_| {}).expect("a replay");
        let (kernel, Some(own)) = (replay.kernel_itself, replay.own) else { continue };
        // A replay has an own row only if the recording has all of the kernel's refills and drains.
        let kernel = [kernel.refills, kernel.refilled_pages, kernel.drains, kernel.drained_pages]
            .map(|count| count.unwrap_or(0));
        let Outcome { refills, refilled_pages, drains, drained_pages, .. } = own;
        let replayed = [refills, refilled_pages, drains, drained_pages];
        println!("{path}");
        for (who, totals) in [("kernel", kernel), ("replay", replayed)] {
            let [refills, refilled_pages, drains, drained_pages] = totals;
            println!(
                "  {who} {refills:7} refills {refilled_pages:9} pages {drains:7} drains {drained_pages:9} pages"
            );
        }
        let off = |ours: u64, truth: u64| (ours as f64 - truth as f64).abs() / truth.max(1) as f64;
        errors[0].push(off(replayed[1], kernel[1]));
        errors[1].push(off(replayed[3], kernel[3]));
        errors[2].push(off(replayed[0] + replayed[2], kernel[0] + kernel[2]));
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
