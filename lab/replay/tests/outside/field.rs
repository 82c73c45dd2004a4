//! Tests of recordings with peculiarities from users' machines: old names of events, pages of 64 KiB, offline
//! CPUs.

use std::path::PathBuf;

use pageset_core::Policy;
use pageset_replay::{Candidate, Replay, ReplayOptions, SurveyOptions, guess_layout, replay, survey};
use pageset_trace::{Layout, LayoutOptions, OpenOptions};

fn field(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../data/formats/field").join(name)
}

/// Replays a text of ftrace on `machine`.
fn replayed(text: &str, machine: Layout) -> Replay {
    let mut reader = OpenOptions::new().open_bytes("f.txt".as_ref(), text.as_bytes().to_vec()).unwrap();
    let policy = *Policy::named("linux-6.12").unwrap();
    let options = ReplayOptions {
        candidates: vec![Candidate::from(policy)],
        machine: Some(machine),
        ..ReplayOptions::default()
    };
    replay(reader.as_mut(), &options, |_| {}).unwrap()
}

/// Events of `count` allocations on a CPU, of frames in the lowest zone.
fn allocations(cpu: u32, count: u64) -> String {
    let line = |number: u64| {
        format!(
            " cc1-9 [{cpu:03}] ..... {}.{:06}: mm_page_alloc: page=1 pfn={} order=0 migratetype=1 gfp_flags=GFP_HIGHUSER_MOVABLE\n",
            100 + number / 1_000_000,
            number % 1_000_000,
            1000 + number
        )
    };
    // Add one free, so that frees count as recorded. The freed frame was in use before the recording.
    let free = " cc1-9 [000] ..... 99.000000: mm_page_free: page=1 pfn=900 order=0\n".to_owned();
    std::iter::once(free).chain((0..count).map(line)).collect()
}

/// Makes events of blocks that CPU 0 allocates and CPU 1 frees.
fn handed_over(count: u64) -> String {
    let line = |number: u64| {
        let (at, pfn) =
            (format!("{}.{:06}", 100 + number / 100_000, number % 100_000 * 10), 1000 + number % 900);
        format!(
            " cc1-9 [000] ..... {at}: mm_page_alloc: page=1 pfn={pfn} order=0 migratetype=1 gfp_flags=GFP_HIGHUSER_MOVABLE\n \
             cc1-8 [001] ..... {at}: mm_page_free: page=1 pfn={pfn} order=0\n"
        )
    };
    (0..count).map(line).collect()
}

#[test]
fn frees_before_linux_3_3_are_frees_by_either_of_their_names() {
    let open = || pageset_trace::open(&field("ftrace-2.6.txt")).unwrap();
    let counted = survey(open().as_mut(), &SurveyOptions::default(), |_| {}).unwrap();
    assert_eq!((counted.orders.freed_blocks, counted.orders.freed_in_batches), (Some(60), Some(20)));
    assert_eq!(counted.lifetimes.unwrap().alive_at_end, 40);
    let machine = guess_layout(open().as_mut(), None).unwrap();
    let text = std::fs::read_to_string(field("ftrace-2.6.txt")).unwrap();
    let replay = replayed(&text, machine);
    assert_eq!((replay.outcomes[0].allocs, replay.outcomes[0].frees), (100, 60));
    assert_eq!((replay.unseen.unmatched_frees, replay.unreplayed.allocated_twice), (0, 0));
}

#[test]
fn a_refill_of_pages_of_64_kib_has_fewer_pages() {
    let of = |bytes: u32| LayoutOptions::new().page_size(bytes);
    let large = of(65_536).load(&field("zoneinfo-64k.txt")).unwrap();
    let text = std::fs::read_to_string(field("zoneinfo-64k.txt")).unwrap().replace("batch: 3", "batch: 63");
    let small = of(4096).parse("z.txt".as_ref(), &text).unwrap();
    // If the kernel does not print the limits of page sets, the policy's rule computes them.
    let by_rule = |mut machine: Layout| {
        machine.zones.iter_mut().for_each(|zone| zone.pagesets.clear());
        machine
    };
    let pages_each = |machine| {
        let replay = replayed(&handed_over(30_000), machine);
        let outcome = &replay.outcomes[0];
        assert!(outcome.refills > 10, "{outcome:?}");
        outcome.refilled_pages / outcome.refills
    };
    // Refills have 3 to 96 pages: batches of 3 pages, doubled at most five times.
    for machine in [large.clone(), by_rule(large)] {
        let pages = pages_each(machine);
        assert!((3..=96).contains(&pages), "{pages}");
    }
    let pages = pages_each(by_rule(small));
    assert!((500..=2016).contains(&pages), "{pages}");
}

#[test]
fn what_an_offline_cpu_did_is_counted_and_not_replayed() {
    let text = std::fs::read_to_string(field("zoneinfo-2node.txt")).unwrap().replace("cpu: 1\n", "cpu: 5\n");
    let machine = LayoutOptions::new().parse("z.txt".as_ref(), &text).unwrap();
    assert_eq!((machine.cpus, machine.online_cpus()), (6, 4));
    let online = replayed(&allocations(5, 50), machine.clone());
    assert_eq!((online.unreplayed.impossible, online.outcomes[0].allocs), (0, 0), "frames below the zone");
    let machine = Layout {
        zones: machine
            .zones
            .into_iter()
            .map(|zone| pageset_trace::ZoneDescription { start_pfn: zone.start_pfn - 4096, ..zone })
            .collect(),
        ..machine
    };
    assert_eq!(replayed(&allocations(5, 50), machine.clone()).outcomes[0].allocs, 50);
    let offline = replayed(&allocations(4, 50), machine);
    assert_eq!((offline.unreplayed.impossible, offline.outcomes[0].allocs), (50, 0));
}
