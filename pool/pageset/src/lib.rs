//! A page allocator for programs: pools of pages of 4 KiB to 4 MiB. Each CPU has a cache of pages, huge pages
//! back the pool, and idle memory goes back to the system.
//!
//! ```
//! use pageset::{Order, Pool};
//!
//! let pool = Pool::builder().size(64 << 20).build()?;
//! let mut page = pool.alloc(Order::ZERO)?; // 4 KiB, contents unspecified
//! page[0] = 42;
//! let huge = pool.alloc_zeroed(Order::THP)?; // 2 MiB, cleared only if it has to be
//! assert!(huge.iter().all(|byte| *byte == 0));
//! drop(huge); // free, on whatever thread
//! println!("{:?}", pool.stats());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An allocation uses the modules in the following order. `pool` chooses the path. `percpu`, with `arrays`
//! and `rseq`, takes a block from this CPU's array, by a restartable sequence or under a lock. If the array
//! is empty, `base` provides many blocks at once. Only `base` allocates and frees in the allocator
//! `pageset-blocks`.
//!
//! Other modules: `ledger` notes zero frames and resident pageblocks, `pool::giveback` and `background`
//! return idle memory, `inside` protects signal handlers, and `sys` calls the operating system.
//!
//! # Guarantees
//! - A pool maps its size, plus tables: 20 KiB, and 105 KiB for each GiB. Of a new pool of 1 GiB, 100 KiB of
//!   the tables are resident (example `reserved`, two CPUs).
//! - [`Pool::backing`] tells what memory the system really provided.
//! - A free costs the same on any thread and CPU. Blocks belong to no thread, so a thread that ends loses no
//!   memory.
//! - CPUs may go online and offline, and CPU ids may have gaps (cpusets). Threads that glibc did not register
//!   for restartable sequences use the base instead of an array.
//! - A child of `fork` may read pages. Other calls in the child do nothing, unless the child takes the pool
//!   over. See [`Fork`].
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

mod arrays;
mod background;
mod base;
mod bell;
mod builder;
mod error;
mod heap;
mod inside;
mod ledger;
mod lock;
mod options;
#[expect(unsafe_code, reason = "pages are memory with an owner")]
mod pages;
mod passed;
mod percpu;
mod pool;
#[expect(unsafe_code, reason = "sequences are assembly")]
mod rseq;
#[expect(unsafe_code, reason = "the system's calls")]
mod sys;
#[expect(unsafe_code, reason = "an allocator and the tables that it borrows move together")]
mod tables;

pub use builder::Builder;
pub use error::{AllocError, BuildError, FreeError, ValidateError};
pub use options::{Backing, FastPath, Fork, HugePageSize, Numa, Prezero, Residency, ReturnPolicy, Worker};
#[cfg(feature = "allocator-api2")]
pub use pages::PageCollections;
pub use pages::{OwnedPages, PageBuffer, Pages, PoolRef, RawPages};
pub use pageset_blocks::BlockCounters;
pub use pageset_core::{Order, Pfn, Violation};
pub use pool::{
    BackingReport, CachedOrder, Pool, PopulateProgress, Populated, Stats, TakeOverError, Trimmed,
};

/// Bytes of a base page, which is a block of order 0.
pub const PAGE_BYTES: usize = sys::PAGE_BYTES;

/// Makes rustdoc test the examples of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
