//! The hash FNV-1a with 128 bits. This file stands in place of a hash crate, because the build script uses
//! this file too and should need no crate.

/// A hash of all bytes that were added. The constants are from the description of FNV-1a by its authors
/// (Fowler, Noll, Vo).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fnv(u128);

impl Fnv {
    pub(crate) const fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let step =
            |hash: u128, byte: &u8| (hash ^ u128::from(*byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        self.0 = bytes.iter().fold(self.0, step);
    }

    /// Returns the hash as 32 hexadecimal digits.
    pub(crate) fn text(self) -> String {
        format!("{:032x}", self.0)
    }
}
