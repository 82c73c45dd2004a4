//! The depot without a base: nothing is lost or doubled, and the lowest is used first.

use super::parts::Parts;
use super::put::Put;
use super::*;

const KEPT: Put = Put::Kept { refused: 0 };

fn put_parts(depot: &mut Depot, class: Class, parts: Parts) -> Put {
    let put = depot.put_word(class, parts);
    if let Put::Kept { refused } = put {
        depot.free += u64::from(parts.count - refused) << class.shift();
    }
    put
}

fn put(depot: &mut Depot, frame: u32, class: Class) -> Put {
    put_parts(depot, class, Parts::one(frame, class))
}

fn is_refused(depot: &mut Depot, frame: u32, class: Class) -> bool {
    put(depot, frame, class) == Put::Kept { refused: 1 }
}

fn depot(pageblocks: &[u32]) -> Depot {
    let mut depot = Depot::new(8192, 2, Caps::for_pool(8192, 2)).unwrap();
    pageblocks.iter().for_each(|block| depot.add(block * 512));
    depot
}

#[test]
fn single_pages_come_and_go_and_the_last_one_makes_the_pageblock_whole() {
    let mut depot = depot(&[1]);
    assert_eq!(depot.take_word(0, Class::Order0, 3), Some(Parts { first: 512, bits: 0b111, count: 3 }));
    assert_eq!(
        depot.take_word(0, Class::Order0, 64),
        Some(Parts { first: 512, bits: u64::MAX << 3, count: 61 })
    );
    assert_eq!(depot.free(), 448);
    assert_eq!(put(&mut depot, 513, Class::Order0), KEPT);
    assert!(is_refused(&mut depot, 513, Class::Order0));
    assert_eq!(put(&mut depot, 5, Class::Order0), Put::Foreign);
    assert!(depot.has(513) && !depot.has(512));
    assert_eq!(depot.take_whole(), None, "it is split");
    for frame in (512..576).filter(|frame| *frame != 513) {
        assert_eq!(put(&mut depot, frame, Class::Order0), KEPT);
    }
    assert!(is_refused(&mut depot, 513, Class::Order0));
    assert_eq!(depot.take_whole(), Some(512));
    assert_eq!((depot.free(), depot.take_word(0, Class::Order0, 1)), (0, None));
}

#[test]
fn many_pages_are_put_at_once() {
    let mut depot = depot(&[0]);
    while depot.take_word(0, Class::Order0, 64).is_some() {}
    for word in 0..8 {
        assert_eq!(
            put_parts(&mut depot, Class::Order0, Parts { first: word * 64, bits: !1, count: 63 }),
            KEPT
        );
    }
    let again = Parts { first: 64, bits: 0b11, count: 2 };
    assert_eq!(put_parts(&mut depot, Class::Order0, again), Put::Kept { refused: 1 });
    assert_eq!(again.frames(Class::Order0).collect::<Vec<_>>(), [64, 65]);
    assert_eq!(depot.free(), 505);
}

#[test]
fn each_order_has_pageblocks_of_its_own() {
    let mut depot = depot(&[2, 3]);
    assert_eq!(depot.take_word(0, Class::Order3, 64), Some(Parts { first: 1536, bits: u64::MAX, count: 64 }));
    assert_eq!(depot.take_word(0, Class::Order0, 2), Some(Parts { first: 1024, bits: 0b11, count: 2 }));
    assert_eq!(depot.take_word(0, Class::Order3, 1), None);
    assert_eq!(put(&mut depot, 1544, Class::Order3), KEPT);
    assert!(is_refused(&mut depot, 1560, Class::Order2), "no block of this order");
    assert!(depot.has(1551) && !depot.has(1552));
    assert_eq!(depot.take_word(0, Class::Order3, 9), Some(Parts { first: 1536, bits: 0b10, count: 1 }));
    assert_eq!(depot.free(), 510);
}

#[test]
fn the_lowest_pageblock_is_used_up_first() {
    let mut depot = depot(&[5, 1, 3]);
    let mut all = Vec::new();
    while let Some(taken) = depot.take_word(0, Class::Order3, 64) {
        all.push(taken.first);
    }
    for first in all {
        assert_eq!(put(&mut depot, first + 8, Class::Order3), KEPT);
    }
    let firsts: Vec<_> =
        std::iter::from_fn(|| depot.take_word(0, Class::Order3, 64)).map(|taken| taken.first).collect();
    assert_eq!(firsts, [512, 1536, 2560]);
}

