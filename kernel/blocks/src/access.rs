//! Two kinds of allocators: one that several threads share, and one for a single thread. The kind decides
//! whether exchanges or stores change the allocator's words.

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;

use crate::atomic::{AtomicU32, AtomicUsize, Ordering, Relaxed, Release, SeqCst};

/// Whether several threads may use an allocator at once: [`Shared`] or [`Alone`].
pub trait Access: fmt::Debug + Sized + sealed::Sealed {
    /// `true` for [`Shared`].
    const IS_SHARED: bool;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Shared {}
    impl Sealed for super::Alone {}
}

/// Any number of threads use the allocator, without a lock. An exchange changes a row, and fails if another
/// thread changed the row first.
#[derive(Debug)]
pub struct Shared;

/// One thread at a time uses the allocator. A store changes a row. An allocator with `Alone` is not [`Sync`],
/// so the compiler keeps the allocator on one thread or behind a lock.
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

/// A word of memory that an allocator changes.
pub(crate) trait Word {
    type Value: Copy;

    fn now(&self) -> Self::Value;

    /// Stores a value in a word that no other thread changes.
    fn store_alone(&self, to: Self::Value);

    fn exchange(
        &self,
        change: impl FnMut(Self::Value) -> Option<Self::Value>,
        order: Ordering,
    ) -> Result<Self::Value, Self::Value>;
}

macro_rules! word {
    ($atomic:ty, $value:ty) => {
        impl Word for $atomic {
            type Value = $value;

            #[inline(always)]
            fn now(&self) -> $value {
                self.load(Relaxed)
            }

            #[inline(always)]
            fn store_alone(&self, to: $value) {
                self.store(to, Release);
            }

            #[inline(always)]
            fn exchange(
                &self,
                change: impl FnMut($value) -> Option<$value>,
                order: Ordering,
            ) -> Result<$value, $value> {
                self.fetch_update(order, if matches!(order, SeqCst) { SeqCst } else { Relaxed }, change)
            }
        }
    };
}
word!(AtomicUsize, usize);
word!(AtomicU32, u32);

/// Changes a word by `change`, and returns the word before the change. If `change` returns `None`, the word
/// stays as it is, and is returned as the error.
#[inline(always)]
pub(crate) fn update<A: Access, W: Word>(
    word: &W,
    order: Ordering,
    mut change: impl FnMut(W::Value) -> Option<W::Value>,
) -> Result<W::Value, W::Value> {
    if A::IS_SHARED {
        return word.exchange(change, order);
    }
    let before = word.now();
    match change(before) {
        Some(after) => {
            word.store_alone(after);
            Ok(before)
        }
        None => Err(before),
    }
}

/// Stores a value in a word that only the caller may change now.
#[inline]
pub(crate) fn set<A: Access>(cell: &AtomicUsize, to: usize) {
    cell.store(to, if A::IS_SHARED { SeqCst } else { Release });
}

/// Adds to a word, with wrap-around. Returns the old word.
#[inline(always)]
pub(crate) fn add<A: Access>(word: &AtomicUsize, more: usize) -> usize {
    if A::IS_SHARED {
        return word.fetch_add(more, Relaxed);
    }
    let before = word.load(Relaxed);
    word.store(before.wrapping_add(more), Relaxed);
    before
}

/// Sets bits of a word. Returns the old word.
#[inline(always)]
pub(crate) fn set_bits<A: Access>(word: &AtomicUsize, bits: usize) -> usize {
    if A::IS_SHARED {
        return word.fetch_or(bits, SeqCst);
    }
    let before = word.load(Relaxed);
    word.store(before | bits, Release);
    before
}

/// Clears bits of a word. Returns the old word.
#[inline(always)]
pub(crate) fn clear_bits<A: Access>(word: &AtomicUsize, bits: usize) -> usize {
    if A::IS_SHARED {
        return word.fetch_and(!bits, SeqCst);
    }
    let before = word.load(Relaxed);
    word.store(before & !bits, Release);
    before
}
