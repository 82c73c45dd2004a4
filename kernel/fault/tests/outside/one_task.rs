//! Tests the operations of tasks on one thread. Most tests run under each strategy of `host::strategies`. One
//! test lets memory run out at each possible allocation, and checks that no frame is lost.

use std::sync::Arc;

use crate::host::{PAGE, TestMachine, TestWorld, Threads, engine, machine_with, strategies};
use pageset_core::{CpuId, Order};
use pageset_fault::{
    Access, AddressSpace, FaultError, FrameSource, FrameUse, Geometry, Huge, Options, Prot, SpaceError,
    Strategy, Task,
};

type Space = Arc<AddressSpace<TestWorld<Threads>>>;
type TestTask = Task<TestWorld<Threads>>;

fn space(engine: &Arc<TestMachine<Threads>>, options: Options) -> (Space, TestTask) {
    let space = AddressSpace::new(engine, options).expect("memory for a root");
    let task = Task::new(&space, CpuId(0)).expect("a task is free");
    (space, task)
}

fn store(task: &mut TestTask, va: u64, value: u64) -> Result<(), FaultError> {
    let engine = Arc::clone(task.space().engine());
    task.access(va, Access::Write, |page| engine.world().memory.store(page, value))
}

fn load(task: &mut TestTask, va: u64) -> Result<u64, FaultError> {
    let engine = Arc::clone(task.space().engine());
    task.access(va, Access::Read, |page| engine.world().memory.load(page))
}

/// Runs `test` under each strategy of `host::strategies`.
fn each(test: impl Fn(Options)) {
    strategies().into_iter().for_each(|strategy| {
        println!("{strategy}");
        test(Options::new(strategy));
    });
}

fn p1() -> Options {
    Options::new("P1,V1,R1".parse().expect("a strategy"))
}

#[test]
fn a_store_gets_a_page_of_zeros_and_a_load_the_zero_page() {
    each(|options| {
        let engine = engine(1);
        let (space, mut task) = space(&engine, options);
        task.map(0..20 * PAGE, Prot::ReadWrite).expect("free");
        assert_eq!(load(&mut task, 5 * PAGE + 7), Ok(0));
        assert_eq!((task.stats().zero_pages, task.stats().installed), (1, 0));
        store(&mut task, 5 * PAGE, 55).expect("mapped");
        store(&mut task, 9 * PAGE, 99).expect("mapped");
        assert_eq!((load(&mut task, 5 * PAGE), load(&mut task, 9 * PAGE)), (Ok(55), Ok(99)));
        assert_eq!(load(&mut task, 20 * PAGE), Err(FaultError::NoArea(20 * PAGE)));
        drop(task);
        let census = engine.check(&[&space]).expect("the invariants");
        assert_eq!((census.pages, space.counts().rss, space.counts().tables), (2, 2, 3));
        drop(space);
        assert_eq!(engine.check(&[]).expect("the invariants").tables, 0);
    });
}

#[test]
fn unmapping_a_part_keeps_the_rest_and_frees_tables_nobody_needs() {
    each(|options| {
        let engine = engine(1);
        let (space, mut task) = space(&engine, options);
        task.map(0..24 * PAGE, Prot::ReadWrite).expect("free");
        (0..24).for_each(|page| store(&mut task, page * PAGE, page + 1).expect("mapped"));
        task.unmap(4 * PAGE..18 * PAGE).expect("a range of pages");
        assert_eq!(task.stats().tables_freed, 1, "no area is left in the middle table's range");
        for page in 0..24 {
            let expected =
                if (4..18).contains(&page) { Err(FaultError::NoArea(page * PAGE)) } else { Ok(page + 1) };
            assert_eq!(load(&mut task, page * PAGE), expected);
        }
        task.map(4 * PAGE..18 * PAGE, Prot::ReadWrite).expect("free again");
        assert_eq!(load(&mut task, 5 * PAGE), Ok(0), "unmapped contents do not come back");
        drop(task);
        assert_eq!(engine.check(&[&space]).expect("the invariants").pages, 10);
    });
}

