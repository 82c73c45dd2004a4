//! A text buffer of fixed size, which needs no heap.

use std::ffi::{CStr, c_char};
use std::{fmt, io};

/// Number of bytes for one message. The longest message of this library has about 150 bytes.
const TEXT_BYTES: usize = 256;

/// A line of text that ends with zero. A text that does not fit into `TEXT_BYTES` is cut off at the end.
///
/// # Invariants
/// The last byte is zero, and so are all bytes after the first zero.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Text([u8; TEXT_BYTES]);

impl Text {
    pub(crate) const EMPTY: Self = Self([0; TEXT_BYTES]);
}

impl fmt::Write for Text {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let start = self.0.iter().position(|byte| *byte == 0).unwrap_or(TEXT_BYTES);
        let fitting = more.floor_char_boundary(TEXT_BYTES - 1 - start.min(TEXT_BYTES - 1));
        // INVARIANT: the last byte stays zero, and no zero is written before the text's end.
        for (to, byte) in self.0[start..].iter_mut().zip(&more.as_bytes()[..fitting]) {
            *to = if matches!(byte, b'\0' | b'\n') { b' ' } else { *byte };
        }
        if fitting == more.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

/// The system's words for an error. The standard library would put these words on the heap.
pub(crate) struct Os<'a>(pub(crate) &'a io::Error);

impl fmt::Display for Os<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(number) = self.0.raw_os_error() else { return self.0.kind().fmt(f) };
        let mut words: [c_char; 128] = [0; _];
        // SAFETY: the call writes at most `words.len()` bytes, with a zero at the end.
        unsafe { libc::strerror_r(number, words.as_mut_ptr(), words.len()) };
        // SAFETY: the array has a string, which is empty if the call wrote nothing.
        let text = unsafe { CStr::from_ptr(words.as_ptr()) };
        match text.to_str() {
            Ok(text) if !text.is_empty() => write!(f, "{text} (os error {number})"),
            _ => write!(f, "os error {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn read(text: &Text) -> &str {
        CStr::from_bytes_until_nul(&text.0).unwrap().to_str().unwrap()
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_no_character_is_cut() {
        let mut text = Text::EMPTY;
        assert!(writeln!(text, "one {}", 2).is_ok());
        assert_eq!(read(&text), "one 2 ");
        assert!(write!(text, "{}", "\u{e4}".repeat(200)).is_err());
        assert_eq!(read(&text).len(), 254, "an odd number of bytes was left");
        assert!(text.write_str("x").is_ok() && text.write_str("x").is_err());
        assert_eq!(read(&text).len(), 255);
    }

    #[test]
    fn the_system_is_quoted_as_the_standard_library_does() {
        for number in [libc::ENOMEM, libc::EFBIG, 4000] {
            let error = io::Error::from_raw_os_error(number);
            assert_eq!(Os(&error).to_string(), error.to_string());
        }
        assert_eq!(Os(&io::ErrorKind::OutOfMemory.into()).to_string(), "out of memory");
    }
}
