//! Tests `OwnedPages`: pages that keep their pool alive.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, mpsc};
use std::thread;

use bytes::Bytes;
use pageset::{FastPath, Order, OwnedPages, PAGE_BYTES, Pool, ReturnPolicy, Worker};

fn pool() -> Arc<Pool> {
    let returns = ReturnPolicy::default().with_worker(Worker::None);
    let builder = Pool::builder().size(16 << 20).returns(returns).fast_path(FastPath::Locks);
    Arc::new(builder.build().unwrap())
}

#[test]
fn the_last_slice_of_bytes_frees_the_page() {
    let pool = pool();
    let mut page = pool.alloc_owned(Order::ZERO).unwrap();
    page.as_mut()[..5].copy_from_slice(b"hello");
    let start = page.as_ptr();
    let bytes = Bytes::from_owner(page);
    assert_eq!((bytes.len(), bytes.as_ptr()), (PAGE_BYTES, start.cast_const()), "nothing was copied");
    let slice = bytes.slice(1..5);
    drop(bytes);
    assert_eq!((&slice[..], pool.stats().nr_used), (&b"ello"[..], 1));
    drop(slice);
    assert_eq!((pool.stats().nr_used, pool.stats().bad_frees), (0, 0));
}

/// Tests that pools and pages may be used after a panic, because Arrow's buffers accept only owners that are
/// unwind-safe.
#[test]
fn pools_and_pages_may_be_used_after_a_panic() {
    fn takes<T: UnwindSafe + RefUnwindSafe>(_: &T) {}
    let pool = pool();
    takes(&pool);
    takes(&*pool);
    takes(&pool.alloc(Order::ZERO).unwrap());
    let pages = pool.alloc_owned(Order::ZERO).unwrap();
    takes(&pages);
    assert_eq!(pages.pfn().0 as usize * PAGE_BYTES, pages.offset());
}

#[test]
fn owned_pages_are_zero_where_that_is_asked_for() {
    let pool = pool();
    pool.alloc_owned(Order::THP).unwrap().fill(1);
    let pages = pool.alloc_owned_zeroed(Order::THP).unwrap();
    assert!(pages.iter().all(|byte| *byte == 0));
}

#[test]
fn pages_outlive_the_pool_of_whoever_made_them_and_end_on_another_thread() {
    let (send, receive) = mpsc::channel::<OwnedPages>();
    let reader = thread::spawn(move || {
        let sums: Vec<usize> =
            receive.iter().map(|pages| pages.iter().map(|byte| usize::from(*byte)).sum()).collect();
        sums
    });
    let pool = pool();
    for byte in 1..=3 {
        let mut pages = pool.alloc_exact(3).unwrap().into_owned(&pool);
        assert_eq!(pages.page_count(), 3);
        pages.fill(byte);
        send.send(pages).unwrap();
    }
    let last = Arc::downgrade(&pool);
    drop((pool, send));
    assert_eq!(reader.join().unwrap(), [1, 2, 3].map(|byte| byte * 3 * PAGE_BYTES));
    assert!(last.upgrade().is_none(), "the pool went with its last pages");
}

#[test]
fn pages_are_found_in_their_pool() {
    let pool = pool();
    let block = pool.alloc_at(4, Order::new(2).unwrap()).unwrap().into_owned(&pool);
    assert_eq!((block.page_count(), block.offset()), (4, 4 * PAGE_BYTES));
    assert_eq!(block.as_ptr().addr(), pool.start().addr() + block.offset());
    assert_eq!(
        (block.as_ref().len(), block.as_ref().as_ptr()),
        (4 * PAGE_BYTES, block.as_ptr().cast_const())
    );
    assert!(Arc::ptr_eq(block.pool(), &pool));
    drop(block);
    assert!(pool.alloc_at(4, Order::new(2).unwrap()).is_ok(), "the same frames are free again");
}

#[test]
fn parts_of_owned_pages_keep_their_bytes_and_addresses() {
    let pool = pool();
    let mut first = pool.alloc_exact(9).unwrap().into_owned(&pool);
    for (number, page) in (0..).zip(first.chunks_mut(PAGE_BYTES)) {
        page.fill(number);
    }
    let mut last = first.split_off(5);
    last.shrink_to(1..3); // pages 6 and 7 of the nine
    first.shrink_to(2..4);
    for (pages, numbers) in [(&first, [2, 3]), (&last, [6, 7])] {
        assert_eq!(pages.as_ptr().addr(), pool.start().addr() + pages.offset());
        let bytes: Vec<u8> =
            pages.chunks(PAGE_BYTES).flat_map(|page| [page[0], page[PAGE_BYTES - 1]]).collect();
        assert_eq!(bytes, numbers.map(|number| [number; 2]).concat());
    }
}

#[test]
#[should_panic(expected = "do not belong to")]
fn pages_of_one_pool_cannot_own_another() {
    let (one, other) = (pool(), pool());
    let _ = one.alloc(Order::ZERO).unwrap().into_owned(&other);
}
