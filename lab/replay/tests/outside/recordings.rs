//! Tests replays of bundled recordings. For example, every event must be counted, and two replays must be
//! equal. For the recording of a kernel build, counts must change in the directions that the tables of the
//! 2023 series show.

use std::mem::discriminant;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

use pageset_core::{POLICIES, Policy};
use pageset_replay::{
    Candidate, Intervals, Outcome, Replay, ReplayError, ReplayOptions, Stage, VmSettings, against,
    guess_layout, replay, replay_repeats, replayable,
};
use pageset_trace::{EventKind, TraceReader};

fn bundled(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../data").join(name)
}

fn open(name: &str) -> Box<dyn TraceReader> {
    pageset_trace::open(&bundled(name)).unwrap()
}

fn asking(policies: &[Policy]) -> ReplayOptions {
    let candidates = policies.iter().copied().map(Candidate::from).collect();
    ReplayOptions { candidates, ..ReplayOptions::default() }
}

#[track_caller]
fn replayed(name: &str, policies: &[Policy]) -> Replay {
    replayed_with(name, asking(policies))
}

#[track_caller]
fn replayed_with(name: &str, options: ReplayOptions) -> Replay {
    replay(open(name).as_mut(), &options, |_| {}).unwrap()
}

const SMALL: [&str; 4] = [
    "traces/k612_2c_tcp.pgtrace",
    "traces/k61_2c_unix_stream.pgtrace",
    "traces/k612_4c_2node_numa_tcp.pgtrace",
    "traces/k618_2c_hackbench_sock.pgtrace",
];

/// Counts allocations, pages of bulk allocations, and frees in the recording's own events.
fn counted(name: &str) -> (u64, u64, u64) {
    let (mut allocs, mut bulk, mut frees) = (0, 0, 0);
    let (mut reader, mut events) = (open(name), Vec::new());
    while reader.read_block(&mut events).unwrap() > 0 {
        for event in &events {
            match event.kind {
                EventKind::MmPageAlloc => allocs += u64::from(event.frame().is_some()),
                EventKind::BulkAllocReturn => bulk += event.bulk_frames().unwrap(),
                EventKind::MmPageFree => frees += 1,
                _ => {}
            }
        }
    }
    (allocs, bulk, frees)
}

/// Tests that the largest reported number of played acts equals the total, also among the reports before the
/// last report.
#[test]
fn progress_comes_to_the_number_of_allocations_and_frees_that_are_played() {
    for policies in [&[*Policy::named("linux-6.1").unwrap()][..], &replayable()] {
        let told = Mutex::new(Vec::new());
        replay(open(SMALL[0]).as_mut(), &asking(policies), |stage| {
            if let Stage::Played(done, all) = stage {
                told.lock().unwrap().push((done, all));
            }
        })
        .unwrap();
        let mut told = told.into_inner().unwrap();
        let (last, all) = told.pop().unwrap();
        assert_eq!(last, all);
        let most = told.iter().map(|(done, _)| *done).max();
        assert_eq!(most, Some(all), "without the last report, which always has the total");
        assert!(told.iter().all(|told| told.1 == all) && told.len() >= 7, "{told:?}");
    }
}

/// Tests a replay that is cancelled at its beginning, while the recording is read, and while candidates are
/// replayed.
#[test]
fn a_cancelled_replay_ends_without_a_result() {
    let (first, last) = (Stage::Read(0), Stage::Played(0, 0));
    for when in [None, Some(first), Some(last)] {
        let options = asking(&replayable());
        options.cancel.store(when.is_none(), Relaxed);
        let is_it = |stage| when.is_some_and(|when| discriminant(&when) == discriminant(&stage));
        let replay = replay(open(SMALL[0]).as_mut(), &options, |stage| {
            options.cancel.fetch_or(is_it(stage), Relaxed);
        });
        assert!(matches!(replay, Err(ReplayError::Cancelled)), "{when:?}");
    }
}

