//! Tests the reading of a load: acts that a later event corrects, impossible events, and random recordings.

use pageset_core::policy::SplitFrees;
use pageset_core::{MigrateType, Order, ZoneKind};
use pageset_trace::{
    Event, EventKind, LostEvents, NativeWriter, OpenOptions, TraceInfo, WriteOptions, ZoneDescription,
    irq_flag,
};

use proptest::prelude::*;

use super::*;
use crate::replay::machine::Machine;
use crate::replay::tests::small_layout;
use crate::replay::{Candidate, Intervals, ReplayOptions, VmSettings, replay, replayable};

fn event(kind: EventKind, pfn: u64) -> Event {
    Event { pfn, gfp: 0xcc0, migratetype: 0, ..Event::new(kind, 0, 0) }
}

fn recording(events: &[Event], info: &TraceInfo) -> Box<dyn TraceReader> {
    let mut writer = NativeWriter::new(Vec::new(), info, WriteOptions::new().level(1)).unwrap();
    writer.write(events).unwrap();
    let bytes = writer.finish(LostEvents::default()).unwrap().0;
    OpenOptions::new().open_bytes("t.pgtrace".as_ref(), bytes).unwrap()
}

/// Returns the information of a recording that has all kinds of events.
fn all_recorded() -> TraceInfo {
    let recorded = EventKind::ALL.map(|kind| kind.name().to_owned()).into();
    TraceInfo { recorded, ..TraceInfo::default() }
}

fn read_on(machine: &Machine, events: &[Event]) -> PageSetLoad {
    PageSetLoad::read(recording(events, &all_recorded()).as_mut(), machine, Times::Forget, |_| Ok(()))
        .unwrap()
}

fn read(events: &[Event]) -> PageSetLoad {
    read_on(&Machine::new(small_layout()).unwrap(), events)
}

fn kinds(load: &PageSetLoad) -> Vec<ActKind> {
    load.acts.all().iter().map(|act| act.kind).collect()
}

#[test]
fn a_batched_free_happens_at_its_commit() {
    let load = read(&[
        Event { order: 2, ..event(EventKind::MmPageFree, 100) },
        event(EventKind::MmPageFree, 200),
        event(EventKind::MmPageFreeBatched, 100),
        event(EventKind::MmPageFreeBatched, 300),
    ]);
    assert_eq!(kinds(&load), [ActKind::Nothing, ActKind::Free, ActKind::Free]);
    assert_eq!(load.acts.all()[2].block.order(), Order::new(2).unwrap());
    assert_eq!(load.frees, 2);
}

#[test]
fn a_block_that_leaves_the_zone_without_a_drain_went_past_its_page_set() {
    let leaves = Event { order: 3, refill: 1, ..event(EventKind::MmPageAllocZoneLocked, 96) };
    let load = read(&[event(EventKind::MmPageFree, 100), event(EventKind::MmPageFree, 300), leaves]);
    assert_eq!(
        kinds(&load),
        [ActKind::PastSet, ActKind::Free],
        "frame 100 lies in the block that begins at frame 96"
    );
    let drained = event(EventKind::MmPagePcpuDrain, 100);
    let load = read(&[event(EventKind::MmPageFree, 100), drained, leaves]);
    assert_eq!(kinds(&load), [ActKind::Free]);
}

#[test]
fn a_drain_tells_which_list_a_block_was_on() {
    let drained = Event { migratetype: 2, ..event(EventKind::MmPagePcpuDrain, 100) };
    let load = read(&[event(EventKind::MmPageFree, 100), drained]);
    assert_eq!(load.acts.all()[0].block.migratetype(), MigrateType::Reclaimable);
    let decisions = load.decisions.all();
    assert_eq!(decisions.len(), 1);
    assert_eq!((decisions[0].pages, decisions[0].refill), (1, None));
}

#[test]
fn an_interrupt_in_the_middle_of_a_batch_frees_past_the_page_set() {
    let commit = Event { pid: 7, ..event(EventKind::MmPageFreeBatched, 500) };
    let in_softirq = Event { irq_flags: irq_flag::SOFTIRQ, ..event(EventKind::MmPageFree, 100) };
    let load = read(&[commit, in_softirq, commit]);
    assert_eq!((kinds(&load), load.diverted_frees), (vec![ActKind::PastSet], 1));
    let load = read(&[commit, in_softirq, Event { pid: 8, ..commit }]);
    assert_eq!(
        kinds(&load),
        [ActKind::Free],
        "the next event is of another task, so the batch was at its end"
    );
}

/// Returns the event that allocates a block of order 2, and the events that free the block's pages one after
/// the other.
fn split_block(pfn: u64) -> (Event, [Event; 4]) {
    let alloc = Event { order: 2, ..event(EventKind::MmPageAlloc, pfn) };
    (alloc, std::array::from_fn(|page| event(EventKind::MmPageFree, pfn + page as u64)))
}

