//! Linux's page-frame allocator as a library.
#![no_std]
#![forbid(unsafe_code)]

mod ids;

pub use ids::*;