#[test]
fn every_event_is_accounted_for_under_every_policy() {
    for name in SMALL {
        let (allocs, bulk, frees) = counted(name);
        let replay = replayed(name, &replayable());
        assert_eq!(replay.outcomes.len(), replayable().len());
        for outcome in &replay.outcomes {
            let label = format!("{name} under {}", outcome.policy);
            assert_eq!(outcome.allocs, allocs + bulk + replay.unseen.stack_pages, "{label}");
            assert_eq!(outcome.frees, frees, "{label}");
            assert!(outcome.pcp_pages_end <= outcome.pcp_pages_peak, "{label}");
            assert!(outcome.zone_lock_acquisitions >= outcome.refills + outcome.drains, "{label}");
            let Intervals { visits, zone_lock_acquisitions, refilled_pages, drained_pages } =
                outcome.interval.unwrap();
            assert!(visits.covers(outcome.visits()), "{label}");
            assert!(zone_lock_acquisitions.covers(outcome.zone_lock_acquisitions), "{label}");
            assert!(refilled_pages.covers(outcome.refilled_pages), "{label}");
            assert!(drained_pages.covers(outcome.drained_pages), "{label}");
        }
    }
}

/// In the recording of a build, the kernel's first tick comes after many events. Tests that ticks by the
/// clock are added only if a recording has no events of ticks.
#[test]
fn bundled_recordings_tick_when_their_kernels_did() {
    for name in SMALL.into_iter().chain(["traces/k618_2c_make_lua_j4.pgtrace"]) {
        let replay = replayed(name, &[*Policy::named("linux-6.12").unwrap()]);
        assert_eq!(replay.tick_interval_s, None, "{name}");
    }
    for (name, interval_s) in [("formats/ftrace-old.txt", None), ("formats/ftrace.txt.xz", Some(1))] {
        let machine = guess_layout(open(name).as_mut(), None).unwrap();
        let options = ReplayOptions { machine: Some(machine), ..asking(&POLICIES[..1]) };
        assert_eq!(replayed_with(name, options).tick_interval_s, interval_s, "{name}");
    }
}

/// Tests that a replay refuses a policy whose CPUs own pageblocks. The page sets of such a policy depend on
/// the zone's lists, and a replay has no zone.
#[test]
fn a_policy_that_needs_a_zone_is_refused() {
    let policy = *Policy::named("pcp-buddy-rfc").unwrap();
    let error = replay(open(SMALL[0]).as_mut(), &asking(&[policy]), |_| panic!("before anything is read"));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("pcp-buddy-rfc") && error.contains("pageset simulate --recording"), "{error}");
}

fn replayed_as_repeats(names: &[&str]) -> Result<Replay, ReplayError> {
    let mut repeats: Vec<_> = names[1..].iter().map(|name| open(name)).collect();
    let options = asking(&[*Policy::named("linux-6.12").unwrap(), *Policy::named("linux-6.1").unwrap()]);
    replay_repeats(open(names[0]).as_mut(), &mut repeats, &options, |_| {})
}

/// Tests that equal recordings of a load make the interval narrower. Equal recordings show that runs of this
/// load do not differ. With only one recording, the replay has to assume that runs differ.
#[test]
fn repeats_of_a_load_replace_the_estimate_of_how_far_runs_differ() {
    let name = "traces/k612_2c_unix_stream.pgtrace";
    let [one, three] = [&[name][..], &[name; 3]].map(|names| replayed_as_repeats(names).unwrap());
    let width = |replay: &Replay| {
        let visits = replay.outcomes[1].interval.unwrap().visits;
        (visits.1 + 1) as f64 / (visits.0 + 1) as f64
    };
    assert_eq!(
        one.outcomes[1].refills, three.outcomes[1].refills,
        "expected the counts of the first recording"
    );
    assert!(width(&three) < width(&one), "{} {}", width(&three), width(&one));
}

#[test]
fn a_recording_of_another_kernel_or_machine_is_no_repeat() {
    let first = "traces/k612_2c_tcp.pgtrace";
    for (other, what) in [
        ("traces/k61_2c_tcp.pgtrace", "another kernel"),
        ("traces/k612_8c_unix_stream.pgtrace", "another machine"),
    ] {
        let error = replayed_as_repeats(&[first, other]).unwrap_err().to_string();
        assert!(error.contains(other) && error.contains(what), "{error}");
    }
}

