//! Replays a recording under every policy and prints rows and speed: `cargo run --profile dist --example replay_speed FILE`.

use std::time::Instant;

use pageset_core::POLICIES;
use pageset_workload::{Candidate, ReplayOptions, replay};

fn main() {
    for path in std::env::args().skip(1) {
        for policies in POLICIES.iter().map(|policy| vec![*policy]).chain([POLICIES.to_vec()]) {
            let begin = Instant::now();
            let mut reader = pageset_trace::open(path.as_ref()).expect("a readable recording");
            let candidates = policies.into_iter().map(Candidate::from).collect();
            let options = ReplayOptions { candidates, ..ReplayOptions::default() };
            let replay = replay(reader.as_mut(), &options, |_| {}).expect("a replay");
            let seconds = begin.elapsed().as_secs_f64();
            let rate = replay.events as f64 / seconds / 1e6;
            println!("{path}: {} events in {seconds:.3} s: {rate:.1} million/s", replay.events);
            for outcome in &replay.outcomes {
                println!("  {outcome:?}");
            }
            println!("  {:?} {:?} {:?}", replay.unreplayed, replay.unseen, replay.lost);
        }
    }
}
