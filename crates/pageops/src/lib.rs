//! Clear and copy pages of 4 KiB to 1 GiB, with the part that is about to be touched last.
//!
//! A huge page is cleared or copied because a program has touched one place of it, the *hint*. What is done last is in
//! the cache afterwards. The orders of Linux's two answers are here, and one that is faster than both:
//!
//! ```
//! let mut memory = vec![1_u8; 3 << 20];
//! let start = memory.as_ptr().align_offset(4096);
//! let page = &mut memory[start..start + (2 << 20)];
//!
//! // The program will read at 1 MiB.
//! pageset_pageops::clear(&mut *page, Some(1 << 20))?;
//! # assert!(page.iter().all(|byte| *byte == 0));
//! # Ok::<(), pageset_pageops::BadPage>(())
//! ```
//!
//! In the order in which an operation meets them:
//!
//! - [`Method`]: order, kernel and size of the neighbourhood, chosen once for the CPU, or by you. [`clear`] and [`copy`]
//!   are those of the chosen one.
//! - [`VisitOrder`]: what is visited when, as pure iterators.
//! - [`Clearing`], [`Copying`]: gigantic pages in parts, between which you can do something else, or stop.
//! - [`Source`]: a source that may fail half way, and [`CopyError`], which says how far the copy came.
//! - [`Isa`], [`Kernel`], [`Page`]: the instructions, and the only unsafe code.
//!
//! # In an operating system
//!
//! There is no heap, no lock and no thread-local state. The loops of [`Method::without_vectors`] use general registers
//! only; what the compiler does around them is decided by the target, and one without vector registers, such as
//! `x86_64-unknown-none`, has none anywhere. Pages come in as [`Page::from_raw`].
//!
//! When a function returns, everything it wrote is ordered before every later store of the same CPU, also what was
//! streamed past the cache, and also if a [`Source`] panics: a page may be published with an ordinary release store.
#![no_std]

mod arch;
mod caches;
mod error;
mod gigantic;
mod method;
mod source;
mod visit_order;

pub use arch::{Isa, Kernel, Page, prefetch};
pub use caches::Caches;
pub use error::BadPage;
pub use gigantic::{Clearing, Copying, Part, Parts};
pub use method::Method;
pub use source::{CopyError, Poisoned, Source, Target};
pub use visit_order::{GIGANTIC_PAGES, RANGES_RADIUS_PAGES, Step, Steps, Store, VisitOrder};

/// Bytes of a base page: what orders count in, and the smallest page.
pub const BASE_PAGE_BYTES: usize = 4096;

/// Clears a page by [`Method::chosen`]: see [`Method::clear`].
///
/// # Errors
///
/// If the memory is not a page, or the hint is not in it. Nothing is written then.
#[inline]
pub fn clear<'p>(page: impl Into<Page<'p>>, hint: Option<usize>) -> Result<(), BadPage> {
    Method::chosen().clear(page, hint)
}

/// Copies a page by [`Method::chosen`]: see [`Method::copy`].
///
/// # Errors
///
/// If the memory is not two pages of one size, or the hint is not in them. Nothing is written then.
#[inline]
pub fn copy<'p>(page: impl Into<Page<'p>>, source: &[u8], hint: Option<usize>) -> Result<(), BadPage> {
    Method::chosen().copy(page, source, hint)
}

/// The crate's README, its example run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
