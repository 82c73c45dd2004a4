//! The sizes of the arrays.

use super::Class;
use super::batch::{BATCH_MAX, COPIED_TOGETHER, PAGEBLOCKS_MAX};

/// For each class, the number of blocks that one CPU may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caps(pub(crate) [u32; Class::COUNT]);

/// The part of the free memory that the arrays of one class may hold, on all CPUs together: `1 / 2^halvings`.
///
/// Large arrays make most calls fast. But blocks in arrays do not merge into larger blocks, and other CPUs
/// cannot use these blocks. The pool makes the share smaller when the base has refused several requests in a
/// period. After a period with fewer refused requests, the pool makes the share larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) halvings: u32,
}

impl Share {
    /// The largest share: a quarter of the free memory. (A guess.)
    const LARGEST: u32 = 2;
    /// The smallest share: 1/1024. With a share of 1/1024, a small pool has no arrays. A large pool keeps
    /// some arrays, even if requests for contiguous memory fail again and again.
    const SMALLEST: u32 = 10;
    /// The share of a new pool: 1/64. A new pool does not know yet whether memory will be short.
    pub(crate) const FIRST: Self = Self { halvings: 6 };

    /// The share after the base has refused several requests in a period: 1/16 of the share `self`. Four
    /// calls of [`grown`](Self::grown) undo one call of `shrunk`. (A guess.)
    pub(crate) fn shrunk(self) -> Self {
        Self { halvings: (self.halvings + 4).min(Self::SMALLEST) }
    }

    /// The share after a period with few refused requests: twice the share `self`. `None` if `self` is the
    /// largest share.
    pub(crate) fn grown(self) -> Option<Self> {
        (self.halvings > Self::LARGEST).then(|| Self { halvings: self.halvings - 1 })
    }
}

impl Caps {
    /// The largest capacity of each class. The arrays of one CPU fit into a page of 4 KiB, and order 0 gets
    /// more of the page than any other order. Half an array moves under one hold of the base's lock. With
    /// half the capacity for order 0, CPUs would take the base's lock twice as often. The numbers for the
    /// other classes are guesses.
    const MOST: [u32; Class::COUNT] = [432, 112, 112, 176, 32, 16, 8, 4, 4, 24];

    /// Computes the capacities for the arrays of `cpus` CPUs while `frames` frames are free.
    pub(crate) fn for_free(frames: u64, share: Share, cpus: usize) -> Self {
        let share = (frames >> share.halvings) / cpus.max(1) as u64;
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
        assert_eq!(Caps::for_free(16, Share::FIRST, 8), Caps::NONE);
        assert_eq!(Caps::for_free(1 << 24, Share::FIRST, 2), Caps([432, 112, 112, 176, 32, 16, 8, 4, 4, 24]));
        assert_eq!(Caps::for_free(4096, Share::FIRST, 2).0, [32, 16, 8, 4, 2, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn arrays_grow_to_a_quarter_and_shrink_to_nothing_in_a_small_pool() {
        let mut share = Share::FIRST;
        while let Some(grown) = share.grown() {
            share = grown;
        }
        assert_eq!(Caps::for_free(1280, share, 2).of(Class::Order0), 1280 / 4 / 2);
        for _ in 0..3 {
            share = share.shrunk();
        }
        assert_eq!(Caps::for_free(1280, share, 2), Caps::NONE);
        assert_eq!(Caps::for_free(1 << 20, share, 2).of(Class::Order0), 432);
    }
}