#[test]
fn rights_are_taken_and_given_back() {
    each(|options| {
        let engine = engine(1);
        let (space, mut task) = space(&engine, options);
        task.map(0..8 * PAGE, Prot::ReadWrite).expect("free");
        (0..8).for_each(|page| store(&mut task, page * PAGE, page + 1).expect("mapped"));
        task.protect(2 * PAGE..4 * PAGE, Prot::Read).expect("mapped");
        assert_eq!(store(&mut task, 3 * PAGE, 0), Err(FaultError::NotAllowed(3 * PAGE)));
        assert_eq!(load(&mut task, 3 * PAGE), Ok(4));
        task.protect(2 * PAGE..4 * PAGE, Prot::None).expect("mapped");
        assert_eq!(load(&mut task, 3 * PAGE), Err(FaultError::NotAllowed(3 * PAGE)));
        task.protect(0..8 * PAGE, Prot::ReadWrite).expect("mapped");
        assert_eq!(load(&mut task, 3 * PAGE), Ok(4));
        store(&mut task, 3 * PAGE, 33).expect("mapped");
        assert_eq!((task.stats().cow_reused, task.stats().cow_copied), (1, 0));
        assert_eq!(task.protect(0..9 * PAGE, Prot::Read), Err(SpaceError::NoArea));
        drop(task);
        engine.check(&[&space]).expect("the invariants");
    });
}

#[test]
fn a_fork_shares_until_one_side_writes() {
    each(|options| {
        let engine = engine(1);
        let (parent, mut task) = space(&engine, options);
        task.map(0..8 * PAGE, Prot::ReadWrite).expect("free");
        (0..4).for_each(|page| store(&mut task, page * PAGE, page + 1).expect("mapped"));
        let child = task.fork().expect("memory");
        let mut other = Task::new(&child, CpuId(0)).expect("a task is free");
        store(&mut task, 0, 100).expect("mapped");
        store(&mut other, PAGE, 200).expect("mapped");
        let pages = |task: &mut TestTask| [0, 1, 2, 3].map(|page| load(task, page * PAGE).expect("mapped"));
        assert_eq!(pages(&mut task), [100, 2, 3, 4]);
        assert_eq!(pages(&mut other), [1, 200, 3, 4]);
        assert_eq!((task.stats().cow_copied, other.stats().cow_copied), (1, 1));
        store(&mut other, 0, 300).expect("mapped");
        assert_eq!(other.stats().cow_reused, 1, "the parent has its own copy");
        drop(task);
        drop(other);
        let census = engine.check(&[&parent, &child]).expect("the invariants");
        assert_eq!((census.pages, census.frames), (8, 6));
        drop(child);
        assert_eq!(engine.check(&[&parent]).expect("the invariants").frames, 4);
    });
}

#[test]
fn huge_pages_are_mapped_split_copied_and_collapsed() {
    each(|options| {
        let engine = engine(1);
        let (parent, mut task) = space(&engine, Options { huge: Huge::Always, ..options });
        task.map(0..24 * PAGE, Prot::ReadWrite).expect("free");
        store(&mut task, 10 * PAGE, 1).expect("mapped");
        assert_eq!((task.stats().huge, task.stats().installed), (1, 8));
        store(&mut task, 18 * PAGE, 2).expect("mapped");
        // Make a hole in the range of the second huge page.
        task.unmap(20 * PAGE..21 * PAGE).expect("a range of pages");
        let child = task.fork().expect("memory");
        store(&mut task, 11 * PAGE, 3).expect("mapped");
        assert_eq!(task.stats().cow_copied, 1, "a shared huge page is split, and one page is copied");
        let mut other = Task::new(&child, CpuId(0)).expect("a task is free");
        assert_eq!((load(&mut other, 10 * PAGE), load(&mut other, 11 * PAGE)), (Ok(1), Ok(0)));
        task.collapse(9 * PAGE).expect("small pages, all there");
        assert_eq!([10, 11, 12].map(|page| load(&mut task, page * PAGE).expect("mapped")), [1, 3, 0]);
        assert_eq!(task.collapse(20 * PAGE), Err(SpaceError::NotEligible), "the hole is no area");
        assert_eq!(load(&mut other, 18 * PAGE), Ok(2));
        drop(task);
        drop(other);
        engine.check(&[&parent, &child]).expect("the invariants");
        drop(parent);
        engine.check(&[&child]).expect("the invariants");
    });
}

#[test]
fn a_geometry_without_huge_pages_says_so() {
    let engine = machine_with::<Threads>(1, |config| config.geometry = Geometry::PAGES_16K);
    let wanted = Options { huge: Huge::Always, ..p1() };
    assert!(matches!(AddressSpace::new(&engine, wanted), Err(SpaceError::NoHugePages)));
    let (_space, mut task) = space(&engine, p1());
    assert_eq!(task.collapse(0), Err(SpaceError::NoHugePages));
}

