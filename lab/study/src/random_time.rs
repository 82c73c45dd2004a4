//! Random times with a known mean.
//!
//! With equal times, workers would always queue for a lock in the same order, and the order of their first
//! queue would decide the cost of all later queues. With random times, the order of the workers changes.

use crate::target::Target;

/// Returns a random time from an exponential distribution with the mean `mean_ns`, in nanoseconds.
pub(crate) fn exponential_ns(target: &mut dyn Target, mean_ns: u64) -> u64 {
    scaled(target.random(), mean_ns)
}

fn scaled(random: u64, mean_ns: u64) -> u64 {
    let part = ((random >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    (-part.ln() * mean_ns as f64).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_vary_about_their_mean() {
        let holds = (0..10_000).map(|index| scaled(u64::MAX / 10_000 * index, 600));
        let mean = holds.sum::<u64>() / 10_000;
        assert!((590..=610).contains(&mean), "mean {mean}");
        assert_eq!(scaled(u64::MAX, 600), 0);
        assert!(scaled(0, 600) < 60 * 600);
    }
}