#[test]
fn two_replays_give_the_same() {
    let run = || replayed(SMALL[0], &replayable()).outcomes;
    assert_eq!(run(), run());
}

fn outcome<'r>(replay: &'r Replay, policy: &str) -> &'r Outcome {
    replay.outcomes.iter().find(|outcome| outcome.policy == policy).unwrap()
}

/// The page sets of the own row begin with the recorded contents, and the page sets of other rows in their
/// steady state. A copy of the recorded policy under another name shows what this difference is worth.
#[test]
fn a_copy_of_the_recorded_policy_makes_the_visits_that_other_rows_are_compared_with() {
    let own = *Policy::named("linux-6.18").unwrap();
    let mut copy = own;
    copy.name = "copy";
    let name = "traces/k618_2c_hackbench_sock.pgtrace";
    let replayed = |policies: &[Policy]| {
        replayed_with(name, ReplayOptions { finds_steady_visits: true, ..asking(policies) })
    };
    let replay = replayed(&[own, copy]);
    let visits = outcome(&replay, "copy").visits();
    assert_eq!(replay.own_steady_visits, Some(visits));
    let own_visits = outcome(&replay, "linux-6.18").visits();
    assert!(4 * own_visits > 5 * visits, "{own_visits} and {visits} differ enough for a note");
    assert_eq!(replay.steady_base(), Some(visits));
    assert_eq!(replayed(&[own]).own_steady_visits, None, "no other row, no further play");
}

/// Tests the directions that the series' tables show for a kernel build on a socket with 112 CPUs. Each CPU's
/// share of the watermark is small on such a socket.
#[test]
fn the_series_on_a_build_whose_memory_112_cpus_share() {
    let name = "traces/k618_2c_make_lua_j4.pgtrace";
    let steps = ["linux-6.6", "patch5", "patch7", "patch9", "patch10", "linux-6.7"];
    let policies = steps.map(|step| *Policy::named(step).unwrap());
    let replay = replayed_with(name, ReplayOptions { cpus: Some(112), ..asking(&policies) });
    let alloc_zone = |policy| outcome(&replay, policy).refilled_pages;
    let locks = |policy| outcome(&replay, policy).zone_lock_acquisitions;
    assert!(locks("patch5") < locks("linux-6.6"), "doubling refills take the lock less often");
    assert!(alloc_zone("patch7") * 10 < alloc_zone("patch5"), "tuning keeps pages on the CPU");
    assert!(alloc_zone("patch9") <= alloc_zone("patch7"));
    assert!(alloc_zone("patch10") >= alloc_zone("patch9"));
    let peak = |policy| outcome(&replay, policy).pcp_pages_peak;
    assert!(peak("patch7") > peak("patch5"), "at the price of more memory in page sets");
}

#[test]
fn locks_are_taken_for_refills_drains_and_blocks_past_the_page_sets() {
    // Linux 6.1 drains in one piece, so it takes the lock only once for each drain.
    let replay = replayed("traces/k618_2c_hackbench_sock.pgtrace", &[*Policy::named("linux-6.1").unwrap()]);
    let outcome = &replay.outcomes[0];
    let explained = outcome.refills + outcome.drains + outcome.direct_pages;
    assert!(outcome.zone_lock_acquisitions >= outcome.refills + outcome.drains);
    assert!(outcome.zone_lock_acquisitions <= explained, "{} of {explained}", outcome.zone_lock_acquisitions);
}

