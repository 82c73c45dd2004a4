//! A discrete-event simulator that runs `pageset-core` on virtual CPUs in virtual time.
//!
//! A [`Machine`] describes a computer, and the costs of operations on this computer. A [`Simulation`] has a
//! machine, an allocator, and for each CPU a *body*: ordinary synchronous code that uses a [`VirtualCpu`].
//! Each CPU has its own clock. CPUs affect each other only through locks, shared lines and channels, in the
//! order of virtual time. The result does not depend on the computer that simulates: equal input gives an
//! equal [`SimulationOutcome`]. To compare two runs, compare [`SimulationOutcome::digest`].
//!
//! ```
//! use pageset_core::{CpuId, Order, Request, policy};
//! use pageset_sim::{LockClass, Machine, Simulation, Span};
//!
//! let machine = Machine::named("skylake-desktop").ok_or("it is bundled")?;
//! let mut simulation = Simulation::builder(&machine)
//!     .policy(policy::LINUX_4_18)
//!     .seed(1)
//!     .duration(Span::from_ms(1))
//!     .build()?;
//! for cpu in 0..machine.cpus() {
//!     simulation.spawn(CpuId(cpu), |cpu| {
//!         while cpu.running() {
//!             if let Ok(page) = cpu.alloc(&Request::new(Order::ZERO)) {
//!                 cpu.clear(page, Order::ZERO);
//!                 cpu.free(page, Order::ZERO).expect("it was just allocated");
//!                 cpu.score(1);
//!             }
//!         }
//!     })?;
//! }
//! let outcome = simulation.run()?;
//! assert!(outcome.score_per_second() > 1e6);
//! assert!(outcome.lock(LockClass::Zone).acquisitions >= 8, "each CPU refilled its page set once");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! In a body, a [`VirtualCpu`] allocates, frees, touches memory, computes and sleeps. CPUs send messages to
//! each other through a [`Channel`]. [`VirtualMutex`] (made by [`mutex`]), [`Spin`] and [`Gate`] are locks
//! for a workload's own data. A [`SharedLine`] models a cache line that several CPUs write. [`VirtualLock`]
//! implements `lock_api`'s raw lock, for code that is generic over a lock type.
//!
//! A simulation uses one OS thread. Several simulations can run on several threads. `docs/book/src/limits.md`
//! lists what the simulator does not model.
//!
//! The main modules are listed from the highest layer to the lowest. `simulation` builds and runs a
//! simulation. `engine` decides which CPU runs next. `cpu` has the operations of a body. CPUs share the types
//! of `lock`, `line`, `link` and `channel`. Costs come from `charge`, `prices`, `lines`, `bandwidth`,
//! `footprint` (with `recency`) and `variation`. Results are in `measure`, `tally`, `latency` and `outcome`.
//! `machine` reads TOML.
#![deny(unsafe_code)]

mod allocator;
mod bandwidth;
mod channel;
mod charge;
mod cpu;
mod digest;
mod engine;
mod footprint;
mod latency;
mod line;
mod lines;
mod link;
mod lock;
pub mod machine;
mod measure;
mod memory;
mod outcome;
mod prices;
mod random;
mod recency;
mod simulation;
mod tally;
mod time;
mod variation;
mod with_arrays;

// Public signatures of this crate use types of `pageset_core`.
pub use pageset_core;

pub use channel::{Channel, TryReceived};
pub use charge::{Charges, VirtualPlatform};
pub use cpu::{Touch, VirtualCpu};
pub use latency::Latency;
pub use line::SharedLine;
pub use link::Link;
pub use lock::{Gate, Hold, LockClass, LockModel, LockUse, Spin, VirtualLock, VirtualMutex, mutex};
pub use machine::{FrameLayout, MACHINES, Machine, MachineError, TickPhase};
pub use memory::zeroed_tables;
pub use outcome::{CacheCounts, Counts, LineTraffic, MemoryUse, SharedCounts, SimulationOutcome};
pub use random::{Stream, stream};
pub use simulation::{Builder, Simulation, SimulationError};
pub use time::{Span, Time};

/// The crate's README. Doc tests would run examples in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
