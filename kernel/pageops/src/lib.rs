//! Clear and copy pages of 4 KiB to 1 GiB, with the part that is about to be touched last.
//!
//! A huge page is cleared or copied because a program has touched one place of it, the *hint*. The part done
//! last is in the cache afterwards. This crate has the orders of Linux's two solutions, and one that is
//! faster than both:
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
//! An operation meets these in order:
//!
//! - [`Method`]: order, kernel and size of the neighbourhood, detected once for the CPU, or chosen by you.
//!   [`clear`] and [`copy`] use the chosen method.
//! - [`VisitOrder`]: the sequence of visits, as pure iterators.
//! - [`Clearing`], [`Copying`]: gigantic pages in parts. Between parts you can do other work, or stop.
//! - [`Source`]: a source that may fail half way. [`CopyError`] says how far the copy came.
//! - [`Isa`], [`Kernel`], [`Page`]: the instructions, and the only unsafe code.
//!
//! # In an operating system
//!
//! There is no heap, no lock and no thread-local state. The loops of [`Method::without_vectors`] use only
//! general registers. The target decides about the compiler's code around them: a target without vector
//! registers, such as `x86_64-unknown-none`, has no vector code anywhere. Such kernels pass pages by
//! [`Page::from_raw`].
//!
//! When a function returns, all its stores are ordered before every later store of the same CPU. This
//! includes stores streamed past the cache, and it holds even if a [`Source`] panics. So a page may be
//! published with an ordinary release store.
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

/// Bytes of a base page: the unit of orders, and the smallest page.
pub const BASE_PAGE_BYTES: usize = 4096;

/// Clears a page by [`Method::chosen`]: see [`Method::clear`].
///
/// # Errors
///
/// An error if the memory is not a page, or the hint is not in it. Nothing is written then.
#[inline]
pub fn clear<'p>(page: impl Into<Page<'p>>, hint: Option<usize>) -> Result<(), BadPage> {
    Method::chosen().clear(page, hint)
}

/// Copies a page by [`Method::chosen`]: see [`Method::copy`].
///
/// # Errors
///
/// An error if the memory is not two pages of one size, or the hint is not in them. Nothing is written then.
#[inline]
pub fn copy<'p>(page: impl Into<Page<'p>>, source: &[u8], hint: Option<usize>) -> Result<(), BadPage> {
    Method::chosen().copy(page, source, hint)
}

/// Runs the example of the crate's README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
