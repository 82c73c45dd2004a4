//! Finds the pool of a handle.
//!
//! A handle has the type of a pointer, but is a number. The low bits of a handle are the index of a slot. The
//! other bits of a handle are a number that no other pool of this copy of the library ever has. Other copies
//! of the library use distant numbers. The library looks handles up, and never follows them as pointers. The
//! functions that find, make and destroy a pool take no lock and wait for no thread, so a child of `fork` may
//! also call them.

use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use crate::config::PAGESET_MAX_POOLS;
use crate::entry::Entry;
use crate::failure::Failure;

/// The most pools at a time.
const SLOTS: usize = PAGESET_MAX_POOLS;
/// The most pools that a process can ever make, because a handle has no room for a larger number.
const NUMBERS: usize = usize::MAX / SLOTS;

/// A pool, made by pageset_create and destroyed by pageset_destroy. The pointer is only a number and must not
/// be followed. A call with a wrong, old or NULL pointer gets EBADF.
pub struct PoolHandle {
    _nothing: [u8; 0],
}

/// The entry of each slot's pool. The pointer is null for a slot without a pool.
static SLOT: [AtomicPtr<Entry>; SLOTS] = [const { AtomicPtr::new(ptr::null_mut()) }; SLOTS];
static MADE: AtomicUsize = AtomicUsize::new(0);
/// The start and the end of the memory of each slot's pool. The table `MEMORY` is separate from the entries,
/// because another thread may destroy a pool during a search for an address. A search must not read the entry
/// of a destroyed pool.
static MEMORY: [[AtomicUsize; 2]; SLOTS] = [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; SLOTS];

/// Returns the entry of a handle, if the handle names a pool.
#[inline(always)]
pub(crate) fn find(handle: *mut PoolHandle) -> Option<&'static Entry> {
    let handle = handle.addr();
    let entry = SLOT[handle % SLOTS].load(Acquire);
    // SAFETY: the pointer is null, or points to the entry of a box that `insert` gave up. `remove` clears the
    // slot before it drops the entry. The header forbids other threads to use a pool while a thread destroys
    // it.
    let entry = unsafe { entry.as_ref() }?;
    (entry.handle == handle).then_some(entry)
}

/// Does the same as [`find`], with an error instead of `None`.
pub(crate) fn open(handle: *mut PoolHandle) -> Result<&'static Entry, Failure> {
    find(handle).ok_or(no_pool())
}

/// The entry of the pool that contains an address. The search begins with the pools that were made first.
pub(crate) fn find_address(address: usize) -> Option<&'static Entry> {
    let first = number(0);
    let has = |slot: &usize| {
        let [start, end] = &MEMORY[*slot];
        start.load(Relaxed) <= address && address < end.load(Relaxed)
    };
    let slot = (first..first + SLOTS).map(|slot| slot % SLOTS).find(has)?;
    // SAFETY: the pointer is null or valid, as in `find`. The header forbids other threads to destroy a pool
    // while the caller has pages of this pool.
    unsafe { SLOT[slot].load(Acquire).as_ref() }
}

/// The error for a handle without an entry.
pub(crate) const fn no_pool() -> Failure {
    Failure::new(libc::EBADF, "no such pool: it was never made, or is destroyed")
}

/// Keeps a pool in a slot. Returns the pool's handle.
pub(crate) fn insert(mut entry: Box<[Entry; 1]>) -> Result<*mut PoolHandle, Failure> {
    let next = |made: usize| (made < NUMBERS).then_some(made + 1);
    let worn = Failure::new(libc::EMFILE, "this process has made all the pools that it ever can");
    let number = number(MADE.fetch_update(Relaxed, Relaxed, next).map_err(|_| worn)?);
    for index in (number..number + SLOTS).map(|slot| slot % SLOTS) {
        if !SLOT[index].load(Relaxed).is_null() {
            continue;
        }
        let handle = number * SLOTS + index;
        entry[0].handle = handle;
        let memory = entry[0].pool.memory();
        let raw = Box::into_raw(entry);
        match SLOT[index].compare_exchange(ptr::null_mut(), raw.cast(), AcqRel, Relaxed) {
            Ok(_) => {
                let start = memory.cast::<u8>().addr().get();
                MEMORY[index][1].store(start + memory.len(), Relaxed);
                MEMORY[index][0].store(start, Relaxed);
                return Ok(ptr::without_provenance_mut(handle));
            }
            // SAFETY: the pointer comes from `into_raw` above, and no other thread has seen it.
            Err(_) => entry = unsafe { Box::from_raw(raw) },
        }
    }
    Err(Failure::new(libc::EMFILE, "there are 4096 pools: destroy those that are not used"))
}

/// The number of the pool that is made after `made` other pools. Each copy of the library in a process begins
/// with a distant number, which depends on the copy's address. Because the numbers differ, the shared library
/// for example refuses a handle of the static library.
fn number(made: usize) -> usize {
    let place = ptr::from_ref(&MADE).addr();
    // A multiplication by the golden ratio spreads the first numbers evenly. Source: Knuth, The Art of
    // Computer Programming, 6.4.
    let first = (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize / SLOTS;
    // The numbers begin with 1, so that no handle is NULL.
    (first + made) % NUMBERS + 1
}

/// Removes a pool from its slot. After the removal, all calls refuse the pool's handle.
pub(crate) fn remove(entry: &'static Entry) -> Result<Box<[Entry; 1]>, Failure> {
    let raw = ptr::from_ref(entry).cast_mut();
    let slot = &SLOT[entry.handle % SLOTS];
    // Clear the range before the slot is free, because another pool may take the slot next.
    MEMORY[entry.handle % SLOTS].iter().for_each(|border| border.store(0, Relaxed));
    slot.compare_exchange(raw, ptr::null_mut(), AcqRel, Relaxed).map_err(|_| no_pool())?;
    // SAFETY: the pointer comes from `into_raw` in `insert`, and only one caller wins the exchange.
    Ok(unsafe { Box::from_raw(raw.cast()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_never_the_same_and_their_handles_never_overflow() {
        let numbers: std::collections::HashSet<_> = (0..10_000).map(number).collect();
        assert!(numbers.len() == 10_000 && !numbers.contains(&0));
        assert!(NUMBERS.checked_mul(SLOTS).and_then(|most| most.checked_add(SLOTS - 1)).is_some());
        assert!(number(0) > 1 << 32, "begins at {}", number(0));
    }
}
