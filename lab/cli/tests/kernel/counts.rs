//! Tests `pageset record --counts` on the running kernel, and compares the counts with a recording of all
//! events at the same time.

use std::fs;

use pageset_trace::{Counts, Decisions, EventKind, HitEstimate, PFN_NONE, Recovery};

use crate::record::{Tmpfs, directory, machine, pageset, read, succeeds, text};

/// A shell command that writes and removes files of 8 MiB for some seconds.
const LOAD: &str = "i=0; while [ $i -lt 150 ]; do dd if=/dev/zero of=load bs=1M count=8 2>/dev/null; rm load; \
                    sleep 0.01; i=$((i + 1)); done";

fn counted(path: &std::path::Path) -> Counts {
    let (info, events) = read(path, Recovery::Refuse);
    assert!(events.is_empty() && info.before.is_some() && info.after.is_some() && info.busy_ns.is_some());
    assert!(info.pgalloc_delta.is_some() && info.recorded.is_empty());
    info.counts.expect("it has counts")
}

#[test]
fn counts_hold_what_all_events_show() {
    let Some(_guard) = machine() else { return };
    let (directory, path, name) = directory();
    let memory = Tmpfs::mount("64m");
    let all = directory.path().join("all.pgtrace");
    let load = format!("cd {}; {LOAD}", memory.0.path().display());
    succeeds(&[
        "record",
        "-o",
        &all.display().to_string(),
        "--",
        crate::record::PAGESET,
        "record",
        "--counts",
        "-o",
        &name,
        "--",
        "sh",
        "-c",
        &load,
    ]);
    let (info, _) = read(&path, Recovery::Refuse);
    let counts = counted(&path);
    let (on, off) = (info.t_on_ns.unwrap(), info.t_off_ns.unwrap());
    let (_, events) = read(&all, Recovery::Refuse);
    let within = || events.iter().filter(|event| (on..=off).contains(&event.ts_ns));
    let hits = |kind| within().filter(|event| event.kind == kind).count() as u64;
    for (name, kind) in [
        ("kmem/mm_page_alloc", EventKind::MmPageAlloc),
        ("kmem/mm_page_free", EventKind::MmPageFree),
        ("kmem/mm_page_free_batched", EventKind::MmPageFreeBatched),
        ("kmem/mm_page_alloc_zone_locked", EventKind::MmPageAllocZoneLocked),
        ("kmem/mm_page_pcpu_drain", EventKind::MmPagePcpuDrain),
        ("kmem/mm_page_alloc_extfrag", EventKind::MmPageAllocExtfrag),
    ] {
        let (truth, estimate) = (hits(kind), counts.hits(name).expect("seconds are enough"));
        assert!(is_near(truth, estimate), "{name}: {truth} in {estimate:?}");
    }
    // A visit is a refill, a drain, or a block past the page sets.
    let mut decisions = Decisions::default();
    let ended = within().filter_map(|event| decisions.record(event)).count();
    let past_sets = within().filter(|event| {
        let is_block = event.kind == EventKind::MmPageAllocZoneLocked && event.block_pages() > 0;
        is_block && !event.is_pcp_refill() && event.pfn != PFN_NONE
    });
    let visits = (ended + past_sets.count() + decisions.finish().count()) as u64;
    let estimate = counts.zone_visits().expect("seconds are enough");
    assert!(is_near(visits, estimate), "visits: {visits} in {estimate:?}");
}

/// Whether an estimate is near the true number. An exact count may lack a few events at its beginning and
/// end. On a busy machine the test's load comes in bursts, so the true number may lie outside an estimate's
/// interval. Another test checks how often intervals contain the true value.
fn is_near(truth: u64, estimate: HitEstimate) -> bool {
    let room = if estimate.is_exact() {
        estimate.hits / 50 + 1000
    } else {
        estimate.high - estimate.low + estimate.hits + 1000
    };
    (estimate.low.saturating_sub(room)..=estimate.high + room).contains(&truth)
}

#[test]
fn counts_are_printed_and_replays_say_what_is_missing() {
    let Some(_guard) = machine() else { return };
    let (_directory, path, name) = directory();
    let said = succeeds(&["record", "--counts", "-o", &name, "--", "sh", "-c", "sleep 1; exit 3"]);
    assert!(said.contains("exit status: 3") && said.contains("without events"), "{said}");
    let counts = counted(&path);
    assert!(counts.elapsed_ns > 900_000_000 && counts.cpus > 0);
    let said = succeeds(&["stat", &name]);
    assert!(said.contains("Counts of") && said.contains("mm_page_alloc_zone_locked"), "{said}");
    assert!(succeeds(&["stat", &name, "--format", "json"]).contains("\"counts\""));
    let advised = succeeds(&["advise", &name]);
    assert!(advised.contains("counts of"), "{advised}");
    let replayed = pageset(&["replay", &name]);
    assert!(
        text(&replayed.stderr).contains("record the load again without --counts"),
        "{}",
        text(&replayed.stderr)
    );
    assert!(fs::metadata(&path).unwrap().len() < 100_000);
}

/// The load writes files of a tmpfs, whose pages are allocated by `shmem_alloc_folio` and similar functions.
#[test]
fn counts_know_where_visits_come_from() {
    let Some(_guard) = machine() else { return };
    let (directory, path, name) = directory();
    let memory = Tmpfs::mount("64m");
    // One CPU allocates and another frees. If one CPU allocated and freed, its page set would soon hold all
    // of the file's pages. The zone would then have too few visits to show the function that causes visits.
    let load = LOAD.replace("dd ", "taskset -c 0 dd ").replace("rm ", "taskset -c $(($(nproc) - 1)) rm ");
    let load = format!("cd {}; {load}", memory.0.path().display());
    succeeds(&["record", "--counts", "-o", &name, "--", "sh", "-c", &load]);
    let counts = counted(&path);
    let visits = |site: &pageset_trace::CountedSite| site.visits.expect("visits have call chains here");
    let all: u64 = counts.sites.iter().map(visits).sum();
    let estimate = counts.visits.expect("seconds are enough").hits;
    assert!(all.abs_diff(estimate) <= counts.sites.len() as u64, "{all} of {estimate}");
    let of_files = counts.sites.iter().filter(|site| {
        site.function
            .as_deref()
            .is_some_and(|function| function.contains("shmem") || function.contains("folio"))
    });
    let of_files: u64 = of_files.map(visits).sum();
    assert!(10 * of_files > all, "{:?}", counts.sites);
    // Neither the page allocator nor a slab is a call site.
    let is_allocator =
        |function: &str| function.starts_with("rmqueue") || function.starts_with("kmem_cache_");
    assert!(!counts.sites.iter().any(|site| site.function.as_deref().is_some_and(is_allocator)));
    assert!(counts.locks.is_some(), "waits for other locks are seen");
    let said = succeeds(&["stat", &name]);
    assert!(
        said.contains("Visits and waits by call site") && said.contains("other than the zones'"),
        "{said}"
    );
    assert!(said.lines().all(|line| line.len() <= 80), "{said}");
    let all = directory.path().join("all.pgtrace").display().to_string();
    succeeds(&["record", "--stack", "-o", &all, "--", "sh", "-c", &load]);
    let (info, events) = read(all.as_ref(), Recovery::Refuse);
    let names = info.call_sites.expect("call chains were recorded");
    let of_waits = events.iter().filter_map(|event| event.call_site());
    assert!(of_waits.into_iter().all(|site| names.function(site).is_some()));
    assert!(succeeds(&["stat", &all]).contains("Visits and waits by call site"));
}
