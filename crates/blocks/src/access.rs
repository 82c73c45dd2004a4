//! Who may change the frames of pageblocks at the same time.

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;

use crate::atomic::{AtomicUsize, Ordering, Relaxed, Release, SeqCst};

/// Whether several threads may use an allocator at once: [`Shared`] or [`Alone`].
pub trait Access: fmt::Debug + Sized + sealed::Sealed {
    /// Whether they may.
    const IS_SHARED: bool;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Shared {}
    impl Sealed for super::Alone {}
}

/// Any number of threads, without a lock: a row is changed by an exchange, which fails if another thread was faster.
#[derive(Debug)]
pub struct Shared;

/// One thread at a time: a row is changed by a store. The compiler sees to it, since such an allocator is not [`Sync`]. So it goes behind
/// a lock, or belongs to one thread.
///
/// ```compile_fail,E0277
/// fn share<T: Sync>() {}
/// share::<pageset_blocks::BlockAllocator<'_, pageset_blocks::Alone>>();
/// ```
#[derive(Debug)]
pub struct Alone(PhantomData<Cell<()>>);

impl Access for Shared {
    const IS_SHARED: bool = true;
}

impl Access for Alone {
    const IS_SHARED: bool = false;
}

/// Changes a word from what it was when the caller looked. The word as it is, if another thread changed it since.
#[inline(always)]
pub(crate) fn replace<A: Access>(
    cell: &AtomicUsize,
    from: usize,
    to: usize,
    order: Ordering,
) -> Result<(), usize> {
    if A::IS_SHARED {
        return cell.compare_exchange_weak(from, to, order, Relaxed).map(|_| ());
    }
    cell.store(to, Release);
    Ok(())
}

/// Changes a word that the caller has for itself.
#[inline]
pub(crate) fn set<A: Access>(cell: &AtomicUsize, to: usize) {
    cell.store(to, if A::IS_SHARED { SeqCst } else { Release });
}
