//! Tests races of two threads for the frames of one pageblock. Shuttle tries the orders of the threads'
//! atomic operations, at most two million. Loom tries the orders with at most three preemptions, and every
//! outcome that the language's memory orderings allow.

use std::sync::Arc;
use std::vec::Vec;

#[cfg(loom)]
use loom::thread;
#[cfg(not(loom))]
use shuttle::thread;

use super::*;
use crate::row::FRAMES;

fn order(order: usize) -> Order {
    Order::new(order as u8).expect("an order")
}

/// Frees contiguous frames, unless another thread is changing their block or a frame is not in use.
fn free_all(rows: &Rows, frames: Range<usize>) -> Result<(), Refused> {
    let mut rest = frames;
    while !rest.is_empty() {
        rest.start += rows.free_first(rest.clone())?.0;
    }
    Ok(())
}

/// Returns the blocks in use, after all threads have ended. Checks that each block is aligned to its size.
fn blocks(rows: &Rows) -> Vec<(usize, usize)> {
    let mut blocks = Vec::new();
    let mut frame = 0;
    while frame < FRAMES {
        match rows.look(frame) {
            Use::Block(start, of) => {
                let size = of.frames() as usize;
                assert!(start == frame && frame.is_multiple_of(size), "{of} around {frame:#x} at {start:#x}");
                assert!((frame..frame + size).all(|at| rows.look(at) == Use::Block(start, of)));
                blocks.push((start, of.index()));
                frame += size;
            }
            Use::Free => frame += 1,
            other => panic!("frame {frame:#x} is {other:?}"),
        }
    }
    blocks
}

/// Runs two threads on a pageblock with the `prepared` blocks, in many orders of their steps. `end` gets the
/// results of both threads.
fn race<A: Send + 'static, B: Send + 'static>(
    prepared: &'static [(usize, usize)],
    first: impl Fn(&Rows) -> A + Send + Sync + 'static,
    second: impl Fn(&Rows) -> B + Send + Sync + Copy + 'static,
    end: impl Fn(&Rows, A, B) + Send + Sync + 'static,
) {
    let body = move || {
        let rows = Arc::new(Rows::new());
        rows.open();
        prepared.iter().for_each(|(at, of)| assert!(rows.take_at(*at, order(*of))));
        let other = {
            let rows = rows.clone();
            thread::spawn(move || second(&rows))
        };
        let first = first(&rows);
        let second = other.join().expect("it ends");
        end(&rows, first, second);
    };
    every_order(body);
}

#[cfg(not(loom))]
fn every_order(body: impl Fn() + Send + Sync + 'static) {
    shuttle::check_dfs(body, Some(2_000_000));
}

#[cfg(loom)]
fn every_order(body: impl Fn() + Send + Sync + 'static) {
    use crate::atomic::{Fences, set_fences};

    let body = Arc::new(body);
    for fences in [Fences::Before, Fences::After] {
        set_fences(fences);
        let body = body.clone();
        let mut model = loom::model::Builder::new();
        // At the end, the look at all frames takes thousands of steps. None of these steps races.
        model.max_branches = 100_000;
        model.preemption_bound = Some(3);
        model.check(move || body());
    }
}

/// Thread 2 looks at a block and wants to free a part of it. Thread 1 frees the block meanwhile, and takes a
/// larger block around it.
#[test]
fn a_part_is_not_freed_of_a_block_that_came_after_the_look() {
    race(
        &[(64, 5)],
        |rows| rows.put(64, order(5)).is_ok() && rows.take_at(0, order(7)),
        |rows| rows.free_first(64..96),
        |rows, has_block, freed| match (has_block, freed) {
            // Thread 2 freed its part out of the larger block.
            (true, Ok(_)) => assert_eq!(blocks(rows), [(0, 6), (96, 5)]),
            (true, Err(_)) => assert_eq!(blocks(rows), [(0, 7)]),
            (false, _) => assert_eq!(blocks(rows), []),
        },
    );
}

#[test]
fn a_row_is_not_split_of_a_block_that_came_after_the_look() {
    race(
        &[(64, 5)],
        |rows| rows.put(64, order(5)).is_ok() && rows.take_at(0, order(6)) && rows.take_at(64, order(6)),
        |rows| rows.split(64..96),
        |rows, has_blocks, _| {
            let now = blocks(rows);
            let singles = now.iter().filter(|(_, of)| *of == 0).count();
            match has_blocks {
                true => assert!(now == [(0, 6), (64, 6)] || now[0] == (0, 6) && singles == 64, "{now:?}"),
                // Thread 2 split the block before thread 1 freed it.
                false => assert!([0, 32].contains(&singles), "{now:?}"),
            }
        },
    );
}

/// Both threads free the same block, and one free is wrong. Thread 1 then takes the rows of the block for
/// other blocks.
#[test]
fn a_second_free_of_a_block_frees_nothing_of_those_that_came_after_it() {
    race(
        &[(0, 7)],
        |rows| rows.put(0, order(7)).is_ok() && rows.take_at(0, order(6)) && rows.take_at(64, order(6)),
        |rows| rows.put(0, order(7)).is_ok(),
        |rows, has_blocks, freed| {
            if !freed {
                assert!(has_blocks);
                assert_eq!(blocks(rows), [(0, 6), (64, 6)]);
            } else {
                assert_eq!(blocks(rows), [], "the first free was refused");
            }
        },
    );
    race(
        &[(0, 5)],
        |rows| rows.put(0, order(5)).is_ok() && rows.take_at(0, order(7)),
        |rows| rows.put(0, order(5)).is_ok(),
        |rows, has_block, freed| {
            assert_eq!(has_block, !freed, "one of the two frees is right");
            assert_eq!(blocks(rows).is_empty(), freed);
        },
    );
}

