//! Tests that a play with reported steps has the counts of a replay.

use pageset_replay::{Candidate, Made, ReplayError, ReplayOptions, Steps, replay};
use pageset_trace::OpenOptions;

use pageset_core::POLICIES;

fn recording() -> Box<dyn pageset_trace::TraceReader> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/traces/k612_8c_unix_stream.pgtrace");
    OpenOptions::new().open(path.as_ref()).unwrap()
}

#[test]
fn steps_make_the_refills_and_drains_of_the_row() {
    let named = |name: &str| POLICIES.iter().find(|policy| policy.name == name).copied().unwrap();
    // Play two policies. Under the recorded kernel's policy, page sets begin as recorded. Under the other
    // policy, page sets begin in their steady state.
    let candidates: Vec<_> = ["linux-6.12", "linux-6.6"].map(named).map(Candidate::from).into();
    let options = ReplayOptions { candidates: candidates.clone(), ..ReplayOptions::default() };
    let rows = replay(recording().as_mut(), &options, |_| {}).unwrap();
    assert_eq!(rows.window.skipped, 0, "all is counted");
    let steps = Steps::read(recording().as_mut(), None, |_| {}).unwrap();
    for (candidate, row) in candidates.iter().zip(&rows.outcomes) {
        let (mut refills, mut drains, mut last_ns) = ((0, 0), (0, 0), 0);
        let play = steps.play::<ReplayError>(candidate, |step| {
            assert!(step.at_ns >= last_ns && step.count >= 0);
            last_ns = step.at_ns;
            let (sum, moved) = match step.made {
                Some(Made::Refill { pages, .. }) => (&mut refills, pages),
                Some(Made::Drain { pages, .. }) => (&mut drains, pages),
                None => return Ok(()),
            };
            *sum = (sum.0 + 1, sum.1 + moved);
            Ok(())
        });
        play.unwrap();
        assert_eq!(refills, (row.refills, row.refilled_pages), "{}", row.policy);
        assert!(row.drains > 0, "expected decisions that the test can compare");
        assert_eq!(drains.1, row.drained_pages, "{}", row.policy);
        assert_eq!(drains.0, row.drains, "{}", row.policy);
    }
}
