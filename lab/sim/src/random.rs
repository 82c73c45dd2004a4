//! Streams of random numbers. Each purpose has its own stream. So if code draws one more number for one
//! purpose, the numbers for other purposes stay the same.

use pageset_core::CpuId;
use rand::{Rng, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

/// A stream of random numbers.
pub type Stream = Xoshiro256PlusPlus;

/// Returns the stream of random numbers for a seed, a purpose and a CPU.
#[must_use]
pub fn stream(seed: u64, purpose: &str, cpu: CpuId) -> Stream {
    let named = purpose.bytes().fold(mix(seed), |hash, byte| mix(hash ^ u64::from(byte)));
    Stream::seed_from_u64(mix(named ^ u64::from(cpu.0)))
}

/// Mixes a number: every bit of the result depends on every bit of `value`.
pub(crate) fn mix(value: u64) -> u64 {
    SplitMix64::seed_from_u64(value).next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_in_seed_purpose_and_cpu_and_repeat() {
        let first = |seed, purpose, cpu| stream(seed, purpose, CpuId(cpu)).next_u64();
        let all = [first(1, "think", 0), first(2, "think", 0), first(1, "size", 0), first(1, "think", 1)];
        for (index, one) in all.iter().enumerate() {
            assert!(!all[..index].contains(one), "{all:?}");
        }
        assert_eq!(all[0], first(1, "think", 0));
    }
}