/// One owner frees its part, the first 16 frames of the block, while another owner splits the rest.
#[test]
fn an_owner_of_a_part_can_split_it_while_another_part_is_freed() {
    race(
        &[(0, 6)],
        |rows| free_all(rows, 0..16),
        |rows| rows.split(16..64),
        |rows, freed, split| {
            assert!(![freed, split].contains(&Err(Refused::NoBlock)), "{freed:?} {split:?}");
            if freed.is_ok() && split.is_ok() {
                assert_eq!(rows.free(), FRAMES - 48);
            }
        },
    );
}

/// A wrong free at the same time never makes a right free fail.
#[test]
fn a_free_of_another_order_refuses_nothing_to_the_owner() {
    race(
        &[(0, 7), (128, 5)],
        |rows| {
            rows.put(0, order(7)).expect("it is in use");
            rows.put(128, order(5)).expect("it is in use");
            assert!(rows.take_at(0, order(6)));
            rows.put(0, order(6)).expect("it is in use");
        },
        |rows| [5, 8].map(|of| rows.put(0, order(of)).is_err() && rows.put(128, order(of + 1)).is_err()),
        |rows, (), refused| {
            assert_eq!(refused, [true; 2]);
            assert_eq!(blocks(rows), []);
        },
    );
}

#[test]
fn a_cut_and_a_free_of_the_same_block() {
    race(
        &[(0, 7)],
        |rows| free_all(rows, 40..128),
        |rows| rows.put(0, order(7)),
        |rows, part, all| match (part, all) {
            (Ok(()), Err(_)) => assert_eq!(blocks(rows), [(0, 5), (32, 3)]),
            (Err(_), Ok(_)) => assert_eq!(blocks(rows), []),
            both => panic!("{both:?}"),
        },
    );
}

#[test]
fn a_block_that_goes_out_of_service_is_not_cut() {
    race(
        &[(0, 7)],
        |rows| rows.free_first(32..64).is_ok(),
        |rows| rows.withhold_block(0),
        |rows, freed, withheld| match (freed, withheld) {
            (false, Some(128)) => assert_eq!(rows.look(100), Use::InsideWithheld),
            // Thread 1 had cut the block once or twice before thread 2 withheld it.
            (true, Some(64)) => panic!("{:?}", rows.look(32)),
            (true, None | Some(32)) => assert_eq!(rows.look(32), Use::Free),
            (false, None | Some(64)) => {}
            other => panic!("{other:?}"),
        },
    );
}

/// A look reads several words, at different times.
#[test]
fn a_look_sees_what_was_there() {
    race(
        &[(0, 7)],
        |rows| {
            rows.put(0, order(7)).expect("it is in use");
            assert!(rows.take_at(64, order(6)) && rows.take_at(63, order(0)));
        },
        |rows| [rows.look(100), rows.look(63)],
        |_, (), [around, before]| {
            let block = |start, of| Use::Block(start, order(of));
            assert!([Use::Free, Use::Changing, block(0, 7), block(64, 6)].contains(&around), "{around:?}");
            assert!([Use::Free, Use::Changing, block(0, 7), block(63, 0)].contains(&before), "{before:?}");
        },
    );
}

#[test]
fn of_two_that_want_the_same_rows_none_loses_a_frame() {
    race(
        &[],
        |rows| rows.take_at(0, order(6)),
        |rows| usize::from(rows.take_at(32, order(5))) + usize::from(rows.take_at(40, order(0))),
        |rows, large, small| {
            assert!(!large || small == 0);
            let in_use: usize = blocks(rows).iter().map(|(_, of)| 1 << of).sum();
            assert_eq!(rows.free() + in_use, FRAMES);
        },
    );
}

/// One thread takes a run piece by piece. Meanwhile another thread takes a block within the run, and frees a
/// frame beside the run. The first thread gets the whole run or nothing.
#[test]
fn a_run_is_taken_whole_or_not_at_all() {
    race(
        &[(40, 0)],
        |rows| rows.take_range(20..40),
        |rows| (rows.take_at(32, order(2)), rows.put(40, Order::ZERO).is_ok()),
        |rows, has_run, (has_block, is_freed)| {
            assert!(is_freed && !(has_run && has_block));
            let run: &[_] = if has_run { &[(20, 2), (24, 3), (32, 3)] } else { &[] };
            let block: &[_] = if has_block { &[(32, 2)] } else { &[] };
            assert_eq!(blocks(rows), [run, block].concat());
        },
    );
}

#[test]
fn of_two_runs_that_overlap_one_is_taken_at_most() {
    race(
        &[],
        |rows| rows.take_range(30..100),
        |rows| rows.take_range(60..130),
        |rows, first, second| match (first, second) {
            (true, true) => panic!("both have frames 60 to 100"),
            (true, false) => assert_eq!(blocks(rows), [(30, 1), (32, 5), (64, 5), (96, 2)]),
            (false, true) => assert_eq!(blocks(rows), [(60, 2), (64, 6), (128, 1)]),
            (false, false) => assert_eq!(blocks(rows), []),
        },
    );
}