#[test]
fn dissolved_pageblocks_leave_their_free_frames() {
    let mut depot = depot(&[0, 2]);
    assert_eq!(depot.take_word(0, Class::Order1, 64), Some(Parts { first: 1024, bits: u64::MAX, count: 64 }));
    assert_eq!(put(&mut depot, 1030, Class::Order1), KEPT);
    let mut ranges = Vec::new();
    depot.dissolve_all(|range| ranges.push(range));
    assert_eq!(ranges, [1030..1032, 1152..1536]);
    assert_eq!((depot.free(), put(&mut depot, 1034, Class::Order1)), (512, Put::ForeignPart));
    let mut whole = Vec::new();
    depot.release_whole(0, |first| whole.push(first));
    assert_eq!((depot.free(), whole), (0, vec![0]));
}

#[test]
fn pageblocks_that_nobody_needed_are_released() {
    let mut depot = depot(&[0, 1, 2, 3]);
    let released = |depot: &mut Depot| {
        let mut released = Vec::new();
        depot.release_unused(0, |first| released.push(first / 512));
        released
    };
    assert_eq!(released(&mut depot), [], "nobody had the time to need them");
    for _ in 0..2 {
        let taken = depot.take_whole().unwrap();
        assert!(depot.put_whole(taken, |_| false) && !depot.put_whole(taken, |_| true));
    }
    assert_eq!(released(&mut depot), [0, 1, 2]);
    assert_eq!(released(&mut depot), [3]);
    assert_eq!(depot.free(), 0);
}

#[test]
fn the_lowest_pageblocks_are_kept() {
    let mut depot = depot(&[5, 7, 1, 3]);
    let mut released = Vec::new();
    depot.release_unused(3, |first| released.push(first / 512));
    assert_eq!(released, [], "nobody had the time to need them");
    depot.release_unused(3, |first| released.push(first / 512));
    depot.release_whole(2, |first| released.push(first / 512));
    assert_eq!((released, depot.whole_frames()), (vec![5, 7], 1024));
    assert_eq!((depot.take_whole(), depot.take_whole()), (Some(512), Some(3 * 512)));
}

/// Random takes and puts against a set of what is free.
#[test]
fn nothing_is_lost_or_doubled() {
    let mut depot = depot(&(0..16).collect::<Vec<_>>());
    let mut held: Vec<(u32, Class)> = Vec::new();
    let mut random = 3_u64;
    let mut below = |limit: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((random >> 33) % limit as u64) as usize
    };
    for _ in 0..crate::sys::TEST_ROUNDS {
        if below(2) == 0 {
            let class = Class::ALL[below(Class::COUNT)];
            let limit = 1 + below(64) as u32;
            if class == Class::Order9 {
                held.extend(depot.take_whole().map(|frame| (frame, class)));
                continue;
            }
            let Some(taken) = depot.take_word(0, class, limit) else { continue };
            assert!((1..=limit).contains(&taken.count) && taken.count == taken.bits.count_ones());
            held.extend(taken.frames(class).map(|frame| (frame, class)));
        } else {
            for _ in 0..below(100).min(held.len()) {
                let (frame, class) = held.swap_remove(below(held.len()));
                if class == Class::Order9 {
                    assert!(depot.put_whole(frame, |_| false) && !depot.put_whole(frame, |_| true));
                    continue;
                }
                assert_eq!(put(&mut depot, frame, class), KEPT);
                assert!(is_refused(&mut depot, frame, class));
            }
        }
        let out: u32 = held.iter().map(|(_, class)| class.frames()).sum();
        assert_eq!(depot.free() + u64::from(out), 8192);
    }
    let mut frames: Vec<_> = held.iter().flat_map(|(frame, class)| *frame..frame + class.frames()).collect();
    frames.extend((0..8192).filter(|frame| depot.has(*frame)));
    frames.sort_unstable();
    assert!(frames.into_iter().eq(0..8192));
}