/// Replays bundled recordings under their own kernels' policies, and bounds the median and the largest error.
#[test]
fn own_totals_are_those_of_the_kernel() {
    let names = SMALL.into_iter().chain([
        "traces/k618_2c_make_lua_j4.pgtrace",
        "traces/k612_2c_pf1x1.pgtrace",
        "traces/k612_2c_sctp.pgtrace",
        "traces/k612_2c_unix_stream.pgtrace",
        "traces/k612_8c_unix_stream.pgtrace",
        "traces/k61_2c_tcp.pgtrace",
    ]);
    let mut errors: Vec<f64> = Vec::new();
    for name in names {
        let replay = replayed(name, &[]);
        let (own, kernel) = (replay.own.unwrap(), replay.kernel_itself);
        assert!(
            own.is_recorded_kernel && replay.window.is_start_known && replay.window.share == 1.0,
            "{name}"
        );
        let error = (own.visits() as f64 / kernel.visits().unwrap() as f64 - 1.0).abs();
        assert!(error < 0.25, "{name}: {} visits for {kernel:?}", own.visits());
        assert!(own.interval.unwrap().visits.covers(kernel.visits().unwrap()), "{name}");
        errors.push(error);
    }
    errors.sort_by(f64::total_cmp);
    assert!(errors[errors.len() / 2] < 0.02, "{errors:?}");
}

/// Tests the forecast for 6.12 from a TCP stream that was recorded under 6.1. The recordings show more than
/// 20 times as many visits under 6.12, and the forecast must show more than 10 times as many.
#[test]
fn a_forecast_is_compared_with_another_kernel() {
    let found = against(&mut [open("traces/k61_2c_tcp.pgtrace")], &mut [open("traces/k612_2c_tcp.pgtrace")]);
    let found = found.unwrap();
    assert_eq!((found.from.policy, found.to.policy), ("linux-6.1", "linux-6.12"));
    let visits = found.changes.iter().find(|change| change.quantity == "visits").unwrap();
    assert!(visits.real_ratio() > 20.0 && visits.predicted_ratio() > 10.0, "{visits:?}");
    assert_eq!(visits.noise, 0.0, "one run has none");
    assert!(against(&mut [], &mut []).unwrap_err().to_string().contains("at least one"));
}

/// Tests that `vm.percpu_pagelist_high_fraction` turns tuning off and fixes the limit, and that a smaller
/// limit means more visits.
#[test]
fn a_setting_is_applied_as_a_user_would_set_it() {
    let policy = *Policy::named("linux-6.18").unwrap();
    let with = |text: &str| Candidate { policy, settings: text.parse::<VmSettings>().unwrap() };
    let candidates =
        vec![with("vm.percpu_pagelist_high_fraction=8"), with("vm.percpu_pagelist_high_fraction=100000")];
    let options = ReplayOptions { candidates, ..ReplayOptions::default() };
    let replay = replayed_with("traces/k618_2c_hackbench_sock.pgtrace", options);
    let [generous, tight] = &replay.outcomes[..] else { panic!("two rows") };
    assert_eq!(generous.policy, "linux-6.18 vm.percpu_pagelist_high_fraction=8");
    assert!(!generous.is_recorded_kernel);
    assert!(tight.visits() > 10 * generous.visits(), "{} and {}", tight.visits(), generous.visits());
    assert!(tight.pcp_pages_peak < generous.pcp_pages_peak);
}

/// Under patch 10 of the series, hackbench over sockets causes drains by runs of high-order frees. Patch 9
/// does not drain after such runs. The higher threshold of Linux 6.16, which 6.18 also has, prevents the
/// drains of patch 10.
#[test]
fn the_later_threshold_mends_what_patch_10_costs_hackbench() {
    let policies = ["patch9", "patch10", "linux-6.18"].map(|step| *Policy::named(step).unwrap());
    let replay = replayed("traces/k618_2c_hackbench_sock.pgtrace", &policies);
    let free_high = |policy| outcome(&replay, policy).free_high_drains;
    assert!(free_high("patch10") > 50 * free_high("patch9").max(1));
    assert!(free_high("linux-6.18") <= free_high("patch9"));
}

#[test]
fn a_recording_without_a_machine_asks_for_one_or_gets_a_guess() {
    let name = "formats/ftrace-old.txt";
    let options = asking(&replayable());
    let error = replay(open(name).as_mut(), &options, |_| {}).unwrap_err().to_string();
    assert!(error.contains("ftrace-old.txt") && error.contains("--layout"), "{error}");
    let machine = guess_layout(open(name).as_mut(), None).unwrap();
    let replay = replayed_with(name, ReplayOptions { machine: Some(machine), ..options });
    assert!(replay.outcomes.iter().all(|outcome| outcome.allocs > 0));
}
