//! A library that handles page faults for anonymous memory as a kernel does. The caller chooses which locks
//! faults take, and how the engine counts resident pages.
//!
//! An address space has areas (Linux's VMAs), a page table of real atomic words, and frames from an
//! allocator. A [`Strategy`] says how areas, page table and counts of resident pages stay consistent while
//! several tasks run. A strategy has three parts: P, V and R.
//! - P: [`TableSync`] protects the page table, by one lock, a lock per table, or compare-exchange.
//! - V: [`Stabilise`] prevents or detects changes of an area during a fault: by mmap_sem, a lock per area, a
//!   second check of the area, or an epoch (grace periods). `V0` does nothing.
//! - R: [`Account`] counts resident pages: in counters that all tasks share, or first in counters of each
//!   task.
//!
//! A program can compare the strategies of different kernels on threads, in virtual time, or under a model
//! checker.
//!
//! Words that this crate uses:
//!
//! - *Word*: an entry of a page table. A *leaf table* is a table of the lowest level.
//!
//! - *Area*: a range of addresses with the same rights.
//!
//! - *Write*: a map, unmap, protect, fork, collapse or reclaim. In an address space, one write runs at a
//!   time. A write may *close* areas. Until the write ends, no fault may map pages in a closed area.
//!
//! - *Section*: a part of a fault or of an access. Inside a section, a task may use the page tables and
//!   translations that the task has read. Before a writer frees tables or pages, the writer waits until all
//!   earlier sections have ended (a *grace period*, as in RCU).
//!
//! - *Fold*: to add the counts that a task keeps for itself to the counters of the address space.
//!
//! - *Gang*: a block of several pages that one fault maps into adjacent words (Linux's mTHP).
//!
//! - *Run*: adjacent pages that one fault maps, each with its own frame. The task has touched only the first
//!   page.
//!
//! The host supplies a [`World`]: locks, a [`FrameSource`], and a [`Memory`]. An [`Engine`] holds the host's
//! world, and the memory for the page tables of all address spaces. An [`AddressSpace`] has areas, a page
//! table and counters. A [`Task`] maps areas and handles faults:
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
//! drop(task); // adds its counts to the address space's
//! let census = engine.check(&[&space])?; // every page, table, reference and counter
//! assert_eq!((census.pages, space.counts().rss), (1024, 1024));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This list has the main modules that a fault uses, in the order of their use. `task` has the type of a
//! thread, and `local` has a task's private state. `fault` has the steps of a fault. `stabilise` keeps the
//! fault's area from changing, and `area` has the area's rights. `table` and `pte` have the page-table words.
//! `frames` and `prezero` supply the page. `sync` changes the page-table word. `account` counts the page, and
//! `lru` adds the page's block to a list of pages in use.
//!
//! Among the other modules are `space` (changes areas), `mm` (the state that all strategies share), `grace`
//! (when memory may be freed), `frame_table` (references to frames) and `check` (the invariants).
//!
//! "Spec §n" in comments refers to `docs/spec/fault.md`. E1 to E9 in comments are the memory orderings in
//! §1.3 of `docs/spec/fault.md`.
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

// This crate exports `pageset_core` again, because types of `pageset_core` appear in this crate's signatures.
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
