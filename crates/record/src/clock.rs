//! The events' clock. Instances are set to `mono`, which is the clock that programs can read.

use rustix::time::{ClockId, clock_gettime};

/// What an instance calls it.
pub(crate) const NAME: &str = "mono";

/// Now, in nanoseconds.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}
