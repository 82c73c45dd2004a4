//! The clock of the events. Tracing instances use the clock `mono`, which programs can read too.

use rustix::time::{ClockId, clock_gettime};

/// The clock's name in a tracing instance.
pub(crate) const NAME: &str = "mono";

/// The current time of this clock in nanoseconds.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}
