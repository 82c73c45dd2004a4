//! Why a call failed: a number for the program, and a message for whoever reads its log.

use std::cell::{Cell, RefCell};
use std::ffi::{CString, c_char, c_int};
use std::io;
use std::panic::catch_unwind;

use pageset::{AllocError, BuildError};

/// Why a call failed.
pub(crate) struct Failure {
    errno: c_int,
    reason: Reason,
}

enum Reason {
    /// Put into words when somebody asks.
    Alloc(AllocError),
    Words(&'static str),
    Text(String),
}

impl Failure {
    pub(crate) const fn new(errno: c_int, words: &'static str) -> Self {
        Self { errno, reason: Reason::Words(words) }
    }

    pub(crate) fn with_text(errno: c_int, text: String) -> Self {
        Self { errno, reason: Reason::Text(text) }
    }

    /// What the system said, with the number it gave.
    pub(crate) fn system(what: &str, error: &io::Error) -> Self {
        Self::with_text(error.raw_os_error().unwrap_or(libc::EIO), format!("{what}: {error}"))
    }
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
            AllocError::OutOfMemory { .. } | AllocError::HeapExhausted => libc::ENOMEM,
            AllocError::OverCapacity => libc::EDQUOT,
            AllocError::Forked => libc::EPERM,
            AllocError::NotFree => libc::EBUSY,
            _ => libc::EINVAL,
        };
        Self { errno, reason: Reason::Alloc(error) }
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        let system = |source: &io::Error| source.raw_os_error();
        let errno = match &error {
            BuildError::AddressSpace { .. }
            | BuildError::HugetlbShortage { .. }
            | BuildError::HugetlbOutOfReach { .. } => libc::ENOMEM,
            BuildError::LockLimit { source, .. } => system(source).unwrap_or(libc::ENOMEM),
            BuildError::System { source, .. }
            | BuildError::Memfd { source, .. }
            | BuildError::Denied { source, .. } => system(source).unwrap_or(libc::EIO),
            _ => libc::EINVAL,
        };
        let source =
            std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
        Self::with_text(errno, format!("{error}{source}"))
    }
}

/// What is kept of a failure without a heap: whoever is out of memory may be a malloc over a pool.
#[derive(Clone, Copy)]
enum Last {
    Nothing,
    Alloc(AllocError),
    Words(&'static str),
    /// In `TEXT`.
    Text,
}

thread_local! {
    // Without a destructor, since the first use of one asks for memory.
    static LAST: Cell<Last> = const { Cell::new(Last::Nothing) };
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
    static MESSAGE: RefCell<CString> = RefCell::new(CString::default());
}

/// Keeps the failure for `pageset_message`, and gives its number.
#[cold]
#[inline(never)]
pub(crate) fn fail(failure: Failure) -> c_int {
    LAST.set(match failure.reason {
        Reason::Alloc(error) => Last::Alloc(error),
        Reason::Words(words) => Last::Words(words),
        Reason::Text(text) => {
            // Not there any more while a thread ends: then the message is empty.
            let _ = TEXT.try_with(|last| last.replace(text));
            Last::Text
        }
    });
    failure.errno
}

/// The words of this thread's last failure.
fn last() -> String {
    match LAST.get() {
        Last::Nothing => String::new(),
        Last::Alloc(error) => error.to_string(),
        Last::Words(words) => words.to_owned(),
        Last::Text => TEXT.try_with(|text| text.borrow().clone()).unwrap_or_default(),
    }
}

/// What a call came to, as a number. A panic ends here: C cannot be unwound.
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

/// What was wrong with this thread's last call that failed, and what to do about it: one sentence of English without a newline.
/// Empty if none has failed yet. Never NULL. Valid until this thread calls pageset_message again, or ends.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "an exported name")]
pub extern "C" fn pageset_message() -> *const c_char {
    let text = last().replace(['\0', '\n'], " ");
    let message = MESSAGE.try_with(|message| {
        message.replace(CString::new(text).unwrap_or_default());
        message.borrow().as_ptr()
    });
    message.unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn message() -> String {
        // SAFETY: a string, until the next call of this thread.
        unsafe { CStr::from_ptr(pageset_message()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_panic_is_a_number() {
        assert_eq!(number(|| panic!("on purpose")), libc::ENOTRECOVERABLE);
        assert!(message().starts_with("a mistake in pageset"));
    }

    #[test]
    fn a_message_is_one_line_of_this_thread() {
        assert_eq!(fail(Failure::with_text(libc::EIO, "two\nlines\0".to_owned())), libc::EIO);
        assert_eq!(message(), "two lines ");
        assert_eq!(std::thread::spawn(message).join().unwrap(), "");
    }
}
