//! How large the arrays are.

use super::Class;
use super::batch::{BATCH_MAX, COPIED_TOGETHER, PAGEBLOCKS_MAX};

/// How many blocks of each class one CPU may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caps(pub(crate) [u32; Class::COUNT]);

/// Of what is free, one class in the arrays of all CPUs holds at most this part. So all of them hold less than a sixth, and what
/// others ask for is seldom hidden in them.
const SHARE: u64 = 64;

impl Caps {
    /// Most entries of each class: what fits into 4 KiB a CPU with order 0 as the most used. Guesses, but that half an
    /// array is passed at once, so that two CPUs meet at the base's lock half as often as with half of this.
    const MOST: [u32; Class::COUNT] = [432, 112, 112, 176, 32, 16, 8, 4, 4, 24];

    /// Capacities for arrays of `cpus` CPUs while so many frames are free.
    pub(crate) fn for_free(frames: u64, cpus: usize) -> Self {
        let share = frames / SHARE / cpus.max(1) as u64;
        Self(std::array::from_fn(|class| {
            let fair = share / u64::from(Class::ALL[class].frames());
            u32::try_from(fair).map_or(Self::MOST[class], |fair| fair.min(Self::MOST[class]))
        }))
    }

    const _FITS: () = {
        let entries = [436, 116, 116, 180, 36, 20, 12, 8, 8, 28];
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

    /// Arrays of single pages only.
    #[cfg(test)]
    pub(crate) fn of_order_0(entries: u32) -> Self {
        let mut caps = Self::NONE;
        caps.0[0] = entries;
        caps
    }

    pub(crate) fn of(&self, class: Class) -> u32 {
        self.0[class as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_small_where_little_is_free() {
        assert_eq!(Caps::for_free(16, 8), Caps::NONE);
        assert_eq!(Caps::for_free(1 << 24, 2), Caps([432, 112, 112, 176, 32, 16, 8, 4, 4, 24]));
        assert_eq!(Caps::for_free(4096, 2).0, [32, 16, 8, 4, 2, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn all_arrays_together_hold_a_sixth_of_what_is_free_at_most() {
        for (free, cpus) in [(1 << 10, 1), (1 << 20, 2), (1 << 20, 64)] {
            let caps = Caps::for_free(free, cpus);
            let held: u64 = Class::ALL.iter().map(|class| u64::from(caps.of(*class) * class.frames())).sum();
            assert!(held * cpus as u64 * 6 <= free, "{free} {cpus}");
        }
    }
}
