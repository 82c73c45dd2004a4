//! What the benchmarks run on: a machine like the one the kernel's vectors were taken from, behind the plainest lock.

mod machine;
mod spin;

pub use machine::{CPU, Host, machine};
pub use spin::Spin;

/// The examples of the project's README and of the book, run as tests. They are here because a published crate has no files
/// from outside of its folder.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../docs/book/src/guide/own-allocator.md")]
    struct OwnAllocator;
    #[doc = include_str!("../../docs/book/src/guide/page-operations.md")]
    struct PageOperations;
    #[doc = include_str!("../../docs/book/src/guide/pool.md")]
    struct Pool;
    #[doc = include_str!("../../README.md")]
    struct Readme;
}
