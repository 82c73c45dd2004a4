//! Tests every pair of `OPERATIONS` on one pageblock: two threads run one operation each. Loom tries the
//! orders of their steps with at most two preemptions, and every outcome that the memory orderings allow.
//!
//! Each pair must end as if one operation had come after the other: the same answers and the same rows. An
//! operation that takes or withholds free frames may also lose to the other operation. The operation that
//! loses must have no effect. If an operation failed or cuts blocks, the blocks may be smaller than if one
//! operation had come after the other. In these pairs, only the use of each frame must be the same.
//!
//! The operations that search (`take_any`, `take_exact`, `take_run`) are left out: they look, and then call
//! `take_at` or `take_range`.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use loom::thread;

use super::*;
use crate::atomic::{Fences, relax, set_fences};
use crate::row::FRAMES;

/// The answer of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Answer {
    /// The operation succeeded with this result.
    Done(usize),
    /// A frame did not have the use that the operation needs. A caller gets an error.
    Refused,
    /// The operation found some frames in use, for good or for a moment. A caller looks elsewhere.
    Lost,
}
use Answer::{Done, Lost, Refused as No};

/// An operation with its name in messages.
type Operation = (&'static str, fn(&Rows) -> Answer);

/// The answers of two operations, and the words of the rows after them. If an operation failed or cuts
/// blocks, each row has its free frames and its frames in use in place of its word.
type End = ([Answer; 2], [usize; ROWS]);

fn order(order: usize) -> Order {
    Order::new(order as u8).expect("an order")
}

fn taken(is_taken: bool) -> Answer {
    if is_taken { Done(0) } else { Lost }
}

fn freed(freed: Result<Row, NoBlock>) -> Answer {
    freed.map_or(No, |_| Done(0))
}

/// Repeats a call while another thread changes the block, as the callers of these operations do.
fn repeated<T>(call: impl Fn() -> Result<T, Refused>) -> Result<T, Refused> {
    loop {
        match call() {
            Err(Refused::Changing) => relax(),
            other => return other,
        }
    }
}

fn free_all(rows: &Rows, frames: Range<usize>) -> Answer {
    let mut rest = frames;
    while !rest.is_empty() {
        match repeated(|| rows.free_first(rest.clone())) {
            Ok((frames, _)) => rest.start += frames,
            Err(_) => return No,
        }
    }
    Done(0)
}

/// Sets up the pageblock before the operations: five blocks in use, four withheld frames, and free frames.
fn prepare(rows: &Rows) {
    rows.open();
    for (frame, of) in [(0, 7), (128, 5), (160, 3), (170, 0), (171, 0)] {
        assert!(rows.take_at(frame, order(of)));
    }
    assert!(rows.withhold(6, 0xf0));
}

/// The operations. A free, a cut and a split meet a block in use of several rows, of one row, or of less. A
/// take meets a free row, free rows, or a part of a row.
const OPERATIONS: &[Operation] = &[
    ("put several rows", |rows| freed(rows.put(0, order(7)))),
    ("put the first half of several rows", |rows| freed(rows.put(0, order(6)))),
    ("put a row", |rows| freed(rows.put(128, order(5)))),
    ("put a part of a row", |rows| freed(rows.put(160, order(3)))),
    ("put two frames of a row", |rows| freed(rows.put_blocks(5, Order::ZERO, 0b11 << 10))),
    ("free several rows", |rows| free_all(rows, 0..128)),
    ("free a row of several", |rows| free_all(rows, 32..64)),
    ("free a part of several rows", |rows| free_all(rows, 60..70)),
    ("free a part of a row", |rows| free_all(rows, 130..140)),
    ("free over several blocks", |rows| free_all(rows, 96..168)),
    ("split several rows", |rows| repeated(|| rows.split(0..128)).map_or(No, |()| Done(0))),
    ("split over two blocks", |rows| repeated(|| rows.split(120..130)).map_or(No, |()| Done(0))),
    ("cut several rows", |rows| repeated(|| rows.cut_before(64)).map_or(No, |()| Done(0))),
    ("cut a row", |rows| repeated(|| rows.cut_before(132)).map_or(No, |()| Done(0))),
    ("withhold several rows", |rows| rows.withhold_block(0).map_or(Lost, Done)),
    ("withhold a row in use", |rows| rows.withhold_block(128).map_or(Lost, Done)),
    ("take several rows", |rows| taken(rows.take_at(256, order(7)))),
    ("take two of these rows", |rows| taken(rows.take_at(320, order(6)))),
    ("take several rows in use", |rows| taken(rows.take_at(0, order(7)))),
    ("take a row", |rows| taken(rows.take_at(288, order(5)))),
    ("take a part of a row", |rows| taken(rows.take_at(300, order(2)))),
    ("take a frame of a row", |rows| rows.take_in_row(5, Order::ZERO).map_or(Lost, Done)),
    ("take blocks of a row", |rows| match rows.take_blocks(9, order(2), 3) {
        0 => Lost,
        heads => Done(heads),
    }),
    ("take a range", |rows| taken(rows.take_range(280..330))),
    ("take a range that overlaps", |rows| taken(rows.take_range(310..360))),
    ("take the pageblock", |rows| taken(rows.close())),
    ("withhold free frames", |rows| taken(rows.withhold(9, 0xff00))),
    ("offer withheld frames", |rows| freed(rows.offer(6, 0x30))),
    ("look at several rows", |rows| look(rows, 100)),
    ("look at a row", |rows| look(rows, 140)),
];

/// Returns the use of a frame as a number, without its block: another operation may cut the block. A look
/// during a change has no answer.
fn look(rows: &Rows, frame: usize) -> Answer {
    match rows.look(frame) {
        Use::Free => Done(1),
        Use::Withheld => Done(2),
        Use::InsideWithheld => Done(3),
        Use::Block(..) => Done(4),
        Use::Changing => Lost,
    }
}

fn end(rows: &Rows, pair: [Operation; 2], answers: [Answer; 2]) -> End {
    let cuts = |(name, _): Operation| ["free", "split", "cut"].iter().any(|word| name.starts_with(word));
    let has_failed = answers.iter().any(|answer| !matches!(answer, Done(_)));
    let use_of = |row: Row| row.free() | row.in_use() << ROW_FRAMES;
    let word = |row: Row| if has_failed || pair.into_iter().any(cuts) { use_of(row) } else { row.0 };
    (answers, core::array::from_fn(|row| word(rows.row(row))))
}

/// Checks that each frame in use lies in a block, aligned to its size.
fn check_blocks(rows: &Rows) {
    for frame in 0..FRAMES {
        if let Use::Block(start, of) = rows.look(frame) {
            let size = of.frames() as usize;
            assert!(start.is_multiple_of(size) && (start..start + size).contains(&frame), "{frame:#x}");
            assert_eq!(rows.look(start), Use::Block(start, of), "{frame:#x}");
        }
    }
}

/// Runs a body in loom's model.
fn model(body: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.max_branches = 100_000;
    model.preemption_bound = Some(2);
    model.check(body);
}

/// Returns the ends that are right: those of both orders of the two operations, and those with one or both
/// operations lost. An operation that withholds a block may find the halves or quarters of the block, where
/// the other operation has cut it.
fn right_ends(pair: [Operation; 2]) -> BTreeSet<End> {
    let ends = Arc::new(Mutex::new(BTreeSet::new()));
    let filled = ends.clone();
    model(move || {
        let withholds = pair.iter().any(|(name, _)| name.starts_with("withhold"));
        let cuts: &[Option<usize>] = if withholds { &[None, Some(64), Some(32), Some(96)] } else { &[None] };
        for cut in cuts {
            for calls in [&[0, 1][..], &[1, 0], &[0], &[1], &[]] {
                let rows = Rows::new();
                prepare(&rows);
                cut.iter().for_each(|cut| rows.cut_before(*cut).expect("a block in use"));
                let mut answers = [Lost; 2];
                calls.iter().for_each(|call| answers[*call] = pair[*call].1(&rows));
                filled.lock().expect("one thread").insert(end(&rows, pair, answers));
            }
        }
    });
    ends.lock().expect("one thread").clone()
}

/// Runs a pair of operations on two threads, and checks each end.
fn check(pair: [Operation; 2]) {
    let [(one, first), (two, second)] = pair;
    let right = Arc::new(right_ends(pair));
    for fences in [Fences::Before, Fences::After] {
        set_fences(fences);
        let right = right.clone();
        model(move || {
            let rows = Arc::new(Rows::new());
            prepare(&rows);
            let other = {
                let rows = rows.clone();
                thread::spawn(move || second(&rows))
            };
            let first = first(&rows);
            let answers = [first, other.join().expect("it ends")];
            let end = end(&rows, pair, answers);
            assert!(right.contains(&end), "{one}, and {two}: {end:x?}, not {right:x?}");
            check_blocks(&rows);
        });
    }
}

#[test]
fn every_pair_of_operations_ends_as_if_one_came_after_the_other() {
    for (at, first) in OPERATIONS.iter().enumerate() {
        for second in &OPERATIONS[at..] {
            check([*first, *second]);
        }
    }
}
