//! Copies from memory that may be broken.
//!
//! A program can survive a machine check during a copy if it copies through a [`Source`] that reports the
//! check. In an operating-system kernel, the source reads with instructions that are in the exception table.
//! In a program that handles `SIGBUS`, the source asks the handler.

use core::fmt;

use crate::{BadPage, Kernel, Page, Store};

/// The source of a copy.
pub trait Source {
    /// Fills `target` from `offset` bytes into the source. A source without special instructions passes its
    /// bytes to [`Target::copy`].
    ///
    /// # Errors
    ///
    /// An error if memory of the source is poisoned. It has the number of good bytes at the start of
    /// `target`.
    fn read(&mut self, offset: usize, target: Target<'_>) -> Result<(), Poisoned>;
}

/// A base page that a [`Source`] fills, with the method's kind of store.
#[derive(Debug)]
pub struct Target<'p> {
    page: Page<'p>,
    kernel: Kernel,
    store: Store,
}

impl<'p> Target<'p> {
    /// The caller must fence before any other access to the page.
    pub(crate) fn new(page: Page<'p>, kernel: Kernel, store: Store) -> Self {
        Self { page, kernel, store }
    }

    /// The method's kind of store.
    #[must_use]
    pub const fn store(&self) -> Store {
        self.store
    }

    /// The page, for a source with its own instructions. If these stream, they need their own fence.
    #[must_use]
    pub fn into_page(self) -> Page<'p> {
        self.page
    }

    /// Fills the page with these bytes, with the method's kernel.
    ///
    /// # Panics
    ///
    /// Panics if they are not a base page.
    pub fn copy(self, bytes: &[u8]) {
        // This value owns the page. The fence for the whole copy comes before its borrow ends.
        self.kernel.copy_unfenced(self.page, bytes, self.store);
    }
}

/// A base page of a source that could not be read completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poisoned {
    /// Good bytes before the poison.
    pub copied_bytes: usize,
}

/// The reason why a copy ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyError {
    /// The destination is not a page. Nothing was written.
    BadPage(BadPage),
    /// The source is poisoned. `copied_bytes` bytes were copied: the base pages that
    /// [`VisitOrder::steps`](crate::VisitOrder::steps) visits first. The others are unchanged.
    Poisoned {
        /// Offset in the source of the first unreadable byte.
        offset: usize,
        /// Bytes that were copied before.
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
