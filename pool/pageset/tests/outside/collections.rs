//! Collections whose memory is pages.

use std::alloc::Layout;

use allocator_api2::alloc::Allocator;
use pageset::{PAGE_BYTES, PageCollections, Pool, ReturnPolicy, Worker};

const MIB: usize = 1 << 20;

fn pool() -> Pool {
    let returns = ReturnPolicy::default().with_worker(Worker::None);
    Pool::builder().size(64 * MIB).returns(returns).build().unwrap()
}

#[test]
fn collections_live_on_pages() {
    let pool = pool();
    let mut numbers = allocator_api2::vec::Vec::new_in(PageCollections::new(&pool));
    numbers.extend(0..200_000_u64);
    assert!(numbers.iter().copied().eq(0..200_000));
    assert_eq!(numbers.as_ptr().addr() % PAGE_BYTES, 0);
    assert_eq!(pool.stats().nr_used, 512);
    drop(numbers);
    assert_eq!(pool.stats().nr_used, 0);
    let mut large = allocator_api2::vec::Vec::<u8, _>::new_in(PageCollections::new(&pool));
    large.resize(5 * MIB + 1, 7);
    large.reserve_exact(30 * MIB);
    assert!(large.iter().all(|byte| *byte == 7));
    assert!(large.try_reserve(70 * MIB).is_err());
    drop(large);
    assert_eq!((pool.stats().nr_used, pool.stats().bad_frees), (0, 0));
}

#[test]
fn a_collection_may_have_any_alignment() {
    let pool = pool();
    let pages = PageCollections::new(&pool);
    for align in [1, PAGE_BYTES, 2 * MIB, 8 * MIB, 16 * MIB] {
        for bytes in [0, 1, 5 * MIB] {
            let layout = Layout::from_size_align(bytes, align).unwrap();
            let zeros = pages.allocate_zeroed(layout).unwrap();
            // SAFETY: the block was just allocated and zeroed.
            assert!(unsafe { zeros.as_ref() }.iter().all(|byte| *byte == 0));
            let dirty = pages.allocate(layout).unwrap();
            // SAFETY: as above.
            unsafe { dirty.cast::<u8>().write_bytes(7, dirty.len()) };
            for block in [zeros, dirty] {
                assert!(block.len() >= bytes && block.cast::<u8>().addr().get().is_multiple_of(align));
                // SAFETY: the block was allocated with this layout, and is freed once.
                unsafe { pages.deallocate(block.cast(), layout) };
            }
        }
    }
    assert_eq!((pool.stats().nr_used, pool.stats().bad_frees), (0, 0));
    pool.validate().unwrap();
}

#[test]
fn a_map_lives_on_pages_while_it_grows_and_shrinks() {
    let pool = pool();
    let mut squares = hashbrown::HashMap::new_in(PageCollections::new(&pool));
    squares.extend((0..50_000_u64).map(|number| (number, number * number)));
    assert!((0..50_000).all(|number| squares[&number] == number * number));
    let full = pool.stats().nr_used;
    assert!(full >= 256, "{full} pages hold 50 000 pairs of 16 bytes");
    squares.retain(|number, _| *number < 10);
    squares.shrink_to_fit();
    assert_eq!((squares[&9], pool.stats().nr_used), (81, 1));
    drop(squares);
    assert_eq!(pool.stats().nr_used, 0);
}
