//! The error for memory that is not a page, for a hint outside the page, and for a source of another length.

use core::fmt;

use crate::BASE_PAGE_BYTES;

/// The reason why this crate refused an operation. A refused operation has written nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPage {
    /// The length is 0 or not a multiple of [`BASE_PAGE_BYTES`].
    Length {
        /// The length.
        bytes: usize,
    },
    /// An address is not a multiple of [`BASE_PAGE_BYTES`].
    Address {
        /// The address.
        address: usize,
    },
    /// The hint lies outside the page.
    Hint {
        /// The hint: an offset in bytes from the page's start.
        offset: usize,
        /// Length of the page.
        bytes: usize,
    },
    /// Source and destination differ in length.
    Lengths {
        /// Length of the destination.
        bytes: usize,
        /// Length of the source.
        source_bytes: usize,
    },
}

impl BadPage {
    /// Checks a page and a hint.
    #[inline]
    pub(crate) fn check(address: usize, bytes: usize, hint: Option<usize>) -> Result<(), Self> {
        if bytes == 0 || !bytes.is_multiple_of(BASE_PAGE_BYTES) {
            return Err(Self::Length { bytes });
        }
        if !address.is_multiple_of(BASE_PAGE_BYTES) {
            return Err(Self::Address { address });
        }
        match hint {
            Some(offset) if offset >= bytes => Err(Self::Hint { offset, bytes }),
            _ => Ok(()),
        }
    }

    /// Checks the source of a copy. [`BadPage::check`] has already checked the page.
    #[inline]
    pub(crate) fn check_source(source: &[u8], bytes: usize) -> Result<(), Self> {
        if source.len() != bytes {
            return Err(Self::Lengths { bytes, source_bytes: source.len() });
        }
        Self::check(source.as_ptr().addr(), bytes, None)
    }
}

impl fmt::Display for BadPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { bytes } => {
                write!(f, "{bytes} bytes are not a page: pass a multiple of {BASE_PAGE_BYTES}, at least one")
            }
            Self::Address { address } => {
                write!(f, "{address:#x} is not the address of a page: align it to {BASE_PAGE_BYTES}")
            }
            Self::Hint { offset, bytes } => {
                write!(
                    f,
                    "the hint {offset} is outside a page of {bytes} bytes: pass an offset in it, or none"
                )
            }
            Self::Lengths { bytes, source_bytes } => {
                write!(
                    f,
                    "{source_bytes} bytes cannot fill a page of {bytes} bytes: pass slices of equal length"
                )
            }
        }
    }
}

impl core::error::Error for BadPage {}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString as _;

    use super::*;

    #[test]
    fn each_mistake_is_told_with_its_remedy() {
        for (error, text) in [
            (BadPage::check(4096, 0, None), "0 bytes are not a page: pass a multiple of 4096, at least one"),
            (
                BadPage::check(4096, 4097, None),
                "4097 bytes are not a page: pass a multiple of 4096, at least one",
            ),
            (BadPage::check(64, 4096, None), "0x40 is not the address of a page: align it to 4096"),
            (
                BadPage::check(4096, 4096, Some(4096)),
                "the hint 4096 is outside a page of 4096 bytes: pass an offset in it, or none",
            ),
            (
                BadPage::check_source(&[0; 3], 4096),
                "3 bytes cannot fill a page of 4096 bytes: pass slices of equal length",
            ),
        ] {
            assert_eq!(error.unwrap_err().to_string(), text);
        }
        assert_eq!(BadPage::check(8192, 4096, Some(4095)), Ok(()));
    }
}
