//! Tests that the events of workloads follow the definitions, and that the events of repeated recordings
//! follow the recording. The tests look at the orders, types and CPUs of allocations and frees, at lifetimes
//! and at locks.

mod patterns;
mod recorded;
mod world;

use pageset_study::load::Workload;

use self::world::run;

/// Settings that make a workload's cycle so short that a run of one or two milliseconds has several cycles.
fn short(workload: &str) -> Vec<(&'static str, u64)> {
    match workload {
        name if name.starts_with("page_fault") => vec![("mapping_pages", 700)],
        name if name.starts_with("lru-file") => vec![("cache_pages", 100)],
        "anon-cow-seq" => vec![("region_pages", 100)],
        name if name.starts_with("anon-r-rand") => vec![("tables", 50)],
        "kbuild" => {
            vec![("compiler_pages", 10), ("small_pages", 20), ("page_ns", 500), ("cached_pages", 64)]
        }
        "pigz" | "oltp" => vec![("work_ns", 5_000)],
        "stress-vm" => vec![("mapping_pages", 100)],
        "producer-consumer" => vec![("message_pages", 8)],
        "mass-exit" => vec![("process_pages", 100)],
        "purger" => vec![("range_pages", 20), ("user_ns", 1000)],
        "ebizzy" => vec![("mapped_percent", 50)],
        _ => vec![],
    }
}

#[test]
fn every_workload_gives_everything_back_and_is_determined_by_its_seed() {
    for workload in Workload::ALL {
        let run = || run(workload.name, 4, 500_000, &short(workload.name));
        let log = run();
        assert_eq!(log.left, 0, "{}: blocks are left", workload.name);
        assert!(log.score > 0, "{}: nothing was done", workload.name);
        assert!(log == run(), "{}: two runs differ", workload.name);
    }
}

#[test]
fn every_workload_runs_on_two_cpus() {
    for workload in Workload::ALL {
        assert_eq!(run(workload.name, 2, 300_000, &short(workload.name)).left, 0, "{}", workload.name);
    }
}

#[test]
fn memory_in_use_is_bounded() {
    for workload in Workload::ALL {
        let peak = |ns| run(workload.name, 4, ns, &short(workload.name)).pages_peak;
        let (short, long) = (peak(1_000_000), peak(3_000_000));
        assert!(long <= short + short / 2 + 200, "{}: {short} pages, then {long}", workload.name);
    }
}

#[test]
fn every_parameter_says_what_it_is_and_where_it_is_from() {
    for workload in Workload::ALL {
        for parameter in workload.parameters {
            assert!(!parameter.meaning.is_empty() && !parameter.source.is_empty(), "{}", parameter.key);
            assert!(parameter.default >= parameter.min, "{}: {}", workload.name, parameter.key);
        }
        assert_eq!(Workload::named(workload.name).map(|found| found.summary), Some(workload.summary));
    }
}

#[test]
fn every_workload_is_in_the_book() {
    let page = include_str!("../../../../../docs/book/src/reference/workloads.md");
    for workload in Workload::ALL {
        let name = workload.name.trim_end_matches("-threads").trim_end_matches("-mt");
        assert!(page.contains(&format!("`{name}`")), "{name} is missing");
    }
}
