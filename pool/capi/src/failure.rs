//! The failure of a call: a number for the program, and a message for its log. A failure does not use the
//! heap, because the heap may be exhausted, or may itself take its memory from a pool.

use std::cell::Cell;
use std::ffi::{c_char, c_int};
use std::fmt::{self, Write as _};
use std::io;
use std::panic::catch_unwind;

use pageset::{AllocError, BuildError};

use crate::text::{Os, Text};

/// A failure of a call. If a failure's reason is `Text`, the words are already in the thread's `TEXT`.
pub(crate) struct Failure {
    errno: c_int,
    reason: Reason,
}

/// The reason of a failure, which a thread keeps for [`pageset_message`].
#[derive(Clone, Copy)]
enum Reason {
    Nothing,
    /// An error that becomes words when the program asks for the message.
    Alloc(AllocError),
    Words(&'static str),
    /// The words are in `TEXT`.
    Text,
}

thread_local! {
    // `LAST`, `TEXT` and `MESSAGE` have no destructors, because the first use of a value with a destructor
    // uses the heap. The values are cells, because a signal handler may interrupt the use of a value.
    static LAST: Cell<Reason> = const { Cell::new(Reason::Nothing) };
    static TEXT: Cell<Text> = const { Cell::new(Text::EMPTY) };
    static MESSAGE: Cell<Text> = const { Cell::new(Text::EMPTY) };
}

impl Failure {
    pub(crate) const fn new(errno: c_int, words: &'static str) -> Self {
        Self { errno, reason: Reason::Words(words) }
    }

    /// Makes a failure with the message `words`. The words replace the thread's `TEXT`, so the caller must
    /// report the failure.
    pub(crate) fn with_text(errno: c_int, words: fmt::Arguments<'_>) -> Self {
        let mut text = Text::EMPTY;
        // Words that do not fit are cut off.
        let _ = text.write_fmt(words);
        TEXT.set(text);
        Self { errno, reason: Reason::Text }
    }

    /// Makes a failure with the system's words and error number.
    pub(crate) fn system(what: &str, error: &io::Error) -> Self {
        Self::with_text(number_of(error), format_args!("{what}: {}", Os(error)))
    }
}

/// The `errno` of a system error.
fn number_of(error: &io::Error) -> c_int {
    let by_kind = if error.kind() == io::ErrorKind::OutOfMemory { libc::ENOMEM } else { libc::EIO };
    error.raw_os_error().unwrap_or(by_kind)
}

pub(crate) const NULL_OUTPUT: Failure =
    Failure::new(libc::EINVAL, "a result cannot be written to NULL: give the address of a variable");
pub(crate) const BAD_ORDER: Failure =
    Failure::new(libc::EINVAL, "an order is 0 to 10: a block has 4 KiB << order");
pub(crate) const FORKED: Failure =
    Failure::new(libc::EPERM, "the pool belongs to the parent process: a child may only read its pages");

impl From<AllocError> for Failure {
    fn from(error: AllocError) -> Self {
        let errno = match error {
            AllocError::OutOfMemory { .. } | AllocError::NoRun { .. } | AllocError::HeapExhausted => {
                libc::ENOMEM
            }
            AllocError::OverCapacity => libc::EDQUOT,
            AllocError::Forked => libc::EPERM,
            AllocError::NotFree => libc::EBUSY,
            AllocError::WouldBlock => libc::EAGAIN,
            _ => libc::EINVAL,
        };
        Self { errno, reason: Reason::Alloc(error) }
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        let errno = match &error {
            BuildError::AddressSpace { .. }
            | BuildError::HeapExhausted { .. }
            | BuildError::HugetlbShortage { .. }
            | BuildError::HugetlbOutOfReach { .. } => libc::ENOMEM,
            BuildError::LockLimit { source, .. } => source.raw_os_error().unwrap_or(libc::ENOMEM),
            BuildError::System { source, .. }
            | BuildError::Memfd { source, .. }
            | BuildError::Denied { source, .. } => number_of(source),
            _ => libc::EINVAL,
        };
        let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref());
        match source {
            Some(source) => Self::with_text(errno, format_args!("{error}: {}", Os(source))),
            None => Self::with_text(errno, format_args!("{error}")),
        }
    }
}

/// Keeps the failure's reason for `pageset_message`, and returns its number.
#[cold]
#[inline(never)]
pub(crate) fn fail(failure: Failure) -> c_int {
    LAST.set(failure.reason);
    failure.errno
}

/// The words of this thread's last failure.
fn last() -> Text {
    let mut text = Text::EMPTY;
    // Words that do not fit are cut off.
    let _ = match LAST.get() {
        Reason::Nothing => Ok(()),
        Reason::Alloc(error) => write!(text, "{error}"),
        Reason::Words(words) => text.write_str(words),
        Reason::Text => return TEXT.get(),
    };
    text
}

/// Runs a call, and returns its result as a number. Also catches a panic, because a panic must not unwind
/// through C.
pub(crate) fn number(call: impl FnOnce() -> Result<(), Failure>) -> c_int {
    let call = std::panic::AssertUnwindSafe(call);
    let panicked = Failure::new(
        libc::ENOTRECOVERABLE,
        "a mistake in pageset (its panic is on stderr): stop using this pool, and report it",
    );
    match catch_unwind(call) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => fail(failure),
        Err(_) => fail(panicked),
    }
}

/// Explains this thread's last failed call in one line of English, and says what to do. The string is empty
/// if no call has failed yet, and is never NULL. The string is valid until this thread calls pageset_message
/// again, or ends.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "an exported name")]
pub extern "C" fn pageset_message() -> *const c_char {
    MESSAGE.set(last());
    // The cell belongs to the thread, and its text ends with zero.
    MESSAGE.with(|message| message.as_ptr().cast_const().cast())
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn message() -> String {
        // SAFETY: the pointer is to a string, which stays valid until this thread calls the library again.
        unsafe { CStr::from_ptr(pageset_message()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_panic_is_a_number() {
        assert_eq!(number(|| panic!("on purpose")), libc::ENOTRECOVERABLE);
        assert!(message().starts_with("a mistake in pageset"));
    }

    #[test]
    fn a_message_is_one_line_of_this_thread() {
        assert_eq!(fail(Failure::with_text(libc::EIO, format_args!("two\nlines\0"))), libc::EIO);
        assert_eq!(message(), "two lines ");
        assert_eq!(std::thread::spawn(message).join().unwrap(), "");
    }
}
