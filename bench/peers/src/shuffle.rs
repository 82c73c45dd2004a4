//! Random numbers and orders, the same in every run.

/// A xorshift generator, because that adds only a few instructions to the measured loop.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// A generator for one purpose.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next number below `end`.
    #[inline]
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * end as u128) >> 64) as usize
    }

    /// Puts `list` into a random order.
    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for index in (1..list.len()).rev() {
            list.swap(index, self.below(index + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffled_list_has_the_same_elements() {
        let mut list: Vec<_> = (0..1000).collect();
        Random::new(1).shuffle(&mut list);
        assert!(!list.is_sorted());
        list.sort_unstable();
        assert!(list.into_iter().eq(0..1000));
    }
}