const PARTS: [ActKind; 4] = [ActKind::FreePart, ActKind::FreePart, ActKind::FreePart, ActKind::FreeLastPart];

#[test]
fn a_block_may_be_freed_page_by_page() {
    let (alloc, frees) = split_block(4096);
    let load = read(&[&[alloc][..], &frees].concat());
    assert_eq!(kinds(&load), [&[ActKind::Alloc][..], &PARTS].concat());
    assert_eq!((load.unmatched_frees, load.split_blocks), (0, 1));
    assert_eq!(load.acts.all()[4].block.order(), Order::new(2).unwrap());
    assert!(load.remainder.is_empty(), "expected that the load gives its block back: {:?}", load.remainder);
}

/// Tests that no free of a part of an allocated block counts as unmatched, in several orders and sizes of the
/// parts. Only pages that are freed one directly after the other count as a whole block.
#[test]
fn a_part_of_a_block_leaves_the_rest_allocated() {
    let (alloc, [first, second, third, fourth]) = split_block(4096);
    let half = Event { order: 1, ..third };
    let elsewhere = event(EventKind::MmPageFree, 5000);
    for (frees, unmatched) in [
        (vec![second, fourth, first, third], 0),
        (vec![half, second, first], 0),
        (vec![first, second, third, elsewhere, fourth], 1),
        (vec![first, second, Event { pid: 7, ..third }, fourth], 0),
    ] {
        let load = read(&[&[alloc][..], &frees].concat());
        let freed = vec![ActKind::Free; frees.len()];
        assert_eq!(kinds(&load)[1..], freed, "{frees:?}");
        assert_eq!((load.unmatched_frees, load.split_blocks), (unmatched, 0), "{frees:?}");
    }
}

/// Tests a block that was allocated before the recording: a drain shows that its pages were freed as a block.
#[test]
fn a_drain_tells_that_pages_were_freed_as_a_block() {
    let (_, frees) = split_block(4096);
    let drained = Event { order: 2, migratetype: 2, ..event(EventKind::MmPagePcpuDrain, 4096) };
    let load = read(&[&frees[..], &[drained]].concat());
    assert_eq!(kinds(&load), PARTS);
    let types = load.acts.all().into_iter().map(|act| act.block.migratetype());
    assert!(types.into_iter().all(|found| found == MigrateType::Reclaimable));
    let later = Event { order: 3, refill: 1, ..event(EventKind::MmPageAllocZoneLocked, 4096) };
    let load = read(&[&frees[..], &[drained, later]].concat());
    assert_eq!((kinds(&load), load.diverted_frees), (PARTS.to_vec(), 0), "the drain returned all four");
}

#[test]
fn pages_of_a_list_enter_one_by_one_at_their_commits() {
    let (alloc, frees) = split_block(4096);
    let commits = frees.map(|free| Event { kind: EventKind::MmPageFreeBatched, ..free });
    let load = read(&[&[alloc][..], &frees, &commits].concat());
    assert_eq!(kinds(&load)[1..], [[ActKind::Nothing; 4], [ActKind::Free; 4]].concat());
    assert!(load.acts.all()[5..].iter().all(|act| act.block.order() == Order::ZERO));
}

#[test]
fn a_policy_says_how_the_parts_of_a_block_enter_a_page_set() {
    let (alloc, frees) = split_block(4096);
    let acts = read(&[&[alloc][..], &frees].concat()).acts.all();
    let orders = |rule| -> Vec<u8> {
        acts.iter().filter_map(|act| act.freed(rule)).map(|block| block.order().get()).collect()
    };
    assert_eq!(orders(SplitFrees::Singly), [0; 4]);
    assert_eq!(orders(SplitFrees::Joined), [2]);
}

#[test]
fn stacks_of_forked_tasks_are_as_many_pages_as_are_freed_from_nowhere() {
    let fork = event(EventKind::SchedProcessFork, 0);
    let frees = (0..6).map(|page| event(EventKind::MmPageFree, 1000 + page));
    let events: Vec<Event> = [fork, fork].into_iter().chain(frees).collect();
    let mut kinds = all_recorded();
    assert_eq!(
        read(&events).stack_pages,
        0,
        "expected no added pages, because bulk allocations were recorded"
    );
    let bulk = [EventKind::BulkAllocEntry, EventKind::BulkAllocReturn].map(EventKind::name);
    kinds.recorded.retain(|kind| !bulk.contains(&kind.as_str()));
    let machine = Machine::new(small_layout()).unwrap();
    let mut reader = recording(&events, &kinds);
    let load = PageSetLoad::read(reader.as_mut(), &machine, Times::Forget, |_| Ok(())).unwrap();
    assert_eq!(load.stack_pages, 6);
    let stacks =
        load.acts.all().into_iter().filter(|act| act.kind == ActKind::BulkAlloc).map(|act| act.count);
    assert_eq!(stacks.collect::<Vec<_>>(), [3, 3]);
    let bulk = event(EventKind::BulkAllocEntry, 0);
    let load = read(&[&events[..], &[bulk]].concat());
    assert_eq!(load.stack_pages, 0, "bulk allocations are recorded");
}

