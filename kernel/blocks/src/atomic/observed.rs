//! The language's atomics. Before each operation, they tell an observer of the operation. A simulation sets
//! an observer that charges time for cache lines that CPUs share.

use core::sync::atomic as language;
use std::sync::OnceLock;

pub(crate) use language::Ordering;

/// How an atomic operation uses its cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineUse {
    /// A load.
    Read,
    /// A store.
    Write,
    /// A read-modify-write, whether it succeeds or fails.
    Exchange,
}

type Observer = fn(address: usize, LineUse);

static OBSERVER: OnceLock<Observer> = OnceLock::new();

/// Calls `observer` before every atomic operation of every allocator of this process, on the thread that
/// performs it, with the address of the word. Returns `false` if the process already has another observer.
/// The first observer stays.
///
/// The observer may let other threads run before it returns. The observer must not use the allocator.
pub fn observe_lines(observer: fn(address: usize, LineUse)) -> bool {
    let is_same = |first: &Observer| core::ptr::fn_addr_eq(*first, observer as Observer);
    is_same(OBSERVER.get_or_init(|| observer))
}

#[inline]
fn tell<T>(word: &T, how: LineUse) {
    if let Some(observer) = OBSERVER.get() {
        observer(core::ptr::from_ref(word).addr(), how);
    }
}

macro_rules! observed {
    ($name:ident, $value:ty) => {
        #[derive(Debug)]
        #[cfg_attr(feature = "alloc", derive(zerocopy::FromZeros))]
        #[repr(transparent)]
        pub(crate) struct $name(language::$name);

        impl $name {
            pub(crate) const fn new(value: $value) -> Self {
                Self(language::$name::new(value))
            }

            #[inline]
            pub(crate) fn load(&self, order: Ordering) -> $value {
                tell(self, LineUse::Read);
                self.0.load(order)
            }

            #[inline]
            pub(crate) fn store(&self, value: $value, order: Ordering) {
                tell(self, LineUse::Write);
                self.0.store(value, order);
            }

            #[inline]
            pub(crate) fn compare_exchange(
                &self,
                from: $value,
                to: $value,
                order: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                tell(self, LineUse::Exchange);
                self.0.compare_exchange(from, to, order, failure)
            }

            super::composed!($value);
        }
    };
}

observed!(AtomicU32, u32);
observed!(AtomicUsize, usize);

impl AtomicUsize {
    #[inline]
    pub(crate) fn fetch_add(&self, value: usize, order: Ordering) -> usize {
        tell(self, LineUse::Exchange);
        self.0.fetch_add(value, order)
    }

    #[inline]
    pub(crate) fn fetch_and(&self, value: usize, order: Ordering) -> usize {
        tell(self, LineUse::Exchange);
        self.0.fetch_and(value, order)
    }

    #[inline]
    pub(crate) fn fetch_or(&self, value: usize, order: Ordering) -> usize {
        tell(self, LineUse::Exchange);
        self.0.fetch_or(value, order)
    }
}
