//! The race catalogue: a test for each row of the table of races in spec §1.7, under each strategy of
//! `host::strategies` that allows what the row does. The model checker shuttle decides at every lock and hook
//! which thread runs next. With `--cfg shuttle` (`cargo xtask ci night shuttle`) shuttle also decides at
//! every atomic operation of the engine.
//!
//! `SHUTTLE_ITERATIONS` sets the number of schedules of the whole catalogue. `SHUTTLE_ROW` (such as "9 ")
//! selects rows by the beginning of a row's name. A failure prints its schedule, which `shuttle::replay`
//! accepts.

mod host;
#[path = "host/schedules.rs"]
mod schedules;

use std::sync::Arc as StdArc;

use host::{PAGE, TestMachine, TestWorld, engine, strategies};
use pageset_core::CpuId;
use pageset_fault::{Access, AddressSpace, FaultError, Huge, Options, Prot, SpaceError, Task};
use schedules::{Shuttle, check, schedules};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

type Engine = StdArc<TestMachine<Shuttle>>;
type Space = StdArc<AddressSpace<TestWorld<Shuttle>>>;
type ShuttleTask = Task<TestWorld<Shuttle>>;

/// One address space with an area of 16 pages. Two leaf tables cover the area.
struct Scene {
    engine: Engine,
    space: Space,
}

impl Scene {
    fn new(options: Options) -> Self {
        let engine = engine::<Shuttle>(3);
        let space = AddressSpace::new(&engine, options).expect("memory");
        let scene = Self { engine, space };
        scene.task(0).map(0..16 * PAGE, Prot::ReadWrite).expect("free");
        scene
    }

    fn task(&self, cpu: u32) -> ShuttleTask {
        Task::new(&self.space, CpuId(cpu)).expect("a task is free")
    }

    /// Runs both closures at the same time, each with its own task.
    fn race(
        &self,
        left: impl FnOnce(&mut ShuttleTask) + Send + 'static,
        right: impl FnOnce(&mut ShuttleTask) + Send + 'static,
    ) {
        let (space, engine) = (StdArc::clone(&self.space), StdArc::clone(&self.engine));
        let other = thread::spawn(move || {
            let mut task = Task::new(&space, CpuId(1)).expect("a task is free");
            right(&mut task);
            drop(engine);
        });
        left(&mut self.task(0));
        other.join().expect("no panic");
    }

    /// Checks the engine's invariants before and after the end of the address space.
    fn finish(self) -> pageset_fault::Census {
        let census = self.engine.check(&[&self.space]).expect("the invariants");
        drop(self.space);
        self.engine.check(&[]).expect("the invariants");
        assert_eq!(self.engine.world().memory.slots_in_use(), 0);
        census
    }

    fn load(&self, page: u64) -> Result<u64, FaultError> {
        load(&mut self.task(2), page)
    }
}

fn add(task: &mut ShuttleTask, page: u64, more: u64) -> Result<(), FaultError> {
    let engine = StdArc::clone(task.space().engine());
    task.access(page * PAGE, Access::Write, |found| engine.world().memory.add(found, more))
}

fn load(task: &mut ShuttleTask, page: u64) -> Result<u64, FaultError> {
    let engine = StdArc::clone(task.space().engine());
    task.access(page * PAGE, Access::Read, |found| engine.world().memory.load(found))
}

/// Row 1 of the races: two tasks fault on the same word. No store may be lost, and no page may leak.
fn same_word(options: Options) {
    let scene = Scene::new(options);
    scene.race(|task| add(task, 3, 1).expect("mapped"), |task| add(task, 3, 10).expect("mapped"));
    assert_eq!(scene.load(3), Ok(11));
    assert_eq!(scene.finish().pages, 1);
}

/// Row 1 of the races, again: two tasks store to a page that a fork has shared, and one of them also loads
/// another page.
fn same_word_of_a_copy(options: Options) {
    let scene = Scene::new(options);
    add(&mut scene.task(0), 3, 5).expect("mapped");
    let child = scene.task(0).fork().expect("memory");
    scene.race(
        |task| add(task, 3, 1).expect("mapped"),
        |task| {
            load(task, 4).expect("mapped");
            add(task, 3, 10).expect("mapped");
            add(task, 4, 10).expect("mapped");
        },
    );
    assert_eq!((scene.load(3), scene.load(4)), (Ok(16), Ok(10)));
    assert_eq!(load(&mut Task::new(&child, CpuId(2)).expect("a task is free"), 3), Ok(5));
    drop(child);
    assert_eq!(scene.finish().pages, 2);
}

