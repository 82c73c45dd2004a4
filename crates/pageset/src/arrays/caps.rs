//! How large the arrays are.

use super::Class;
use super::batch::{BATCH_MAX, COPIED_TOGETHER, PAGEBLOCKS_MAX};

/// How many blocks of each class one CPU may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caps(pub(crate) [u32; Class::COUNT]);

impl Caps {
    /// Most entries of each class: what fits into 4 KiB a CPU with order 0 as the most used. Guesses, but that half an
    /// array is passed at once, so that two CPUs meet at the depot's lock half as often as with half of this. 24 of order
    /// 9 are 48 MiB a CPU, of a pool that has 16 times as much for each.
    const MOST: [u32; Class::COUNT] = [432, 112, 112, 176, 24];

    /// Capacities for a pool of `frames` frames used by `cpus` CPUs: each class of all CPUs together holds a
    /// sixteenth of the pool at most.
    pub(crate) fn for_pool(frames: u64, cpus: usize) -> Self {
        let share = frames / 16 / cpus.max(1) as u64;
        Self(std::array::from_fn(|class| {
            let fair = share / u64::from(Class::ALL[class].frames());
            u32::try_from(fair).map_or(Self::MOST[class], |fair| fair.min(Self::MOST[class]))
        }))
    }

    const _FITS: () = {
        let entries = [436, 116, 116, 180, 28];
        let mut class = 0;
        while class < Class::COUNT {
            assert!(Self::MOST[class] as usize + COPIED_TOGETHER <= entries[class]);
            assert!(Self::MOST[class] as usize / 2 <= BATCH_MAX);
            class += 1;
        }
        assert!(Self::MOST[Class::Order9 as usize] as usize / 2 <= PAGEBLOCKS_MAX);
    };

    /// No arrays at all.
    pub(crate) const NONE: Self = Self([0; Class::COUNT]);

    pub(crate) fn of(&self, class: Class) -> u32 {
        self.0[class as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pools_have_small_arrays() {
        assert_eq!(Caps::for_pool(16, 8), Caps::NONE);
        assert_eq!(Caps::for_pool(1 << 20, 2), Caps([432, 112, 112, 176, 24]));
        assert_eq!(Caps::for_pool(4096, 2).0, [128, 64, 32, 16, 0]);
    }
}
