//! Tests that read the written trace back, and compare it with the counts of the survey and the replay.

mod read_back;

use std::path::Path;

use pageset_core::{POLICIES, ZoneKind};
use pageset_trace::{
    EventKind, Gap, NativeWriter, Node, OpenOptions, Sysctls, TaskBook, TraceInfo, WriteOptions,
    ZoneDescription,
};
use proptest::prelude::*;

use super::*;
use crate::{Log2Counts, ReplayOptions, SurveyOptions, replay, survey};
use read_back::ReadBack;

fn bundled(name: &str) -> Box<dyn TraceReader> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces").join(name);
    OpenOptions::new().open(&path).unwrap()
}

fn policies(names: &[&str]) -> Vec<Candidate> {
    let named = |name: &&str| POLICIES.iter().find(|policy| policy.name == *name).copied().unwrap();
    names.iter().map(named).map(Candidate::from).collect()
}

fn exported(open: impl Fn() -> Box<dyn TraceReader>, names: &[&str]) -> (ReadBack, PerfettoSummary) {
    let machine = open().info().machine.clone().unwrap_or_else(small_machine);
    let options = PerfettoOptions { machine, policies: policies(names), written_by: "a test".into() };
    let mut bytes = Vec::new();
    let summary = perfetto(&mut || Ok(open()), &options, &mut bytes, &mut ()).unwrap();
    assert_eq!(summary.bytes, bytes.len() as u64);
    (ReadBack::parse(&bytes), summary)
}

fn small_machine() -> Layout {
    let zone = |kind, start_pfn: u64, managed: u64| ZoneDescription {
        start_pfn,
        spanned: managed,
        present: managed,
        managed,
        free: managed / 2,
        min: 10,
        low: 12,
        high: 15,
        ..ZoneDescription::empty(0, kind)
    };
    Layout {
        kernel: "6.12".into(),
        architecture: "x86_64".into(),
        page_size: 4096,
        assumed: Vec::new(),
        cpus: 2,
        sysctls: Sysctls::default(),
        nodes: vec![Node { id: 0, cpus: vec![0, 1], distances: vec![10] }],
        caches: Vec::new(),
        zones: vec![zone(ZoneKind::Dma32, 0, 1 << 14), zone(ZoneKind::Normal, 1 << 14, 1 << 14)],
    }
}

fn recording(info: &TraceInfo, events: &[Event]) -> impl Fn() -> Box<dyn TraceReader> + use<> {
    let mut writer = NativeWriter::new(Vec::new(), info, WriteOptions::new().level(1)).unwrap();
    writer.write(events).unwrap();
    let bytes = writer.finish(LostEvents::default()).unwrap().0;
    move || OpenOptions::new().open_bytes("t.pgtrace".as_ref(), bytes.clone()).unwrap()
}

/// The information of a recording that has all kinds of events.
fn all_recorded() -> TraceInfo {
    let recorded = EventKind::ALL.map(|kind| kind.name().to_owned()).into();
    TraceInfo { recorded, ..TraceInfo::default() }
}

/// Compares the written trace with the survey of the same events.
#[track_caller]
fn says_what_the_survey_says(name: &str) -> ReadBack {
    let (found, summary) = exported(|| bundled(name), &[]);
    let counted = survey(bundled(name).as_mut(), &SurveyOptions::default(), |_| ()).unwrap();
    let kernel = &counted.kernel;
    let of = |name| found.sum("recorded kernel", name);
    assert_eq!(summary.events, counted.events);
    let (refills, drains) = (kernel.refills.as_ref().unwrap(), kernel.drains.as_ref().unwrap());
    assert_eq!(of("refill"), (refills.total(), refills.sum));
    assert_eq!(of("drain"), (drains.total(), drains.sum));
    assert_eq!(summary.recorded, (refills.total(), drains.total()));
    assert_eq!(Some(of("tick").0), kernel.vmstat_ticks);
    assert_eq!(Some(of("LRU drain").0), kernel.lru_drains);
    assert_eq!(Some(of("kswapd").0), kernel.kswapd_wakes);
    let (reclaims, pages) = of("direct reclaim");
    assert_eq!((Some(reclaims), Some(pages)), (kernel.direct_reclaims, kernel.direct_reclaimed_pages));
    let spin_waits = kernel.spin_wait_ns.as_ref().unwrap();
    assert_eq!(of("wait for zone lock").0 + of("wait for spinlock").0, spin_waits.total());
    let other_waits = kernel.other_wait_ns.as_ref().map_or(0, Log2Counts::total);
    assert_eq!(of("wait for other lock").0, other_waits);
    let spinning = |name: &str| name == "wait for zone lock" || name == "wait for spinlock";
    let waited = found.slices.iter().filter(|slice| spinning(&slice.name)).map(|slice| slice.length_ns);
    assert_eq!(waited.sum::<u64>(), spin_waits.sum);
    let kernel = format!("recorded Linux {}", bundled(name).info().kernel.as_deref().unwrap());
    for totals in &counted.cpus.each {
        let cpu = totals.cpu;
        let track = |what| format!("{kernel} / CPU {cpu} / CPU {cpu} {what}");
        let last = |what| Some(found.last(&track(what)).unwrap_or(0) as u64);
        assert_eq!(last("pages allocated"), totals.allocated_pages, "CPU {cpu}");
        assert_eq!(last("pages freed"), totals.freed_pages, "CPU {cpu}");
    }
    assert_eq!(found.unfinished, 0);
    found
}