#[test]
fn gangs_map_the_largest_block_that_fits() {
    each(|options| {
        let engine = engine(1);
        let (space, mut task) = space(&engine, Options { gang_order: 2, ..options });
        task.map(2 * PAGE..16 * PAGE, Prot::ReadWrite).expect("free");
        store(&mut task, 9 * PAGE, 1).expect("mapped");
        assert_eq!((task.stats().gangs, task.stats().installed), (1, 4));
        store(&mut task, 2 * PAGE, 1).expect("mapped");
        assert_eq!(task.stats().installed, 6, "four would begin before the area");
        task.unmap(9 * PAGE..10 * PAGE).expect("a range of pages");
        assert_eq!(load(&mut task, 8 * PAGE), Ok(0));
        drop(task);
        let census = engine.check(&[&space]).expect("the invariants");
        assert_eq!((census.pages, census.frames), (5, 6), "a block is freed with its last page");
    });
}

#[test]
fn prefaulting_doubles_in_a_run_and_waste_is_counted() {
    each(|options| {
        let engine = engine(1);
        let (space, mut task) = space(&engine, Options { prefault_order: 2, ..options });
        task.map(0..16 * PAGE, Prot::ReadWrite).expect("free");
        let mut faults = |pages: std::ops::Range<u64>| {
            let before = task.stats().faults;
            pages.for_each(|page| store(&mut task, page * PAGE, 1).expect("mapped"));
            task.stats().faults - before
        };
        // The faults map these runs of pages: 0, 1 to 2, 3 to 6, 7 (the end of the table), 8 to 11, and 12 to
        // 15.
        assert_eq!(faults(0..13), 6);
        assert_eq!((task.stats().installed, task.stats().prefault_extra), (16, 10));
        task.unmap(0..16 * PAGE).expect("a range of pages");
        assert_eq!(task.stats().prefault_wasted, 3);
        drop(task);
        engine.check(&[&space]).expect("the invariants");
    });
}

#[test]
fn a_reclaimed_page_comes_back_as_it_was() {
    each(|options| {
        let engine = engine(1);
        let (parent, mut task) = space(&engine, options);
        task.map(0..8 * PAGE, Prot::ReadWrite).expect("free");
        (0..3).for_each(|page| store(&mut task, page * PAGE, page + 1).expect("mapped"));
        (0..3).for_each(|page| task.reclaim(page * PAGE).expect("a small page of one's own"));
        assert_eq!(task.reclaim(0), Err(SpaceError::NotEligible));
        let child = task.fork().expect("memory");
        let mut other = Task::new(&child, CpuId(0)).expect("a task is free");
        store(&mut task, 0, 10).expect("mapped");
        assert_eq!((load(&mut other, 0), load(&mut other, PAGE)), (Ok(1), Ok(2)));
        assert_eq!((load(&mut task, PAGE), load(&mut task, 0)), (Ok(2), Ok(10)));
        task.unmap(0..8 * PAGE).expect("a range of pages");
        drop(task);
        drop(other);
        assert_eq!(engine.check(&[&parent, &child]).expect("the invariants").reclaimed, 1);
        drop(parent);
        drop(child);
        engine.check(&[]).expect("the invariants");
        assert_eq!(engine.world().memory.slots_in_use(), 0);
    });
}

#[test]
fn cleared_frames_from_the_pool_go_first() {
    let engine = machine_with(2, |config| config.prezeroed = 2);
    let (space, mut task) = space(&engine, p1());
    task.map(0..8 * PAGE, Prot::ReadWrite).expect("free");
    assert_eq!((task.prezero(5), task.prezero(5)), (2, 0));
    (0..3).for_each(|page| store(&mut task, page * PAGE, 1).expect("mapped"));
    assert_eq!((task.stats().prezeroed, engine.prezeroed_frames()), (2, 0));
    assert_eq!(task.prezero(1), 1);
    drop(task);
    engine.check(&[&space]).expect("the invariants");
}

