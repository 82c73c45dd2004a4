//! The machine of the benchmarks: like the one behind the kernel's vectors, with the simplest lock.

mod machine;
mod spin;

pub use machine::{CPU, Host, machine, machine_of_blocks};
pub use spin::Spin;

/// The examples of the project's README and of the book, run as tests. These examples are here because a
/// published crate contains only files of its own folder.
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