/// Row 2 of the races: two faults need the same missing table. Both stores must succeed, and no table may
/// leak.
fn same_table(options: Options) {
    let scene = Scene::new(options);
    scene.race(|task| add(task, 8, 1).expect("mapped"), |task| add(task, 9, 2).expect("mapped"));
    assert_eq!((scene.load(8), scene.load(9)), (Ok(1), Ok(2)));
    assert_eq!(scene.finish().tables, 3);
}

/// Row 3 of the races: a task faults in an area while another task unmaps the area. No page may stay mapped
/// in the unmapped area.
fn unmap_of_the_area(options: Options) {
    let scene = Scene::new(options);
    scene.race(
        |task| {
            for page in [1, 9, 1] {
                assert!(matches!(add(task, page, 1), Ok(()) | Err(FaultError::NoArea(_))));
            }
        },
        |task| task.unmap(0..16 * PAGE).expect("a range of pages"),
    );
    assert_eq!(scene.load(1), Err(FaultError::NoArea(PAGE)));
    assert_eq!(scene.finish().pages, 0);
}

/// Row 4 of the races: a task faults in an area while another task unmaps an adjacent area of the same leaf
/// table. The fault must succeed.
fn unmap_of_the_neighbour(options: Options) {
    let scene = Scene::new(options);
    let mut task = scene.task(0);
    task.protect(4 * PAGE..16 * PAGE, Prot::Read).expect("mapped");
    task.protect(4 * PAGE..16 * PAGE, Prot::ReadWrite).expect("mapped");
    (0..4).for_each(|page| add(&mut task, page, 1).expect("mapped"));
    drop(task);
    scene.race(
        |task| (0..3).for_each(|_| add(task, 5, 1).expect("the neighbour stays")),
        |task| task.unmap(0..4 * PAGE).expect("a range of pages"),
    );
    assert_eq!(scene.load(5), Ok(3));
    assert_eq!(scene.finish().pages, 1);
}

/// Row 5 of the races: a task faults while another task frees the fault's table by a collapse. No store may
/// be lost, and no other page may change.
fn table_goes_away(options: Options) {
    let scene = Scene::new(options);
    add(&mut scene.task(0), 12, 7).expect("mapped");
    scene.race(
        |task| {
            add(task, 9, 1).expect("mapped");
            add(task, 2, 1).expect("mapped");
        },
        |task| task.collapse(8 * PAGE).expect("a whole area"),
    );
    assert_eq!([2, 8, 9, 12].map(|page| scene.load(page).expect("mapped")), [1, 0, 1, 7]);
    scene.finish();
}

/// Row 6 of the races: a task stores to small pages while another task collapses these pages into a huge
/// page. No store may be lost.
fn collapse(options: Options) {
    let scene = Scene::new(options);
    (0..3).for_each(|page| add(&mut scene.task(0), page, 100).expect("mapped"));
    scene.race(
        |task| {
            for page in [1, 5, 1, 2] {
                add(task, page, 1).expect("mapped");
            }
        },
        |task| {
            add(task, 1, 10).expect("mapped");
            task.collapse(0).expect("a whole area");
            add(task, 5, 10).expect("mapped");
        },
    );
    assert_eq!([0, 1, 2, 5].map(|page| scene.load(page).expect("mapped")), [100, 112, 101, 11]);
    scene.finish();
}

/// Row 7 of the races: two stores to an empty range each try to map a huge page, and one of them comes after
/// a load. A store that finds the range in use maps a small page. No store may be lost.
fn huge_and_small(options: Options) {
    let scene = Scene::new(Options { huge: Huge::Always, ..options });
    scene.race(
        |task| add(task, 1, 1).expect("mapped"),
        |task| {
            load(task, 2).expect("mapped");
            add(task, 2, 2).expect("mapped");
        },
    );
    assert_eq!((scene.load(1), scene.load(2)), (Ok(1), Ok(2)));
    let pages = scene.finish().pages;
    assert!(pages == 8 || pages == 2, "{pages}");
}

/// Row 7 of the races, again: one fault maps a gang or a run while another fault maps a page of the same gang
/// or run. No store may be lost.
fn gang_and_small(options: Options) {
    let gang = thread_rng().gen_range(0..2) == 0;
    let scene = Scene::new(Options {
        gang_order: if gang { 2 } else { 0 },
        prefault_order: if gang { 0 } else { 2 },
        ..options
    });
    scene.race(
        |task| (0..3).for_each(|page| add(task, page, 1).expect("mapped")),
        |task| (1..4).rev().for_each(|page| add(task, page, 10).expect("mapped")),
    );
    assert_eq!([0, 1, 2, 3].map(|page| scene.load(page).expect("mapped")), [1, 11, 11, 10]);
    scene.finish();
}

