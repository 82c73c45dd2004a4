//! Tests workloads that repeat a recording, also on more CPUs than the recording has.

use std::path::Path;

use pageset_study::load::{Generation, Plan, Recorded, Settings, Setup, Topology};
use pageset_trace::EventKind;

use super::world::run_plan;

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/traces/k61_2c_tcp.pgtrace");

fn recorded() -> Recorded {
    let mut reader = pageset_trace::open(Path::new(TRACE)).expect("the trace is bundled");
    Recorded::read(&mut *reader).expect("the trace is whole")
}

fn plan(recorded: &Recorded, cpus: u32) -> Plan {
    let (topology, settings) = (Topology::even(cpus, 1), Settings::default());
    let setup = Setup { topology: &topology, cpus, generation: Generation::V6_6, settings: &settings };
    recorded.plan(&setup).expect("the recording has allocations")
}

#[test]
fn copies_of_a_recording_give_everything_back_and_repeat() {
    let recorded = recorded();
    assert!(recorded.played.events > 10_000 && recorded.played.impossible == 0);
    // The run on five CPUs has three copies of the recorded machine. Two copies have both recorded CPUs, and
    // the third copy has only the first recorded CPU.
    let run = || run_plan(plan(&recorded, 5), 50_000_000);
    let log = run();
    assert_eq!(log.left, 0);
    assert!(log.score > 100, "{} events", log.score);
    assert!(log == run(), "two runs differ");
}

#[test]
fn nothing_is_dropped_uncounted() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces/k61_2c_unix_stream.pgtrace");
    let mut reader = pageset_trace::open(&path).expect("the trace is bundled");
    let (mut allocs, mut bulk, mut bulk_pages, mut frees) = (0, 0, 0, 0);
    let mut events = Vec::new();
    while reader.read_block(&mut events).expect("the trace is whole") > 0 {
        for event in &events {
            allocs += u64::from(event.kind == EventKind::MmPageAlloc);
            frees += u64::from(event.kind == EventKind::MmPageFree);
            if event.kind == EventKind::BulkAllocReturn {
                bulk += u64::from(event.pfn > 0);
                bulk_pages += event.pfn;
            }
        }
    }
    let mut reader = pageset_trace::open(&path).expect("the trace is bundled");
    let played = Recorded::read(&mut *reader).expect("the trace is whole").played;
    let left_out = played.unmatched_frees + played.failed_in_recording + played.impossible;
    assert_eq!(played.events + left_out, allocs + frees + bulk);
    assert_eq!(played.bulk_pages, bulk_pages);
    assert!(allocs > 0 && frees > 0);
}

#[test]
fn a_copy_frees_where_the_recording_does() {
    let (same, other) = run_plan(plan(&recorded(), 2), 200_000_000).frees();
    assert!(same > 0 && other > 0, "{same} blocks freed on the CPU that allocated them, {other} on another");
}

#[test]
fn more_cpus_play_more() {
    let recorded = recorded();
    let score = |cpus| run_plan(plan(&recorded, cpus), 20_000_000).score;
    assert!(score(4) > score(2));
}