#[test]
fn refills_drains_ticks_waits_and_pages_are_those_of_the_survey() {
    let found = says_what_the_survey_says("k612_2c_tcp.pgtrace");
    assert!(found.sum("recorded kernel", "drain").0 > 0, "expected drains in the written trace");
    says_what_the_survey_says("k61_2c_tcp.pgtrace");
    says_what_the_survey_says("k612_4c_2node_numa_tcp.pgtrace");
    says_what_the_survey_says("k612_8c_unix_stream.pgtrace");
    let found = says_what_the_survey_says("k618_2c_hackbench_sock.pgtrace");
    assert!(
        found.sum("recorded kernel", "wait for spinlock").0 > 1000,
        "expected more than 1000 waits for spinning locks in the written trace"
    );
}

#[test]
fn arrows_lead_from_one_cpu_to_another() {
    let (found, summary) = exported(|| bundled("k612_8c_unix_stream.pgtrace"), &[]);
    let from: Vec<_> = found.slices.iter().filter(|slice| !slice.flows.0.is_empty()).collect();
    assert_eq!(from.len() as u64, summary.followed.arrows);
    assert!(from.len() > 10, "{}", from.len());
    for from in from {
        let mut to = found.slices.iter().filter(|slice| slice.flows.1 == from.flows.0);
        let to = to.next().expect("expected a slice where the arrow ends");
        assert!(to.at_ns >= from.at_ns && to.track != from.track);
        assert_eq!(to.numbers["pfn"], from.numbers["pfn"]);
        assert!(from.track.ends_with(&format!("CPU {}", to.numbers["cpu"])), "{}", from.track);
    }
}

#[test]
fn policies_stand_beside_the_kernel_with_the_numbers_of_their_rows() {
    let names = ["linux-6.12", "linux-6.6"];
    let (found, summary) = exported(|| bundled("k612_8c_unix_stream.pgtrace"), &names);
    let options = ReplayOptions { candidates: policies(&names), ..ReplayOptions::default() };
    let rows = replay(bundled("k612_8c_unix_stream.pgtrace").as_mut(), &options, |_| {}).unwrap();
    assert_eq!(rows.window.skipped, 0, "all is counted");
    for ((name, row), made) in names.iter().zip(&rows.outcomes).zip(&summary.replayed) {
        assert_eq!(found.sum(name, "refill"), (row.refills, row.refilled_pages), "{name}");
        assert_eq!(found.sum(name, "drain"), (row.drains, row.drained_pages), "{name}");
        assert_eq!(*made, (row.refills, row.drains));
        let counts = found.counters.iter().filter(|(track, _)| {
            track.starts_with(&format!("replay under {name} / ")) && track.ends_with(" count")
        });
        let held: i64 = counts.filter_map(|(_, values)| values.last()).map(|(_, value)| *value).sum();
        assert_eq!(held, row.pcp_pages_end as i64, "{name}");
    }
}

