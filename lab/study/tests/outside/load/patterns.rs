//! Compares the page events of each workload with its definition.

use std::collections::BTreeSet;

use pageset_core::{CpuId, MigrateType};
use pageset_study::Hold;

use super::world::{Act, Log, run};

const MS: u64 = 1_000_000;

#[test]
fn page_fault1_allocates_single_zeroed_pages_and_one_table_for_512() {
    let log = run("page_fault1", 2, 4 * MS, &[("mapping_pages", 1024)]);
    let allocs = log.allocs(0);
    assert!(allocs.iter().all(|(_, order, _)| order.get() == 0));
    let tables = allocs.iter().filter(|(_, _, kind)| *kind == MigrateType::Unmovable).count();
    let pages = allocs.len() - tables;
    assert!(tables.abs_diff(pages / 512) <= 8, "{tables} tables for {pages} pages");
    let zeroed = |act: &Act| matches!(act, Act::Alloc { fill: pageset_study::Fill::Zeroed, .. });
    assert_eq!(log.acts.iter().filter(|(_, _, act)| zeroed(act)).count(), allocs.len());
    assert_eq!(log.frees().1, 0, "pages are freed where they were allocated");
}

#[test]
fn an_unmap_frees_pages_in_lists_oldest_first() {
    let log = run("page_fault1", 1, 3 * MS, &[("mapping_pages", 600)]);
    let freed = log.acts.iter().filter_map(|(time, _, act)| match act {
        Act::Free { allocated_ns, listed: true, .. } => Some((*time, *allocated_ns)),
        _ => None,
    });
    let freed: Vec<_> = freed.collect();
    assert!(freed.windows(2).all(|pair| pair[0].0 != pair[1].0 || pair[0].1 < pair[1].1));
    let lists: std::collections::BTreeSet<_> = freed.iter().map(|(time, _)| *time).collect();
    assert!(freed.len() / lists.len() > 200, "{} pages are freed in {} lists", freed.len(), lists.len());
}

#[test]
fn the_lru_lock_is_taken_for_15_pages_added_and_32_removed() {
    let log = run("page_fault1", 1, 4 * MS, &[("mapping_pages", 480)]);
    let pages = log.score as f64;
    let locks = log.acts.iter().filter(|(_, _, act)| matches!(act, Act::Lock(..))).count() as f64;
    let expected = pages / 15.0 + pages / 32.0;
    assert!((locks / expected - 1.0).abs() < 0.1, "{locks} instead of {expected}");
}

#[test]
fn threads_share_the_address_space_and_processes_do_not() {
    let shared = |workload| {
        let log = run(workload, 2, MS, &[("mapping_pages", 100)]);
        log.acts.iter().filter(|(_, _, act)| matches!(act, Act::Lock(_, Hold::Shared))).count()
    };
    assert_eq!(shared("page_fault1"), 0);
    assert!(shared("page_fault1-threads") > 500);
}

#[test]
fn page_fault3_allocates_only_tables_after_its_file() {
    let log = run("page_fault3", 1, 20 * MS, &[("mapping_pages", 2048), ("file_pages", 2000)]);
    let allocs = log.allocs(0);
    let file = allocs.iter().filter(|(_, _, kind)| *kind == MigrateType::Movable).count();
    assert_eq!(file, 2000);
    assert!(log.score > 10_000 && (allocs.len() - file) as u64 <= log.score / 512 + 20);
}

#[test]
fn malloc1_allocates_three_pages_an_iteration() {
    let log = run("malloc1", 2, 4 * MS, &[]);
    let pages = log.orders(0)[0] as f64;
    assert!((pages / log.score as f64 - 3.0).abs() < 0.1, "{pages} pages, {} iterations", log.score);
}

