//! Pages together with the number of their bytes that are in use.

use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};

use super::OwnedPages;

/// [`Pages`](super::Pages) or [`OwnedPages`](super::OwnedPages) whose first bytes are in use, for example by
/// a message or a record. Derefs to the bytes in use. [`io::Write`] adds bytes. A caller may also fill
/// [`unused`](Self::unused) bytes, then call [`set_len`](Self::set_len). In types, `PageBuffer` alone means a
/// buffer of `OwnedPages`, for the queues of a network stack.
///
/// ```
/// use std::io::Write as _;
///
/// use bytes::Bytes;
/// use pageset::{Order, PageBuffer, Pool};
///
/// let pool = std::sync::Arc::new(Pool::builder().size(64 << 20).build()?);
/// let mut message = PageBuffer::new(pool.alloc_owned(Order::ZERO)?, 0);
/// write!(message, "hello, {}", "world")?;
/// assert_eq!((&message[..], message.capacity()), (&b"hello, world"[..], 4096));
/// let mut queue: Vec<PageBuffer> = vec![message];
/// let message = Bytes::from_owner(queue.remove(0)); // no copy, and not the rest of the page
/// assert_eq!(message.len(), 12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Invariants
/// `len` is at most the length of `pages`.
#[must_use = "pages that are dropped are free again"]
pub struct PageBuffer<P = OwnedPages> {
    pages: P,
    len: usize,
}

impl<P: Deref<Target = [u8]>> PageBuffer<P> {
    /// Makes a buffer of pages whose first `len` bytes are in use.
    ///
    /// # Panics
    /// If the pages have fewer than `len` bytes.
    pub fn new(pages: P, len: usize) -> Self {
        let mut buffer = Self { pages, len: 0 };
        buffer.set_len(len);
        buffer
    }

    /// The number of bytes that the pages have.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.pages.len()
    }

    /// Changes how many bytes are in use. All bytes of pages are initialised, so any number up to the
    /// capacity is safe.
    ///
    /// # Panics
    /// If the pages have fewer than `len` bytes.
    pub fn set_len(&mut self, len: usize) {
        assert!(len <= self.capacity(), "{len} bytes in pages of {}", self.capacity());
        // INVARIANT: the assertion has checked that `len` is at most the capacity.
        self.len = len;
    }

    /// The pages.
    #[must_use]
    pub const fn pages(&self) -> &P {
        &self.pages
    }

    /// Returns the pages, and forgets how many bytes were in use.
    pub fn into_pages(self) -> P {
        self.pages
    }
}

impl<P: DerefMut<Target = [u8]>> PageBuffer<P> {
    /// The bytes behind the bytes in use. Fill the unused bytes, then call [`set_len`](Self::set_len).
    #[must_use]
    pub fn unused(&mut self) -> &mut [u8] {
        &mut self.pages[self.len..]
    }
}

/// Adds bytes to the bytes in use. At the end of the pages, `write` adds fewer bytes than it was given, or
/// none.
impl<P: DerefMut<Target = [u8]>> io::Write for PageBuffer<P> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let unused = self.unused();
        let count = bytes.len().min(unused.len());
        unused[..count].copy_from_slice(&bytes[..count]);
        // INVARIANT: `count` bytes were unused.
        self.len += count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<P: Deref<Target = [u8]>> Deref for PageBuffer<P> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.pages[..self.len]
    }
}

impl<P: DerefMut<Target = [u8]>> DerefMut for PageBuffer<P> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.pages[..self.len]
    }
}

impl<P: Deref<Target = [u8]>> AsRef<[u8]> for PageBuffer<P> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<P: DerefMut<Target = [u8]>> AsMut<[u8]> for PageBuffer<P> {
    #[inline]
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl<P: fmt::Debug> fmt::Debug for PageBuffer<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageBuffer").field("pages", &self.pages).field("len", &self.len).finish()
    }
}
