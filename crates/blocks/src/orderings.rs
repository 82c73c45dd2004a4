//! The parts of the allocator under loom, which tries every outcome that the language allows: bits, stacks, kept blocks.
//!
//! Needs `RUSTFLAGS="--cfg loom"`; `ci/loom.sh` runs it. The allocator as a whole is in `allocator/orderings.rs`.

use std::cell::Cell;
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use pageset_core::{MigrateType, Order, Storage};

use crate::atomic::{Fences, set_fences};
use crate::cpu_lists::Wanted;
use crate::free_bits::{FreeBits, WORDS};
use crate::kept::Kept;
use crate::stack::{BlockIndex, Stack};
use crate::state::BlockState;
use crate::tail_bits::TailBits;

std::thread_local! {
    /// Whether the thread that a model starts begins. Loom remembers one access of each atomic only, so that it does not find all
    /// orders from one of the two beginnings.
    static OTHER_BEGINS: Cell<bool> = const { Cell::new(false) };
}

/// Lets the other thread begin where that is to be tried.
pub(crate) fn begin() {
    if OTHER_BEGINS.get() {
        thread::yield_now();
    }
}

/// Runs a model with at most so many preemptions, with either place of fences and either beginning.
pub(crate) fn check(preemptions: usize, model: impl Fn() + Send + Sync + Copy + 'static) {
    for (fences, other_begins) in
        [Fences::Before, Fences::After].into_iter().flat_map(|fences| [(fences, false), (fences, true)])
    {
        set_fences(fences);
        OTHER_BEGINS.set(other_begins);
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.max_branches = 100_000;
        builder.check(model);
    }
}

/// Memory that loom watches: two accesses that no ordering separates are an error.
struct Frame(UnsafeCell<u32>);

// SAFETY: loom stops the model if two threads access it without an ordering between.
unsafe impl Sync for Frame {}
// SAFETY: as above.
unsafe impl Send for Frame {}

impl Frame {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    fn write(&self) {
        // SAFETY: as for `Sync`.
        self.0.with_mut(|frame| unsafe { *frame += 1 });
    }
}

/// Two users of one block, one after the other: the second one's accesses come after the first one's.
fn handed_over(of: u8) {
    check(3, move || {
        let order = Order::new(of).expect("small");
        let shared = Arc::new((FreeBits::new(), Frame::new()));
        let theirs = Arc::clone(&shared);
        shared.1.write();
        let other = thread::spawn(move || {
            if theirs.0.take(0, order).is_some() {
                theirs.1.write();
                theirs.0.put(0, order).expect("it is in use");
            }
        });
        begin();
        shared.0.put(0, order).expect("it is in use");
        if shared.0.take(0, order).is_some() {
            shared.1.write();
            shared.0.put(0, order).expect("it is in use");
        }
        other.join().expect("no panic");
        assert_eq!(shared.0.count(), order.frames() as usize);
    });
}

#[test]
fn a_page_comes_with_what_its_last_user_did() {
    handed_over(0);
}

#[test]
fn a_block_of_several_words_comes_with_what_its_last_user_did() {
    handed_over(8);
}

/// All of a pageblock is taken while a block of it is, and comes back: one of the two has it, or neither.
fn closed_while_taken(of: u8) {
    check(3, move || {
        let order = Order::new(of).expect("small");
        let bits = Arc::new(FreeBits::new());
        bits.open(0..WORDS);
        let theirs = Arc::clone(&bits);
        let other = thread::spawn(move || {
            let taken = theirs.take(4, order);
            taken.map(|frame| theirs.put(frame, order).expect("it is in use")).is_some()
        });
        begin();
        let closed = bits.close();
        let taken = other.join().expect("no panic");
        assert!(closed || taken || of > 6, "there was something to be had");
        assert_eq!(bits.count(), if closed { 0 } else { 512 });
    });
}

#[test]
fn a_pageblock_is_closed_with_all_of_its_pages_or_not_at_all() {
    closed_while_taken(0);
}

#[test]
fn a_pageblock_is_closed_with_all_of_its_larger_blocks_or_not_at_all() {
    closed_while_taken(7);
}

/// A stack of three. One takes the top; the other takes two and puts the first one back: the top is what it was, and what
/// lies below is not.
#[test]
fn a_stack_whose_top_is_back_is_another_one() {
    check(3, || {
        let stack = Arc::new((Stack::new(), Storage::owned(3, BlockState::new).unwrap()));
        (0..3).for_each(|block| stack.0.push(&stack.1, block));
        let theirs = Arc::clone(&stack);
        let other = thread::spawn(move || {
            let (first, second) = (theirs.0.pop(&theirs.1), theirs.0.pop(&theirs.1));
            first.into_iter().for_each(|block| theirs.0.push(&theirs.1, block));
            second
        });
        begin();
        let mut all: std::vec::Vec<BlockIndex> = stack.0.pop(&stack.1).into_iter().collect();
        all.extend(other.join().expect("no panic"));
        all.extend(core::iter::from_fn(|| stack.0.pop(&stack.1)));
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2]);
    });
}

/// What is found in a stack comes with what was done to it before it was put there, whoever took others meanwhile.
#[test]
fn a_stack_gives_what_was_done_before() {
    check(2, || {
        let stack = Arc::new((Stack::new(), Storage::owned(2, BlockState::new).unwrap(), Frame::new()));
        stack.0.push(&stack.1, 1);
        let theirs = Arc::clone(&stack);
        let pusher = thread::spawn(move || {
            theirs.2.write();
            theirs.0.push(&theirs.1, 0);
        });
        let theirs = Arc::clone(&stack);
        let popper = thread::spawn(move || theirs.0.pop(&theirs.1) == Some(0));
        begin();
        if stack.0.pop(&stack.1) == Some(0) {
            stack.2.write();
        }
        pusher.join().expect("no panic");
        popper.join().expect("no panic");
    });
}

/// Two keep blocks at the same place: what one put there the other one may take, and none is lost or taken twice.
#[test]
fn kept_blocks_are_taken_once() {
    let single = Wanted { order: Order::ZERO, migratetype: MigrateType::Movable };
    check(3, move || {
        let shared = Arc::new((Kept::new(), Frame::new()));
        let theirs = Arc::clone(&shared);
        let other = thread::spawn(move || {
            theirs.1.write();
            theirs.0.try_with(|held| held.push(single, 7)).unwrap_or(false)
        });
        begin();
        let taken = shared.0.try_with(|held| held.pop(single)).flatten();
        if taken.is_some() {
            shared.1.write();
        }
        let put = other.join().expect("no panic");
        assert_eq!(shared.0.frames(), usize::from(put) - usize::from(taken.is_some()));
    });
}

/// A block ends where the next one begins, whoever takes and marks that one meanwhile.
#[test]
fn a_block_ends_where_the_next_one_begins() {
    check(3, || {
        let bits = Arc::new((FreeBits::new(), TailBits::new()));
        // Two frames in use at the beginning; the next two are free.
        bits.0.set(0, 0b1100);
        bits.1.mark_block(0, Order::new(1).expect("small"));
        let theirs = Arc::clone(&bits);
        let other = thread::spawn(move || {
            let order = Order::new(1).expect("small");
            let frame = theirs.0.take(0, order).expect("it is free");
            theirs.1.mark_block(frame, order);
        });
        begin();
        let is_tail = |frame: usize| bits.1.is_tail(frame) && !bits.0.is_free(frame);
        assert!(is_tail(1) && !is_tail(2));
        other.join().expect("no panic");
        assert!(!is_tail(2) && is_tail(3));
    });
}