#[test]
fn a_recording_without_events_is_a_trace_too() {
    let info = all_recorded();
    for events in [&[][..], &[Event::new(EventKind::MmPageAlloc, 7, 0)]] {
        let (found, summary) = exported(recording(&info, events), &["linux-6.12"]);
        assert_eq!(summary.events, events.len() as u64);
        let about: Vec<_> = found.slices.iter().filter(|slice| slice.name == "recording").collect();
        assert_eq!(about[0].numbers["events"], events.len() as u64);
    }
}

#[test]
fn names_come_back_as_they_are() {
    let name = "a\u{0}b\n\"</script>\u{202e}\u{10ffff}".repeat(300);
    let info = TraceInfo { name: Some(name.clone()), kernel: Some(name.clone()), ..TraceInfo::default() };
    let (found, _) = exported(recording(&info, &[]), &[]);
    assert!(found.tracks.contains(&format!("recorded Linux {name}")));
    let about = found.slices.iter().find(|slice| slice.name == "recording").unwrap();
    assert_eq!((about.texts["recorded"].as_str(), about.texts["kernel"].as_str()), (&*name, &*name));
}

#[test]
fn times_that_go_back_are_kept() {
    let tick = |ts_ns| Event { order: 1, ..Event::new(EventKind::WorkqueueExecuteStart, ts_ns, 0) };
    let end = |ts_ns| Event { order: 1, ..Event::new(EventKind::WorkqueueExecuteEnd, ts_ns, 0) };
    let events = [tick(5000), end(5600), tick(3000), end(3700), tick(9000), end(9001)];
    let (found, _) = exported(recording(&TraceInfo::default(), &events), &[]);
    let ticks = found.slices.iter().filter(|slice| slice.name == "tick");
    let ticks: Vec<_> = ticks.map(|slice| (slice.at_ns, slice.length_ns)).collect();
    assert_eq!(ticks, [(3000, 700), (5000, 600), (9000, 1)]);
}

#[test]
fn a_drain_says_what_it_happened_for() {
    let at = |kind, ts_ns, pfn| Event { pfn, pid: 7, ..Event::new(kind, ts_ns, 1) };
    let (start, stop) = (EventKind::WorkqueueExecuteStart, EventKind::WorkqueueExecuteEnd);
    let (free, drain) = (EventKind::MmPageFree, EventKind::MmPagePcpuDrain);
    let events = [
        at(free, 10, 3),
        at(drain, 11, 3),
        at(drain, 15, 4),
        Event { order: 1, ..at(start, 20, 0) },
        at(drain, 21, 5),
        Event { order: 1, ..at(stop, 30, 0) },
        at(drain, 40, 6),
    ];
    let (found, _) = exported(recording(&TraceInfo::default(), &events), &[]);
    let drains = found.slices.iter().filter(|slice| slice.name == "drain");
    let drains: Vec<_> = drains
        .map(|slice| (slice.texts["reason"].as_str(), slice.numbers["pages"], slice.at_ns, slice.length_ns))
        .collect();
    assert_eq!(drains, [("free", 2, 11, 4), ("tick", 1, 21, 0), ("demand", 1, 40, 0)]);
}

#[test]
fn a_wait_for_the_zone_lock_is_on_the_waiters_track_and_names_the_holder() {
    let at = |kind, ts_ns, cpu, pid, pfn| Event { pfn, pid, gfp: 1, ..Event::new(kind, ts_ns, cpu) };
    let drain = EventKind::MmPagePcpuDrain;
    let events = [
        at(EventKind::ContentionBegin, 100, 0, 8, 0xffff),
        at(drain, 120, 1, 9, 3),
        at(EventKind::ContentionEnd, 150, 0, 8, 0xffff),
        at(drain, 160, 0, 8, 4),
    ];
    let (found, summary) = exported(recording(&TraceInfo::default(), &events), &[]);
    let wait = found.slices.iter().find(|slice| slice.name == "wait for zone lock").unwrap();
    assert_eq!((wait.track.as_str(), wait.at_ns, wait.length_ns), ("thread 8", 100, 50));
    assert_eq!((wait.numbers["lock"], wait.numbers["cpu"]), (0xffff, 0));
    assert_eq!((wait.numbers["holder_cpu"], wait.numbers["holder_thread"]), (1, 9));
    assert_eq!(summary.unpaired, 0);
}

