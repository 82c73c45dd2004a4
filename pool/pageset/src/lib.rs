//! A pool of 4 KiB to 4 MiB pages in user space: per-CPU cached, huge-page backed, returned to the system
//! when idle.
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
//! An allocation goes down through these modules: `pool` (which path), `percpu` with `arrays` and `rseq`
//! (this CPU's blocks, changed by a restartable sequence or under a try-lock), then `base`. `base` provides
//! many blocks at once, and is the only module that uses `pageset-blocks`.
//!
//! Beside them: `ledger` (zero frames, resident pageblocks), `pool::giveback` and `background` (idle memory
//! goes back), `inside` (signal handlers), `sys` (the operating system).
//!
//! # Guarantees
//! - Only the pool's size is mapped, plus metadata: about 140 KiB for each GiB, and 30 KiB. Usually half of
//!   the metadata is resident.
//! - [`Pool::backing`] tells what memory the system really provided.
//! - A free by another thread or CPU costs as much as a local one. Blocks belong to no thread, so a thread
//!   that ends leaves nothing behind.
//! - CPUs may come and go, and ids may have holes (cpusets). Threads that glibc did not register for
//!   restartable sequences use the base.
//! - A child of `fork` may read pages. All other calls do nothing, unless the child takes the pool over: see
//!   [`Fork`].
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
pub use pages::{OwnedPages, PageBuffer, Pages, RawPages};
pub use pageset_blocks::BlockCounters;
pub use pageset_core::{Order, Pfn, Violation};
pub use pool::{
    BackingReport, CachedOrder, Pool, PopulateProgress, Populated, Stats, TakeOverError, Trimmed,
};

/// Bytes of a base page, which is a block of order 0.
pub const PAGE_BYTES: usize = sys::PAGE_BYTES;

/// The crate's README, its example run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