/// Row 8 of the races: a task stores to a page while another task makes the page read-only. After `protect`
/// has returned, the page's contents must not change.
fn protect(options: Options) {
    let scene = Scene::new(options);
    add(&mut scene.task(0), 2, 1).expect("mapped");
    scene.race(
        |task| {
            for page in [2, 3, 2] {
                assert!(matches!(add(task, page, 1), Ok(()) | Err(FaultError::NotAllowed(_))));
            }
        },
        |task| {
            task.protect(0..8 * PAGE, Prot::Read).expect("mapped");
            let before = [2, 3].map(|page| load(task, page));
            thread::yield_now();
            assert_eq!([2, 3].map(|page| load(task, page)), before);
        },
    );
    assert!(add(&mut scene.task(0), 2, 1).is_err());
    scene.finish();
}

/// Row 9 of the races: a task stores to a page while another task reclaims the page. No store may be lost.
fn reclaim(options: Options) {
    let scene = Scene::new(options);
    scene.race(
        |task| (0..4).for_each(|_| add(task, 2, 1).expect("mapped")),
        |task| {
            for _ in 0..3 {
                assert!(matches!(task.reclaim(2 * PAGE), Ok(()) | Err(SpaceError::NotEligible)));
            }
        },
    );
    assert_eq!(scene.load(2), Ok(4));
    assert_eq!(scene.finish().pages, 1);
}

/// Row 9 of the races, again: two faults restore a page while a third task reclaims the page again. No store
/// may be lost.
fn reclaim_and_two_faults(options: Options) {
    let scene = Scene::new(options);
    add(&mut scene.task(0), 2, 1).expect("mapped");
    scene.task(0).reclaim(2 * PAGE).expect("a page of its own");
    let space = StdArc::clone(&scene.space);
    let third = thread::spawn(move || {
        let mut task = Task::new(&space, CpuId(2)).expect("a task is free");
        let _ = task.reclaim(2 * PAGE);
        add(&mut task, 2, 1000).expect("mapped");
    });
    scene.race(|task| add(task, 2, 10).expect("mapped"), |task| add(task, 2, 100).expect("mapped"));
    third.join().expect("no panic");
    assert_eq!(scene.load(2), Ok(1111));
    scene.finish();
}

/// Row 10 of the races: the last task of an address space exits while a debugger's task faults on a page of
/// the same address space. When this address space ends, its counts must be right.
fn late_foreign_access(options: Options) {
    let scene = Scene::new(options);
    let engine = StdArc::clone(&scene.engine);
    let debugger_space = AddressSpace::new(&engine, options).expect("memory");
    let debugger = StdArc::clone(&debugger_space);
    let debuggee = StdArc::downgrade(&scene.space);
    let other = thread::spawn(move || {
        let mut task = Task::new(&debugger, CpuId(1)).expect("a task is free");
        if let Some(space) = debuggee.upgrade() {
            task.fault_in(&space, 4 * PAGE, Access::Write).expect("mapped");
        }
    });
    add(&mut scene.task(0), 3, 1).expect("mapped");
    drop(scene);
    other.join().expect("no panic");
    engine.check(&[&debugger_space]).expect("the invariants");
}

/// Row 11 of the races: two tasks add their counts to the address space and exit. After both tasks have
/// ended, the counts of the address space must be exact.
fn counters_at_exit(options: Options) {
    let scene = Scene::new(options);
    scene.race(
        |task| {
            (0..4).for_each(|page| add(task, page, 1).expect("mapped"));
            task.schedule();
            add(task, 4, 1).expect("mapped");
        },
        |task| {
            (8..12).for_each(|page| add(task, page, 1).expect("mapped"));
            task.schedule();
        },
    );
    assert_eq!((scene.space.counts().rss, scene.space.counts().anon_rss), (9, 9));
    assert_eq!(scene.finish().pages, 9);
}