#[test]
fn names_stand_with_threads_slices_and_waits() {
    let mut book = TaskBook::default();
    book.add(8, 7, 0, b"worker");
    book.add(7, 7, 0, b"make\x1b[31m");
    let info = TraceInfo { tasks: Some(book.into_tasks()), ..TraceInfo::default() };
    let at = |kind, ts_ns, pid, pfn| Event { pfn, pid, gfp: 1, ..Event::new(kind, ts_ns, 0) };
    let events = [
        at(EventKind::ContentionBegin, 100, 8, 0xffff),
        at(EventKind::ContentionEnd, 150, 8, 0xffff),
        at(EventKind::MmPagePcpuDrain, 160, 8, 4),
        at(EventKind::ContentionBegin, 170, 9, 0xffff),
        at(EventKind::ContentionEnd, 180, 9, 0xffff),
    ];
    let (found, _) = exported(recording(&info, &events), &[]);
    let process = |name: &str| {
        let slices = found.slices.iter().filter(|slice| slice.name.starts_with(name));
        slices.map(|slice| slice.texts.get("process").cloned()).collect::<Vec<_>>()
    };
    let make = || Some("make\\x1b[31m".to_owned());
    assert_eq!((process("drain"), process("wait")), (vec![make()], vec![make(), None]));
}

#[test]
fn any_number_of_threads_have_their_tracks() {
    const THREADS: u64 = 70_000;
    let at = |kind, pid: u64| Event { pid: pid as u32, ..Event::new(kind, pid, 0) };
    let both = |pid| [at(EventKind::DirectReclaimBegin, pid), at(EventKind::DirectReclaimEnd, pid)];
    let events: Vec<Event> = (1..=THREADS).chain([1]).flat_map(both).collect();
    let (found, _) = exported(recording(&TraceInfo::default(), &events), &[]);
    assert_eq!(found.sum("recorded kernel", "direct reclaim").0, THREADS + 1);
    assert_eq!(found.tracks.iter().filter(|track| track.starts_with("thread ")).count() as u64, THREADS);
}

#[test]
fn places_where_events_are_missing_are_shown() {
    let gap = |after_ns, events| Gap { cpu: 1, after_ns, before_ns: 90, events };
    let info = TraceInfo { gaps: vec![gap(40, Some(7)), gap(60, None)], ..TraceInfo::default() };
    let (found, _) = exported(recording(&info, &[Event::new(EventKind::MmPageFree, 10, 0)]), &[]);
    let missing = found.slices.iter().filter(|slice| slice.name == "events missing");
    let missing: Vec<_> =
        missing.map(|slice| (slice.at_ns, slice.length_ns, slice.numbers.get("events").copied())).collect();
    assert_eq!(missing, [(40, 50, Some(7)), (60, 30, None)]);
}

fn any_event() -> impl Strategy<Value = Event> {
    let small = || prop_oneof![0..40_u64, any::<u64>()];
    let kind = (0..EventKind::COUNT).prop_map(|index| EventKind::ALL[index]);
    let context =
        (small(), small(), prop_oneof![0..3_u16, any::<u16>()], prop_oneof![0..4_u32, any::<u32>()]);
    (kind, context, any::<u32>(), 0..13_u8, -1..7_i8, 0..2_u8).prop_map(
        |(kind, (ts_ns, pfn, cpu, pid), gfp, order, migratetype, refill)| Event {
            pfn,
            gfp,
            pid,
            order,
            migratetype,
            refill,
            ..Event::new(kind, ts_ns, cpu)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Tests that any recording makes a readable trace that has every refill and drain.
    #[test]
    fn any_events_make_a_trace(events in proptest::collection::vec(any_event(), 0..200)) {
        let open = recording(&all_recorded(), &events);
        let (found, summary) = exported(&open, &["linux-6.12"]);
        let counted = survey(open().as_mut(), &SurveyOptions::default(), |_| ()).unwrap();
        let kernel = counted.kernel;
        let (refills, drains) = (kernel.refills.unwrap(), kernel.drains.unwrap());
        prop_assert_eq!(summary.recorded, (refills.total(), drains.total()));
        let of = |name| found.sum("recorded kernel", name);
        prop_assert_eq!(of("refill"), (refills.total(), refills.sum));
        prop_assert_eq!(of("drain"), (drains.total(), drains.sum));
    }
}
