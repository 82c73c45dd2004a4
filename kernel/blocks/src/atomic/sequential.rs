//! Loom's atomics, plus the single total order of all `SeqCst` operations. Loom itself treats `SeqCst` as
//! acquire and release.
//!
//! A compiler makes the total order by fences, in one of two ways: a fence after each `SeqCst` write, or a
//! fence before each `SeqCst` operation. A program has to be right in both ways. A loom test runs once with
//! each way. The run with fences after writes finds a write that lacks a needed `SeqCst`. The run with fences
//! before operations finds such a read.

use std::cell::Cell;

use loom::sync::atomic as loom_atomic;
pub(crate) use loom_atomic::{Ordering, fence};

/// Where a model puts its fences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fences {
    /// Before each `SeqCst` operation.
    Before,
    /// After each `SeqCst` write.
    After,
}

std::thread_local! {
    /// Loom runs all threads of a model on the thread that started it.
    static FENCES: Cell<Fences> = const { Cell::new(Fences::Before) };
}

/// Sets where models of this thread put fences from now on.
#[cfg(test)]
pub(crate) fn set_fences(fences: Fences) {
    FENCES.set(fences);
}

fn fence_at(place: Fences, order: Ordering) {
    if order == Ordering::SeqCst && FENCES.get() == place {
        fence(Ordering::SeqCst);
    }
}

fn between_fences<R>(order: Ordering, write: impl FnOnce() -> R) -> R {
    fence_at(Fences::Before, order);
    let before = write();
    fence_at(Fences::After, order);
    before
}

macro_rules! sequential {
    ($name:ident, $value:ty) => {
        #[derive(Debug)]
        pub(crate) struct $name(loom_atomic::$name);

        impl $name {
            pub(crate) fn new(value: $value) -> Self {
                Self(loom_atomic::$name::new(value))
            }

            pub(crate) fn load(&self, order: Ordering) -> $value {
                fence_at(Fences::Before, order);
                self.0.load(order)
            }

            pub(crate) fn store(&self, value: $value, order: Ordering) {
                between_fences(order, || self.0.store(value, order));
            }

            pub(crate) fn compare_exchange(
                &self,
                from: $value,
                to: $value,
                order: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                fence_at(Fences::Before, order);
                let result = self.0.compare_exchange(from, to, order, failure);
                if result.is_ok() {
                    fence_at(Fences::After, order);
                }
                result
            }

            super::composed!($value);
        }
    };
}

sequential!(AtomicU32, u32);
sequential!(AtomicUsize, usize);

impl AtomicUsize {
    pub(crate) fn fetch_add(&self, value: usize, order: Ordering) -> usize {
        between_fences(order, || self.0.fetch_add(value, order))
    }

    pub(crate) fn fetch_and(&self, value: usize, order: Ordering) -> usize {
        between_fences(order, || self.0.fetch_and(value, order))
    }

    pub(crate) fn fetch_or(&self, value: usize, order: Ordering) -> usize {
        between_fences(order, || self.0.fetch_or(value, order))
    }
}
