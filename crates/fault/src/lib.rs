//! Address spaces and anonymous page faults over `pageset-core`, with selectable locking and accounting.
//!
//! A fault engine as a kernel has it, without the kernel: areas, a page table of real atomic words, frames of the
//! core's allocator. How it is kept consistent is chosen by name ([`Strategy`]): the page table by one lock, a lock per
//! table or compare-exchange ([`TableSync`]); areas by mmap_sem, a lock per area, speculation or an epoch ([`Stabilise`]);
//! page counts by atomics, deltas or a counter per CPU ([`Account`]). So the comparisons of 2005 and of what followed
//! can be run side by side: on threads, in virtual time, under a model checker.
//!
//! The host supplies a [`World`]: locks, [`FrameSource`], [`Memory`]. A [`Engine`] around it holds frames and tables,
//! an [`AddressSpace`] areas and counters, and a [`Task`] does the work:
//!
//! ```
//! use pageset_core::CpuId;
//! use pageset_fault::{Access, AddressSpace, Bump, Geometry, Host, Engine, EngineConfig, NoMemory, Options, Prot, Task};
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
//! Modules in the order in which a fault meets them: `task` (who; `local`: what is its own), `fault` (what happens),
//! `stabilise` (the area stays), `area` (rights), `table` and `pte` (the words), `frames` and `prezero` (the page),
//! `sync` (the word changes), `account` (it is counted), `lru` (it is listed). Beside them `space` (what changes areas),
//! `mm` (what all strategies work on), `grace` (when something may be freed), `frame_table` (who uses a frame), `check`
//! (the invariants).
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

// Its types are in signatures here.
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

/// The crate's README, its example run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