#[test]
fn a_sender_recycles_the_blocks_that_come_back_while_they_are_in_its_ring() {
    // Receivers are slower than senders, so three segments of two blocks wait in the socket.
    let blocks = |ring_blocks| {
        let log = run("tcp-stream", 2, 20 * MS, &[("ring_blocks", ring_blocks), ("receive_ns", 20_000)]);
        assert!(log.score > 200, "{} segments", log.score);
        (log.orders(0)[3] as u64, 2 * log.score)
    };
    for too_few in [0, 1, 4] {
        let (allocated, used) = blocks(too_few);
        assert!(allocated >= used, "{allocated} blocks for {used} parts with a ring of {too_few}");
    }
    let (allocated, used) = blocks(64);
    assert!(allocated < 64 && used > 400, "{allocated} blocks for {used} parts with a ring of 64");
}

#[test]
fn fsmark_frees_no_slab_until_it_has_its_files() {
    let (end, file_ns) = (20 * MS, ("file_ns", 10_000));
    let freed_early =
        |log: &Log| log.acts.iter().any(|(at, _, act)| *at < end && matches!(act, Act::Free { .. }));
    let kept = run("fsmark", 2, end, &[file_ns]);
    assert!(!freed_early(&kept) && kept.score > 3000, "{} files", kept.score);
    // An inode takes 1 KiB and a name 192 bytes.
    let pages: u64 = kept.orders(0).iter().enumerate().map(|(order, blocks)| (*blocks as u64) << order).sum();
    let needed = kept.score * 1216 / 4096;
    assert!((needed..needed * 5 / 4).contains(&pages), "{pages} pages for {} files", kept.score);
    let removed = run("fsmark", 2, end, &[file_ns, ("files", 200)]);
    assert!(freed_early(&removed), "files are removed");
}

#[test]
fn controls_allocate_nothing_once_they_run() {
    for control in ["malloc2", "read1", "write1"] {
        let log = run(control, 4, 5 * MS, &[]);
        assert_eq!(log.allocs(MS / 10), [], "{control}");
        assert!(log.score > 1000, "{control}");
    }
}

#[test]
fn a_random_reader_allocates_each_table_once() {
    let log = run("anon-r-rand", 2, 3 * MS, &[("tables", 64)]);
    assert_eq!(log.orders(0)[0], 2 * 64);
    assert_eq!(run("anon-r-rand-mt", 2, 3 * MS, &[("tables", 64)]).orders(0)[0], 64);
    assert!(log.score > 5000);
}

#[test]
fn children_copy_every_page_of_their_parent() {
    for (order, pages) in [(0, 1), (9, 512)] {
        let log = run("anon-cow-seq", 2, 8 * MS, &[("region_pages", 2048), ("page_order", order)]);
        let copies = log.orders(0)[order as usize] - 2048 / pages;
        // Page tables are single pages, as copies of order 0 are. The limits of this test are not exact,
        // because the last children do not copy all of their memory.
        let tables = if order == 0 { 4 * copies / 2048 + 8 } else { 0 };
        assert!(
            (copies - tables..=copies).contains(&(log.score as usize / pages)),
            "{copies}, {}",
            log.score
        );
        assert!(copies > 8, "{copies} copies of order {order}");
        let (same, other) = log.frees();
        assert!(
            same > copies / 2 && other == 0,
            "{same} blocks freed on the CPU that allocated them, {other} on another CPU"
        );
    }
}

#[test]
fn streamed_files_are_freed_by_other_cpus_than_read_them() {
    let log = run("lru-file-mmap-read", 8, 2 * MS, &[("cache_pages", 64)]);
    let (same, other) = log.frees();
    assert!(other > 2 * same, "{same} blocks freed on the CPU that allocated them, {other} on another");
    assert!(log.allocs(0).iter().all(|(_, order, kind)| order.get() == 0 && *kind == MigrateType::Movable));
}

/// The setting that makes the receiver slower than its sender. So messages queue, and slabs fill before the
/// receiver frees the first object.
const SLOW: (&str, u64) = ("receive_ns", 9_000);

/// The setting that keeps tasks from moving to another CPU.
const PINNED: (&str, u64) = ("moves_per_s", 0);

