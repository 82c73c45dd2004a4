//! Copies from memory that may be damaged.
//!
//! A program can survive a machine check during a copy if the program copies through a [`Source`] that
//! reports the damage. In an operating-system kernel, the source reads with instructions that the exception
//! table lists. In a program that handles `SIGBUS`, the source asks the signal handler whether a read failed.

use core::fmt;

use crate::{BadPage, Kernel, Page, Store};

/// The source of a copy.
pub trait Source {
    /// Fills `target` with the source's bytes from `offset` on. A source that needs no special instructions
    /// passes the bytes to [`Target::copy`].
    ///
    /// # Errors
    ///
    /// An error if a byte of the source is damaged. The error says how many good bytes the source has copied
    /// to the start of `target`.
    fn read(&mut self, offset: usize, target: Target<'_>) -> Result<(), Poisoned>;
}

/// A base page that a [`Source`] fills, and the kind of stores that the method wants.
#[derive(Debug)]
pub struct Target<'p> {
    page: Page<'p>,
    kernel: Kernel,
    store: Store,
}

impl<'p> Target<'p> {
    /// Makes a target. After the source has filled the target with streamed stores, the caller of `new` must
    /// execute a fence. No code may access the page before this fence.
    pub(crate) fn new(page: Page<'p>, kernel: Kernel, store: Store) -> Self {
        Self { page, kernel, store }
    }

    /// The kind of stores that the method wants.
    #[must_use]
    pub const fn store(&self) -> Store {
        self.store
    }

    /// The page, for a source that uses its own instructions. If the source uses streamed stores, the source
    /// must also execute a fence.
    #[must_use]
    pub fn into_page(self) -> Page<'p> {
        self.page
    }

    /// Fills the page with `bytes`, by the method's kernel.
    ///
    /// # Panics
    ///
    /// Panics if `bytes` is not as long as a base page.
    pub fn copy(self, bytes: &[u8]) {
        // `Target::copy` needs no fence. The target owns the page, and `Method::copy_from` executes a fence
        // before the borrow of the page ends.
        self.kernel.copy_unfenced(self.page, bytes, self.store);
    }
}

/// The error if a source could not read a base page completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poisoned {
    /// The number of good bytes before the damaged byte.
    pub copied_bytes: usize,
}

/// The reason why a copy ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyError {
    /// The destination is not a page, or the hint is not inside the page. The operation has written nothing.
    BadPage(BadPage),
    /// The source is damaged. The operation copied the base pages that
    /// [`VisitOrder::steps`](crate::VisitOrder::steps) visits before the damaged base page, and the good
    /// bytes that the source reported of the damaged base page. Base pages that come later in the visit order
    /// are unchanged.
    Poisoned {
        /// The offset in the source of the first byte that was not copied.
        offset: usize,
        /// The number of bytes that the operation copied in all.
        copied_bytes: usize,
    },
}

impl From<BadPage> for CopyError {
    fn from(error: BadPage) -> Self {
        Self::BadPage(error)
    }
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadPage(error) => error.fmt(f),
            Self::Poisoned { offset, copied_bytes } => {
                write!(f, "the source is poisoned at {offset}; {copied_bytes} bytes were copied before")
            }
        }
    }
}

impl core::error::Error for CopyError {}