/// Row 12 of the races: a task stores through a translation while another task removes the translation. The
/// store must not change the page that gets the frame next.
fn stale_translation(options: Options) {
    let scene = Scene::new(options);
    add(&mut scene.task(0), 1, 1).expect("mapped");
    scene.race(
        |task| {
            for _ in 0..2 {
                assert!(matches!(add(task, 1, 1000), Ok(()) | Err(FaultError::NoArea(_))));
            }
        },
        |task| {
            task.unmap(0..8 * PAGE).expect("a range of pages");
            for page in [9, 10, 11] {
                add(task, page, 5).expect("mapped");
            }
            thread::yield_now();
            assert_eq!([9, 10, 11].map(|page| load(task, page)), [Ok(5); 3]);
        },
    );
    scene.finish();
}

/// Row 13 of the races: memory runs out during the faults of two tasks. The faults may fail, but must lose no
/// frame and no table.
fn out_of_memory(options: Options) {
    let scene = Scene::new(options);
    scene.engine.world().frames.fail_after(thread_rng().gen_range(0..6));
    let store = |task: &mut ShuttleTask| {
        for page in [0, 1, 8] {
            assert!(matches!(add(task, page, 1), Ok(()) | Err(FaultError::OutOfMemory(_))));
        }
    };
    scene.race(store, store);
    scene.engine.world().frames.fail_after(-1);
    scene.finish();
}

/// Row 14 of the races: a task forks while another task stores to page 0, then to page 1, again and again.
/// The child must see the stores in their order.
fn fork(options: Options) {
    let scene = Scene::new(options);
    let copies = StdArc::new(std::sync::Mutex::new(Vec::new()));
    let made = StdArc::clone(&copies);
    scene.race(
        |task| {
            for _ in 0..3 {
                add(task, 0, 1).expect("mapped");
                add(task, 1, 1).expect("mapped");
            }
        },
        move |task| made.lock().expect("no panic").push(task.fork().expect("memory")),
    );
    let child = copies.lock().expect("no panic").pop().expect("forked");
    let mut task = Task::new(&child, CpuId(1)).expect("a task is free");
    let (first, second) = (load(&mut task, 0).expect("mapped"), load(&mut task, 1).expect("mapped"));
    assert!(first == second || first == second + 1, "{first} {second}");
    assert_eq!((scene.load(0), scene.load(1)), (Ok(3), Ok(3)));
    drop(task);
    scene.engine.check(&[&scene.space, &child]).expect("the invariants");
    drop(child);
    scene.finish();
}

/// Whether a test case changes areas while faults run. V0 without P3 does not allow changes of areas while
/// faults run.
#[derive(PartialEq)]
enum Areas {
    Stay,
    Change,
}

type Row = (&'static str, Areas, fn(Options));

const CATALOGUE: [Row; 17] = [
    ("1 same word", Areas::Stay, same_word),
    ("1 same word of a copy", Areas::Stay, same_word_of_a_copy),
    ("2 same missing table", Areas::Stay, same_table),
    ("3 unmap of the area", Areas::Change, unmap_of_the_area),
    ("4 unmap of the neighbour", Areas::Change, unmap_of_the_neighbour),
    ("5 table goes away", Areas::Stay, table_goes_away),
    ("6 collapse", Areas::Stay, collapse),
    ("7 huge and small", Areas::Stay, huge_and_small),
    ("7 gang and small", Areas::Stay, gang_and_small),
    ("8 protect", Areas::Change, protect),
    ("9 reclaim", Areas::Stay, reclaim),
    ("9 reclaim and two faults", Areas::Stay, reclaim_and_two_faults),
    ("10 late foreign access", Areas::Stay, late_foreign_access),
    ("11 counters at exit", Areas::Stay, counters_at_exit),
    ("12 stale translation", Areas::Change, stale_translation),
    ("13 out of memory", Areas::Stay, out_of_memory),
    ("14 fork", Areas::Change, fork),
];

#[test]
fn every_row_of_the_catalogue_under_every_strategy() {
    let strategies = strategies();
    let chosen = std::env::var("SHUTTLE_ROW").unwrap_or_default();
    let rows: Vec<_> = CATALOGUE.into_iter().filter(|(row, ..)| row.starts_with(&chosen)).collect();
    let schedules = schedules(rows.len() * strategies.len(), 20);
    let mut cases = 0;
    for (row, areas, scene) in rows {
        for strategy in &strategies {
            if areas == Areas::Change && !strategy.areas_may_change() {
                continue;
            }
            println!("row {row}, {strategy}");
            let options = Options::new(*strategy);
            check(schedules, move || scene(options));
            cases += 1;
        }
    }
    println!("{cases} cases, {schedules} schedules each");
}