#[test]
fn impossible_events_are_counted() {
    let strange = Event { order: 255, ..event(EventKind::MmPageAlloc, 100) };
    let failed = event(EventKind::MmPageAlloc, u64::MAX);
    let foreign = event(EventKind::MmPageFree, 1 << 50);
    let unreplayed = read(&[strange, failed, foreign]).unreplayed;
    assert_eq!((unreplayed.impossible, unreplayed.failed_in_recording, unreplayed.foreign_frames), (1, 1, 1));
    let elsewhere = Event { cpu: u16::MAX, ..strange };
    assert_eq!(read(&[elsewhere]).unreplayed.impossible, 1);
    // Node 65536 must not be mistaken for node 0, which has the same lower 16 bits.
    let load = read(&[event(EventKind::KswapdWake, 1 << 16)]);
    assert_eq!((load.acts.len(), load.unreplayed.impossible), (0, 1));
}

/// Tests that the span of a zone with memory is limited, and that a zone without memory may have any span.
#[test]
fn a_zone_has_no_more_frames_than_can_be_noted() {
    let mut layout = small_layout();
    layout.zones.push(ZoneDescription {
        start_pfn: 1 << 40,
        spanned: 1 << 62,
        ..ZoneDescription::empty(0, ZoneKind::Movable)
    });
    let machine = Machine::new(layout.clone()).unwrap();
    let load = read_on(&machine, &[event(EventKind::MmPageFree, 1 << 50)]);
    assert_eq!(load.unreplayed.foreign_frames, 1);
    layout.zones[1].spanned = 1 << 40;
    assert!(Machine::new(layout).unwrap_err().to_string().contains("2^32"));
}

/// Generates events that a recording may have. Most of these events are about a few frames, so that several
/// events are about the same frame.
fn any_event() -> impl Strategy<Value = Event> {
    let pfn = prop_oneof![8 => 4096..4200_u64, 2 => 0..40_000_u64, 1 => any::<u64>()];
    let numbers = (prop_oneof![9 => 0..11_u8, 1 => any::<u8>()], -1..6_i8, 0..2_u8, any::<u8>());
    (0..21_u8, pfn, any::<u32>(), 0..3_u32, 0..3_u16, numbers).prop_filter_map(
        "a kind that is known",
        |(kind, pfn, gfp, pid, cpu, (order, migratetype, refill, irq_flags))| {
            let kind = EventKind::ALL.get(usize::from(kind)).copied()?;
            let event = Event::new(kind, 0, cpu);
            Some(Event { pfn, gfp, pid, order, migratetype, refill, irq_flags, ..event })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Tests with random recordings, policies and settings that a replay does not panic. Also tests that no
    /// allocation is lost, and that each interval contains its row's visits.
    #[test]
    fn any_recording_can_be_replayed(
        mut events in prop::collection::vec(any_event(), 0..300),
        step_ns in 0..100_000_000_u64,
        policy in 0..replayable().len(),
        kbytes in 0..200_000_u64,
    ) {
        for (event, place) in events.iter_mut().zip(0..) {
            event.ts_ns = step_ns * place;
        }
        let info = TraceInfo {
            kernel: Some("6.18.1".into()),
            machine: Some(small_layout()),
            ..all_recorded()
        };
        let settings = VmSettings { min_free_kbytes: Some(kbytes), ..VmSettings::default() };
        let policy = replayable()[policy];
        let candidates = vec![Candidate::from(policy), Candidate { policy, settings }];
        let options = ReplayOptions { candidates, ..ReplayOptions::default() };
        let replay = replay(recording(&events, &info).as_mut(), &options, |_| {}).unwrap();
        let allocs = events.iter().filter(|event| {
            event.kind == EventKind::MmPageAlloc && event.cpu < 2 && event.frame().is_some()
        });
        let own = replay.own.expect("the kernel and the machine of the recording are known");
        for outcome in replay.outcomes.iter().chain([&own]) {
            let is_covered = |all: Intervals| all.visits.covers(outcome.visits());
            prop_assert!(outcome.interval.is_none_or(is_covered));
            prop_assert!(outcome.pcp_pages_peak >= outcome.pcp_pages_end);
        }
        let counted = own.allocs + replay.unreplayed.foreign_frames + replay.unreplayed.impossible;
        if replay.window.share == 1.0 {
            prop_assert!(counted >= allocs.count() as u64);
        }
    }
}
