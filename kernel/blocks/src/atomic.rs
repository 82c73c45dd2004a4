//! The atomics of this crate: the language's, a model checker's (`--cfg loom`, `--cfg shuttle`), or a wrapper
//! that reports each operation to a simulation (feature `observed`). A model checker decides at each
//! operation which thread runs next.

#[cfg(loom)]
mod sequential;
#[cfg(loom)]
use sequential as chosen;
#[cfg(all(shuttle, not(loom)))]
use shuttle::sync::atomic as chosen;

#[cfg(all(feature = "observed", not(any(loom, shuttle))))]
mod observed;
#[cfg(all(feature = "observed", not(any(loom, shuttle))))]
use observed as chosen;

#[cfg(not(any(loom, shuttle, feature = "observed")))]
use core::sync::atomic as chosen;

pub(crate) use chosen::Ordering;
pub(crate) use chosen::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
pub(crate) use chosen::{AtomicU32, AtomicUsize};
#[cfg(all(feature = "observed", not(any(loom, shuttle))))]
pub use observed::{LineUse, observe_lines};
#[cfg(all(loom, test))]
pub(crate) use sequential::{Fences, set_fences};

/// Lets other threads run for a moment.
pub(crate) fn relax() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(all(shuttle, not(loom)))]
    shuttle::thread::yield_now();
    #[cfg(not(any(loom, shuttle)))]
    core::hint::spin_loop();
}

/// An array whose elements are each built anew. The array is constant except under loom, whose atomics have
/// no constant constructor.
#[cfg(not(loom))]
macro_rules! array {
    ($element:expr) => {
        [const { $element }; _]
    };
}
#[cfg(loom)]
macro_rules! array {
    ($element:expr) => {
        core::array::from_fn(|_| $element)
    };
}
pub(crate) use array;

/// Declares a function that is `const`, except under loom.
#[cfg(not(loom))]
macro_rules! constant {
    ($(#[$attribute:meta])* $visibility:vis fn $($rest:tt)*) => {
        $(#[$attribute])* $visibility const fn $($rest)*
    };
}
#[cfg(loom)]
macro_rules! constant {
    ($(#[$attribute:meta])* $visibility:vis fn $($rest:tt)*) => {
        $(#[$attribute])* $visibility fn $($rest)*
    };
}
pub(crate) use constant;

/// `fetch_update` made of `load` and `compare_exchange`, for the types that replace the language's atomics.
/// The composed `fetch_update` never fails spuriously, so a simulation sees the same operations on every
/// processor.
#[cfg(any(loom, all(feature = "observed", not(shuttle))))]
macro_rules! composed {
    ($value:ty) => {
        #[inline]
        pub(crate) fn fetch_update(
            &self,
            order: Ordering,
            failure: Ordering,
            mut change: impl FnMut($value) -> Option<$value>,
        ) -> Result<$value, $value> {
            let mut before = self.load(failure);
            while let Some(next) = change(before) {
                match self.compare_exchange(before, next, order, failure) {
                    Ok(_) => return Ok(before),
                    Err(now) => before = now,
                }
            }
            Err(before)
        }
    };
}
#[cfg(any(loom, all(feature = "observed", not(shuttle))))]
use composed;