/// Tests that only even CPUs allocate a stream's messages, that other CPUs free most messages, and that the
/// blocks have the expected orders.
#[track_caller]
fn expect_a_stream(workload: &str, set: &[(&str, u64)], expected: &[u8]) {
    let log = run(workload, 4, 8 * MS, &[set, &[SLOW]].concat());
    let (same, other) = log.frees();
    assert!(
        other > 9 * same,
        "{workload}: {same} blocks freed on the CPU that allocated them, {other} on another"
    );
    assert!(log.allocs(0).iter().all(|(cpu, ..)| cpu.0 % 2 == 0), "{workload}");
    let orders = log.orders(0);
    let seen: Vec<_> = (0..11).filter(|order| orders[usize::from(*order)] > 0).collect();
    assert_eq!(seen, expected, "{workload}: {orders:?} for {} messages", log.score);
}

#[test]
fn streams_use_the_orders_of_their_definitions() {
    // With 4 CPUs, slabs of 256-byte objects have order 0, and slabs of 8 KiB objects have order 3.
    expect_a_stream("udp-stream", &[("message_bytes", 4096)], &[0, 3]);
    expect_a_stream("udp-stream", &[("message_bytes", 8192)], &[0, 2]);
    expect_a_stream("af-unix", &[PINNED], &[0, 1, 2, 3]);
    let one_way =
        [PINNED, ("bundled_percent", 100), ("built_by_receiver_percent", 0), ("freed_by_sender_percent", 0)];
    expect_a_stream("sctp-stream", &one_way, &[0, 2, 4]);
}

#[test]
fn a_packet_may_be_made_where_it_is_received_and_its_messages_freed_where_they_were_made() {
    let there = [("built_by_receiver_percent", 100), ("freed_by_sender_percent", 100)];
    let log = run("sctp-stream", 2, 16 * MS, &[&there[..], &[PINNED]].concat());
    let cpus_of = |order: u8| {
        let cpus =
            log.allocs(0).iter().filter(|(_, is, _)| is.get() == order).map(|(cpu, ..)| cpu.0).collect();
        let cpus: std::collections::BTreeSet<_> = cpus;
        cpus.into_iter().collect::<Vec<_>>()
    };
    assert_eq!((cpus_of(2), cpus_of(4)), (vec![0, 1], vec![1]), "single messages have packets of order 2");
    let (same, other) = log.frees();
    assert!(same > 9 * other, "{same} blocks freed on the CPU that allocated them, {other} on another");
}

#[test]
fn ends_that_move_allocate_on_both_cpus() {
    const OFTEN: (&str, u64) = ("moves_per_s", 1000);
    let cases: [(_, &[_]); 2] =
        [("af-unix", &[OFTEN]), ("sctp-stream", &[OFTEN, ("built_by_receiver_percent", 0)])];
    for (workload, set) in cases {
        let log = run(workload, 2, 16 * MS, set);
        let on_first = log.allocs(0).iter().filter(|(cpu, ..)| cpu.0 == 0).count();
        let all = log.allocs(0).len();
        assert!((all / 5..all * 4 / 5).contains(&on_first), "{workload}: {on_first} of {all}");
    }
}

#[test]
fn a_receiver_that_keeps_up_lets_the_sender_use_its_slab_again() {
    let log = run("udp-stream", 2, 4 * MS, &[("receive_ns", 100)]);
    assert!(log.allocs(0).len() < 8 && log.score > 1000);
}

#[test]
fn a_write_to_a_unix_socket_is_blocks_of_orders_3_and_2_1_0() {
    let log = run("af-unix", 2, 8 * MS, &[SLOW, PINNED]);
    let orders = log.orders(0);
    let writes = log.score as usize / 2;
    for (order, count) in orders.iter().enumerate().take(3).skip(1) {
        assert!(count.abs_diff(writes) <= 12, "order {order}: {count} for {writes} writes");
    }
    // The workload also allocates a few slabs for heads: at most 11 heads are under way, and a slab holds 8
    // heads.
    assert!(orders[3].abs_diff(writes) <= 16, "order 3: {} for {writes} writes", orders[3]);
}

