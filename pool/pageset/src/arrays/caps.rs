//! The sizes of the arrays.

use super::Class;
use super::batch::{BATCH_MAX, COPIED_TOGETHER, PAGEBLOCKS_MAX};

/// For each class, the number of blocks that one CPU may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caps(pub(crate) [u32; Class::COUNT]);

/// The arrays of one class, on all CPUs together, hold at most this fraction of the free memory. So all ten
/// classes hold less than a sixth, and free memory is seldom out of reach of other CPUs.
const SHARE: u64 = 64;

impl Caps {
    /// The largest capacity of each class: a page of 4 KiB for each CPU, most of it for order 0. The numbers
    /// are guesses, except for order 0. Half an array moves at once, so with half the capacity two CPUs would
    /// meet at the base's lock twice as often.
    const MOST: [u32; Class::COUNT] = [432, 112, 112, 176, 32, 16, 8, 4, 4, 24];

    /// Capacities for the arrays of `cpus` CPUs while `frames` frames are free.
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

    /// The capacities of a CPU without arrays.
    pub(crate) const NONE: Self = Self([0; Class::COUNT]);

    /// The capacities of a CPU that has an array for single pages only.
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
