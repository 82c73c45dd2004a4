//! A hash of the events of a simulation, in their order. Equal digests show that two runs were equal.

/// A 64-bit hash of the events of a run. Two runs with equal digests made the same decisions at the same
/// times, unless the hashes of different runs are equal by chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digest(u64);

impl Digest {
    /// The digest before any event. The constants are from the hash FNV-1a. Unlike FNV-1a, the digest hashes
    /// words instead of bytes. The digest also rotates each product, because a multiplication alone moves no
    /// high bits to lower places.
    pub(crate) const EMPTY: Self = Self(0xcbf2_9ce4_8422_2325);

    #[inline]
    pub(crate) fn add(self, word: u64) -> Self {
        Self((self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29))
    }

    pub(crate) fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_every_bit_count() {
        let of = |words: &[u64]| words.iter().fold(Digest::EMPTY, |digest, word| digest.add(*word)).value();
        assert_ne!(of(&[1, 2]), of(&[2, 1]));
        for bit in 0..64 {
            assert_ne!(of(&[0, 0, 0]), of(&[0, 1 << bit, 0]), "bit {bit}");
        }
    }
}
