//! Clears and copies pages of 4 KiB to 1 GiB. By default, the part of a page that the program will touch next
//! comes last.
//!
//! An operating system clears or copies a huge page because a program has touched one place of the page, the
//! *hint*. The part of the page that is written last is in the CPU's cache afterwards. This crate has the
//! visit orders of several Linux versions, and a faster order.
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
//! Page operations use these types:
//!
//! - A [`Method`] is a visit order, a kernel, and the size of the neighbourhood around the hint. The
//!   functions [`clear`] and [`copy`] use the method that you chose, or otherwise the method that this crate
//!   prefers for the CPU's features.
//! - A [`VisitOrder`] says which part of a page comes next. Visit orders are pure iterators, which touch no
//!   memory.
//! - A [`Clearing`] or a [`Copying`] processes a gigantic page in parts. Between parts you can do other work,
//!   or stop.
//! - A [`Source`] may fail half way. If the source fails, [`CopyError::Poisoned`] says how many bytes were
//!   copied.
//! - A [`Kernel`] has the loops that clear and copy, with one instruction set ([`Isa`]). Only the module
//!   `arch` (kernels, [`Page`] and [`prefetch`]) has unsafe code.
//!
//! # In an operating system
//!
//! This crate uses no heap, no lock and no thread-local state. On x86-64 and aarch64, the loops of
//! [`Method::without_vectors`] use only general registers. The compiler's code around the loops depends on
//! the target. For a target without vector registers, such as `x86_64-unknown-none`, this crate has no vector
//! code at all. An operating-system kernel passes pages by [`Page::from_raw`].
//!
//! Streamed stores go past the cache. When a function of this crate returns or panics, its streamed stores
//! are ordered before every later store of the same CPU. So the caller may make the page visible to other
//! CPUs by an ordinary release store.
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

/// Bytes of a base page, which is the smallest page and the unit of the visit orders.
pub const BASE_PAGE_BYTES: usize = 4096;

/// Clears a page by [`Method::chosen`]: see [`Method::clear`].
///
/// # Errors
///
/// An error if the memory is not a page, or if the hint is not in the page. A call that returns an error has
/// written nothing.
#[inline]
pub fn clear<'p>(page: impl Into<Page<'p>>, hint: Option<usize>) -> Result<(), BadPage> {
    Method::chosen().clear(page, hint)
}

/// Copies a page by [`Method::chosen`]: see [`Method::copy`].
///
/// # Errors
///
/// An error if page and source are not two pages of one size, or if the hint is not inside the pages. A call
/// that returns an error has written nothing.
#[inline]
pub fn copy<'p>(page: impl Into<Page<'p>>, source: &[u8], hint: Option<usize>) -> Result<(), BadPage> {
    Method::chosen().copy(page, source, hint)
}

/// Runs the example of the crate's README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
