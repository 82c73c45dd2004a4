//! Address spaces and anonymous page faults over `pageset-core`, with selectable locking and accounting.
//!
//! The crate is a fault engine as a kernel has it, without the kernel: areas, a page table of real atomic
//! words, and frames from an allocator. A [`Strategy`] names how it stays consistent:
//! - [`TableSync`]: the page table has one lock, a lock per table, or compare-exchange.
//! - [`Stabilise`]: areas stay stable by mmap_sem, a lock per area, speculation, or an epoch.
//! - [`Account`]: page counts are atomics, deltas, or a counter per CPU.
//!
//! So the comparisons of 2005 and later ones can be run side by side: on threads, in virtual time, or under a
//! model checker.
//!
//! The host supplies a [`World`]: locks, [`FrameSource`], [`Memory`]. An [`Engine`] around it holds frames
//! and tables, an [`AddressSpace`] holds areas and counters, and a [`Task`] does the work:
//!
//! ```
//! use pageset_core::CpuId;
//! use pageset_fault::{Access, AddressSpace, Bump, Engine, EngineConfig, Geometry, Host};
//! use pageset_fault::{NoMemory, Options, Prot, Task};
//!
//! let host = Host::<parking_lot::RawMutex, _, _>::new(Bump::new(0..4096), NoMemory);
//! let engine = Engine::new(host, &EngineConfig::new(Geometry::PAGES_4K, 2, 4096));
//! let space = AddressSpace::new(&engine, Options::new("P2,V7,R3".parse()?))?;
//! let mut task = Task::new(&space, CpuId(0))?;
//! task.map(0..4 << 20, Prot::ReadWrite)?;
//! for va in (0..4 << 20).step_by(4096) {
//!     task.fault(va, Access::Write)?;
//! }
//! assert_eq!((task.stats().faults, task.stats().installed), (1024, 1024));
//! drop(task); // folds what it counted
//! let census = engine.check(&[&space])?; // every page, table, reference and counter
//! assert_eq!((census.pages, space.counts().rss), (1024, 1024));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A fault meets the modules in this order. `task` is the thread, and `local` its private state. `fault` has
//! the steps. `stabilise` keeps the area, and `area` holds its rights. `table` and `pte` have the words.
//! `frames` and `prezero` supply the page. `sync` changes the word. `account` counts the page, and `lru`
//! lists it.
//!
//! Beside them are `space` (changes areas), `mm` (the state all strategies share), `grace` (when memory may
//! be freed), `frame_table` (references to frames) and `check` (the invariants).
//!
//! "Spec §n" in comments is `docs/spec/fault.md`; E1 to E9 are the orderings of its §1.3.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(test, doctest))]
extern crate std;

mod account;
mod area;
mod atomic;
mod axis;
mod check;
mod counts;
mod engine;
mod error;
mod fault;
mod frame_table;
mod frames;
mod geometry;
mod grace;
mod held;
mod host;
mod local;
mod lru;
mod magazine;
mod mm;
mod prefault;
mod prezero;
mod pte;
mod rwsem;
mod space;
mod stabilise;
mod stats;
mod strategy;
mod sync;
mod table;
mod task;
mod world;

// `pageset_core`'s types appear in signatures here.
pub use pageset_core;

pub use account::Account;
pub use area::{Access, Prot};
pub use check::{Census, Violation};
pub use counts::Counts;
pub use engine::{Engine, EngineConfig};
pub use error::{FaultError, SpaceError};
pub use fault::Backing;
pub use frames::{Bump, FrameSource, FrameUse};
pub use geometry::Geometry;
pub use host::{Host, Locks};
pub use pte::Pte;
pub use space::{AddressSpace, Huge, Options};
pub use stabilise::Stabilise;
pub use stats::{LockStats, Stats};
pub use strategy::{Strategy, StrategyError};
pub use sync::TableSync;
pub use task::Task;
pub use world::{Line, Memory, NoMemory, World};

/// Runs the example of the crate's README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
