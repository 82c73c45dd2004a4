//! The events' clock. Instances use `mono`, which programs can read too.

use rustix::time::{ClockId, clock_gettime};

/// Its name in an instance.
pub(crate) const NAME: &str = "mono";

/// The current time in nanoseconds.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}