#[test]
fn a_magazine_goes_back_with_its_task_and_before_memory_is_short() {
    let engine = machine_with(1, |config| config.magazine = 5);
    let (space, mut task) = space(&engine, p1());
    task.map(0..64 * PAGE, Prot::ReadWrite).expect("free");
    (0..7).for_each(|page| store(&mut task, page * PAGE, page).expect("mapped"));
    // The allocated frames are the root, a table above the leaf table, the leaf table, and two magazines.
    assert_eq!(engine.world().frames.allocated(), 3 + 10);
    // Let all further allocations fail. The task must then give its magazine's frames back.
    engine.world().frames.fail_after(0);
    assert_eq!(store(&mut task, 63 * PAGE, 1), Err(FaultError::OutOfMemory(63 * PAGE)));
    assert_eq!(engine.world().frames.allocated(), 3 + 7);
    engine.world().frames.fail_after(-1);
    store(&mut task, 7 * PAGE, 7).expect("mapped");
    assert_eq!(load(&mut task, 6 * PAGE), Ok(6));
    drop(task);
    assert_eq!(engine.check(&[&space]).expect("the invariants").frames, 8);
}

#[test]
fn a_fork_and_a_collapse_get_what_the_magazine_holds() {
    let engine = machine_with(1, |config| config.magazine = 32);
    let (parent, mut task) = space(&engine, p1());
    task.map(0..64 * PAGE, Prot::ReadWrite).expect("free");
    store(&mut task, 0, 1).expect("mapped");
    let frames = &engine.world().frames;
    let others: Vec<_> = std::iter::from_fn(|| frames.alloc(CpuId(0), Order::ZERO, FrameUse::Anon)).collect();
    task.collapse(0).expect("the magazine has a block of 8 frames");
    let child = task.fork().expect("the magazine's frames are free again");
    for pfn in others {
        frames.free(CpuId(0), pfn, Order::ZERO).expect("allocated");
    }
    drop(task);
    engine.check(&[&parent, &child]).expect("the invariants");
}

#[test]
fn misuse_is_an_error() {
    let engine = engine(1);
    let (space, mut task) = space(&engine, p1());
    let end = engine.geometry().end();
    for range in [0..0, 1..PAGE, 0..PAGE + 1, end - PAGE..end + PAGE] {
        assert_eq!(task.map(range.clone(), Prot::Read), Err(SpaceError::BadRange), "{range:?}");
    }
    task.map(end - PAGE..end, Prot::Read).expect("the last page");
    assert_eq!(task.map(end - 2 * PAGE..end, Prot::Read), Err(SpaceError::Occupied));
    assert_eq!(task.fault(u64::MAX, Access::Read), Err(FaultError::NoArea(u64::MAX)));
    assert_eq!(task.fault(end, Access::Read), Err(FaultError::NoArea(end)));
    assert_eq!(task.collapse(u64::MAX), Err(SpaceError::NotEligible));
    assert_eq!(task.reclaim(u64::MAX), Err(SpaceError::NotEligible));
    assert_eq!(task.unmap(0..PAGE), Ok(()), "unmapping nothing is no error");
    assert!(matches!(Task::new(&space, CpuId(1)), Err(SpaceError::BadCpu)));
    let second = Task::new(&space, CpuId(0)).expect("a task is free");
    assert!(matches!(Task::new(&space, CpuId(0)), Err(SpaceError::TooManyTasks)));
    drop(second);
    Task::new(&space, CpuId(0)).expect("a task is free again");
}

/// Needs memory for faults, for a fork, for copies, for splits and for a collapse. Returns the first error as
/// text.
fn work(task: &mut TestTask) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    task.map(0..40 * PAGE, Prot::ReadWrite).map_err(|error| text(&error))?;
    let mut outcome = Ok(());
    for page in [0, 1, 2, 3, 9, 17, 33, 34] {
        outcome = outcome.and(store(task, page * PAGE, 1).map_err(|error| text(&error)));
    }
    outcome = outcome.and(load(task, 30 * PAGE).map(drop).map_err(|error| text(&error)));
    outcome = outcome.and(store(task, 30 * PAGE, 1).map_err(|error| text(&error)));
    match task.fork() {
        Ok(child) => {
            let mut other = Task::new(&child, CpuId(0)).map_err(|error| text(&error))?;
            for page in [0, 17] {
                outcome = outcome.and(store(&mut other, page * PAGE, 2).map_err(|error| text(&error)));
                outcome = outcome.and(store(task, page * PAGE, 3).map_err(|error| text(&error)));
            }
        }
        Err(error) => outcome = outcome.and(Err(text(&error))),
    }
    outcome = outcome.and(task.protect(18 * PAGE..20 * PAGE, Prot::Read).map_err(|error| text(&error)));
    match task.collapse(34 * PAGE) {
        // `NotEligible`: page 34 is already part of a huge page.
        Ok(()) | Err(SpaceError::NotEligible) => {}
        Err(error) => outcome = outcome.and(Err(text(&error))),
    }
    outcome.and(task.unmap(35 * PAGE..37 * PAGE).map_err(|error| text(&error)))
}

