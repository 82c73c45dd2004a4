//! Copying from memory that may be broken.
//!
//! A machine check while a page is copied need not be the end: whoever can survive it copies through a [`Source`] that
//! reports it. A kernel reads with the instructions that its exception table knows; a program that has asked for
//! `SIGBUS` looks at what its handler has noted.

use core::fmt;

use crate::{BadPage, Kernel, Page, Store};

/// Where a copy comes from.
pub trait Source {
    /// Fills `target` from `offset` bytes into the source. A source without instructions of its own passes its bytes to
    /// [`Target::copy`].
    ///
    /// # Errors
    ///
    /// If memory of the source is poisoned, with the bytes at the start of `target` that are good.
    fn read(&mut self, offset: usize, target: Target<'_>) -> Result<(), Poisoned>;
}

/// A base page that a [`Source`] fills, and how the method would do it.
#[derive(Debug)]
pub struct Target<'p> {
    page: Page<'p>,
    kernel: Kernel,
    store: Store,
}

impl<'p> Target<'p> {
    /// The caller fences before anybody else gets at the page.
    pub(crate) fn new(page: Page<'p>, kernel: Kernel, store: Store) -> Self {
        Self { page, kernel, store }
    }

    /// How the method would store it.
    #[must_use]
    pub const fn store(&self) -> Store {
        self.store
    }

    /// The page, to be filled by instructions of one's own. Those that stream need their own fence.
    #[must_use]
    pub fn into_page(self) -> Page<'p> {
        self.page
    }

    /// Fills it with these bytes, by the method's kernel.
    ///
    /// # Panics
    ///
    /// If they are not a base page.
    pub fn copy(self, bytes: &[u8]) {
        // The page is this value's own, and the fence for the whole copy comes before its borrow ends.
        self.kernel.copy_unfenced(self.page, bytes, self.store);
    }
}

/// A base page of a source that could not be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poisoned {
    /// Good bytes before the poison.
    pub copied_bytes: usize,
}

/// Why a copy ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyError {
    /// The destination is not a page; nothing was written.
    BadPage(BadPage),
    /// The source is poisoned. The base pages that [`VisitOrder::steps`](crate::VisitOrder::steps) visits first are copied,
    /// `copied_bytes` of them; the others are as they were.
    Poisoned {
        /// Where in the source the first byte is that could not be read.
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
