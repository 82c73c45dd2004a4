//! Speeds up frees into the first pool of the process: a free into the first pool finds the array without
//! reading the pool.
//!
//! If a thread frees a page after a long time, the thread's read of the `Pages` value misses the CPU's cache.
//! The `Pages` value points to the pool, and the pool points to the array, so two more misses would follow
//! one after another. Most processes have one pool. So a free compares the address in the `Pages` value with
//! the first pool, and uses the facts stored here. The processor predicts the comparison, and does not wait
//! for the read that misses the cache.

use std::ptr;
use std::sync::atomic::{
    AtomicIsize, AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};

use super::{Area, Hot};

/// A copy of the facts that sequences of the first pool need.
///
/// # Invariants
/// While `pool` is the address of a live [`Hot`], `hot` is the same address, and `area` is the
/// [distance](Area::distance) of each thread's area.
#[repr(C)]
pub(super) struct First {
    pool: AtomicPtr<Hot>,
    /// A copy of the address in `pool`. A load of this copy does not wait for the comparison.
    hot: AtomicPtr<Hot>,
    area: AtomicIsize,
}

impl First {
    pub(super) const POOL: usize = std::mem::offset_of!(Self, pool);
    pub(super) const HOT: usize = std::mem::offset_of!(Self, hot);
    pub(super) const AREA: usize = std::mem::offset_of!(Self, area);
}

pub(super) static FIRST: First = First {
    pool: AtomicPtr::new(ptr::null_mut()),
    hot: AtomicPtr::new(ptr::null_mut()),
    area: AtomicIsize::new(0),
};

/// The value of `FIRST.pool` while a thread changes the other fields. No pool has this address.
const CHANGING: *mut Hot = ptr::dangling_mut();

/// Notes a pool as the process's first pool, unless a first pool is noted already.
pub(crate) fn announce(hot: &Hot, area: Area) {
    let address = ptr::from_ref(hot).cast_mut();
    if FIRST.pool.compare_exchange(ptr::null_mut(), CHANGING, Acquire, Relaxed).is_ok() {
        FIRST.hot.store(address, Relaxed);
        FIRST.area.store(area.distance(), Relaxed);
        // INVARIANT: the other two fields were stored before this one.
        FIRST.pool.store(address, Release);
    }
}

/// Notes that a pool is dropped. The caller must call `forget` before other memory can be mapped at the
/// address of `hot`.
pub(super) fn forget(hot: &Hot) {
    let address = ptr::from_ref(hot).cast_mut();
    FIRST.pool.compare_exchange(address, ptr::null_mut(), Release, Relaxed).ok();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::{ArraySet, Caps, Class, Entry};
    use crate::rseq::{HotPage, area, cpu, push_first};

    #[test]
    fn blocks_go_to_their_own_pool_whichever_was_first() {
        let Some(area) = area() else { return };
        let cpus = crate::sys::cpu::possible();
        let page =
            || HotPage::new([(); 2].map(|()| ArraySet::new(cpus, Caps::of_order_0(1)).unwrap())).unwrap();
        let pages = [page(), page()];
        // A pool of another test may be the first pool. If it is, neither pool of this test is the first
        // pool.
        pages.iter().for_each(|page| announce(page.hot(), area));
        let held = |page: &HotPage| page.all().map(|cpu| cpu.stack(Class::Order0).count()).sum::<u32>();
        for page in &pages {
            let pushed = push_first(page.hot(), Entry::dirty(7));
            assert_eq!(held(page), u32::from(pushed == Some(true)), "on {}", cpu(area));
        }
        assert!(pages.iter().map(held).sum::<u32>() <= 1, "at most one pool is the first");
        let addresses = pages.each_ref().map(|page| ptr::from_ref(page.hot()).cast_mut());
        pages.iter().for_each(|page| forget(page.hot()));
        assert!(!addresses.contains(&FIRST.pool.load(Acquire)));
    }
}