/// Row 13 of the race catalogue (spec §1.7): memory runs out. Each run lets one more allocation succeed than
/// the run before, until no allocation fails.
#[test]
fn running_out_of_memory_anywhere_loses_nothing() {
    let variants = |options| {
        [
            options,
            Options { huge: Huge::Always, ..options },
            Options { gang_order: 2, ..options },
            Options { prefault_order: 2, ..options },
        ]
    };
    let options = strategies().into_iter().flat_map(|strategy| variants(Options::new(strategy)));
    for (options, magazine) in options.map(|options| (options, 0)).chain([(p1(), 5)]) {
        let mut survived = 0;
        for count in 0.. {
            let engine = machine_with(1, |config| config.magazine = magazine);
            let (space, mut task) = space(&engine, options);
            engine.world().frames.fail_after(count);
            let outcome = work(&mut task);
            let failures = engine.world().frames.failures();
            engine.world().frames.fail_after(-1);
            // Memory is available again, so a store succeeds.
            store(&mut task, 3 * PAGE, 7).unwrap_or_else(|error| panic!("{options:?} {count}: {error}"));
            drop(task);
            engine.check(&[&space]).unwrap_or_else(|error| panic!("{options:?} {count}: {error}"));
            drop(space);
            engine.check(&[]).unwrap_or_else(|error| panic!("{options:?} {count}: {error}"));
            if failures == 0 {
                assert_eq!(outcome, Ok(()), "{options:?}");
                break;
            }
            survived += 1;
        }
        assert!(survived >= 10, "{options:?}: {survived}");
    }
}

#[test]
fn a_table_that_is_missing_is_a_lack_of_memory() {
    let engine = machine_with(1, |config| config.tables = 3);
    let (space, mut task) = space(&engine, p1());
    task.map(0..16 * PAGE, Prot::ReadWrite).expect("free");
    store(&mut task, 0, 1).expect("root, one above the leaf, leaf");
    assert_eq!(store(&mut task, 8 * PAGE, 1), Err(FaultError::OutOfMemory(8 * PAGE)));
    drop(task);
    engine.check(&[&space]).expect("the invariants");
}

#[test]
fn deltas_are_folded_as_each_strategy_says() {
    let quick = |account: &str, faults: u64| {
        let engine = engine(1);
        let strategy: Strategy = format!("P1,V1,{account}").parse().expect("a strategy");
        let (space, mut task) = space(&engine, Options::new(strategy));
        task.map(0..100 * PAGE, Prot::ReadWrite).expect("free");
        (0..faults).for_each(|page| store(&mut task, page * PAGE, 1).expect("mapped"));
        let before = space.quick_counts().rss;
        task.schedule();
        let after = space.quick_counts().rss;
        drop(task);
        assert_eq!(space.counts().rss, faults as i64);
        engine.check(&[&space]).expect("the invariants");
        (before, after)
    };
    assert_eq!(quick("R1", 70), (70, 70));
    assert_eq!(quick("R2", 70), (0, 70), "folded when scheduled");
    assert_eq!(quick("R3", 65), (0, 0), "65 faults stay with the task");
    assert_eq!(quick("R3", 66), (65, 65), "the 66th fault adds the counts of the faults before it");
    assert_eq!(quick("R4", 33), (32, 32), "a batch of 32");
}

#[test]
fn a_fault_in_another_machines_space_is_refused() {
    let (here, there) = (engine(1), engine(1));
    let ((space, mut task), (foreign, mut owner)) = (space(&here, p1()), space(&there, p1()));
    owner.map(0..8 * PAGE, Prot::ReadWrite).expect("free");
    assert_eq!(task.fault_in(&foreign, PAGE, Access::Write), Err(FaultError::OtherMachine(PAGE)));
    drop((task, owner));
    here.check(&[&space]).expect("the invariants");
    assert_eq!(there.check(&[&foreign]).expect("the invariants").pages, 0);
}