#[test]
fn tcp_blocks_return_to_the_cpu_that_allocated_them() {
    let log = run("tcp-stream", 2, 8 * MS, &[]);
    let (same, other) = log.frees();
    assert!(same > other, "{same} blocks freed on the CPU that allocated them, {other} on another");
    let blocks = log.orders(0)[3] as u64;
    assert!(blocks.abs_diff(2 * log.score) <= 20, "{blocks} blocks of order 3 for {} segments", log.score);
}

#[test]
fn hackbench_pipes_need_a_page_for_forty_messages() {
    let log = run("hackbench-pipes", 4, 8 * MS, &[]);
    assert_eq!(log.score, 40 * log.allocs(0).len() as u64);
    let (same, other) = log.frees();
    assert!(other > same, "{same} blocks freed on the CPU that allocated them, {other} on another");
}

#[test]
fn hackbench_sockets_turn_over_slabs_of_remote_frees() {
    let log = run("hackbench-sockets", 4, 20 * MS, &[("message_ns", 200)]);
    // One slab serves many objects, so there are far fewer page events than messages.
    assert!(!log.allocs(0).is_empty() && (log.allocs(0).len() as u64) < log.score / 4);
}

#[test]
fn a_build_frees_in_bulk_where_it_allocated_and_mixes_orders_at_exit() {
    let log = run("kbuild", 4, 40 * MS, &[("compiler_pages", 100), ("small_pages", 50), ("page_ns", 500)]);
    let orders = log.orders(0);
    assert!(orders[0] > 20 * (orders[1] + orders[2] + orders[3]), "{orders:?}");
    assert!(orders[1] > 0 && orders[3] > 0, "{orders:?}");
    let (same, other) = log.frees();
    assert!(
        same > 10 * other && other > 0,
        "{same} blocks freed on the CPU that allocated them, {other} on another"
    );
    let of = |kind| log.allocs(0).iter().filter(|(_, _, found)| *found == kind).count();
    assert!(of(MigrateType::Movable) > of(MigrateType::Unmovable) && of(MigrateType::Reclaimable) > 0);
}

#[test]
fn every_cpu_of_a_build_works() {
    let log = run("kbuild", 4, 4 * MS, &[("compiler_pages", 10), ("small_pages", 50)]);
    for cpu in (0..4).map(CpuId) {
        assert!(log.allocs(0).iter().any(|(found, ..)| *found == cpu));
    }
}

/// Returns the CPUs that free blocks.
fn freeing_cpus(log: &Log) -> BTreeSet<u32> {
    let freed = log.acts.iter().filter(|(.., act)| matches!(act, Act::Free { .. }));
    freed.map(|(_, cpu, _)| cpu.0).collect()
}

#[test]
fn a_consumer_frees_all_that_its_producer_allocates() {
    let log = run("producer-consumer", 5, 1_000_000, &[("message_pages", 8)]);
    assert_eq!(log.frees().0, 0, "each page is freed on another CPU than the one that allocated it");
    assert_eq!(freeing_cpus(&log), BTreeSet::from([1, 3]));
}

#[test]
fn purgers_free_everything_and_nobody_else_does() {
    let settings = [("range_pages", 20), ("user_ns", 1000)];
    let log = run("purger", 12, 1_000_000, &settings);
    assert_eq!(freeing_cpus(&log), (8..12).collect());
    assert!(log.allocs(0).iter().all(|(cpu, ..)| cpu.0 < 8), "purgers allocate nothing");
    assert_eq!(
        freeing_cpus(&run("purger", 4, 1_000_000, &settings)),
        BTreeSet::from([2, 3]),
        "half of the four CPUs free pages"
    );
}

#[test]
fn processes_of_a_mass_exit_end_when_all_are_full() {
    let pages = 100;
    let log = run("mass-exit", 4, 1_000_000, &[("process_pages", pages)]);
    let is_alloc = |act: &Act| matches!(act, Act::Alloc { .. });
    let first_free = log.acts.iter().position(|(.., act)| matches!(act, Act::Free { .. })).unwrap();
    // Each process also allocates one page table.
    let filled = log.acts[..first_free].iter().filter(|(.., act)| is_alloc(act)).count() as u64;
    assert_eq!(filled, 4 * (pages + 1));
    assert_eq!(freeing_cpus(&log).len(), 4);
}
