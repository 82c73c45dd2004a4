//! Page events of Linux kernels: the event model, the native file, and importers of other formats.
//!
//! [`open`] detects a file's format and returns a [`TraceReader`], which delivers [`Event`]s in blocks, in
//! bounded memory. The reader's [`TraceInfo`] describes the machine and its states. [`convert`] writes any
//! trace as a native file (`.pgtrace`).
//!
//! ```text
//! ftrace, perf script, trace-cmd text ─┐
//! trace.dat, perf.data ────────────────┤
//! .pgtrace ────────────────────────────┴─► TraceReader ─► replay, statistics
//!                                               └───────► convert ─► .pgtrace
//! ```
//!
//! Input may be damaged or malicious. At damage, every parser returns an error (for traces, a [`TraceError`]
//! with file and remedy), or skips the damage if the caller asked for this. No parser panics. A length in a
//! file is checked before memory is reserved for it.
#![forbid(unsafe_code)]

mod ahead;
mod amount;
mod call_sites;
mod convert;
mod counts;
mod cut;
mod damage;
mod decisions;
mod error;
mod event;
#[doc(hidden)]
pub mod fuzzing;
mod gfp;
mod import;
mod info;
mod input;
mod layout;
mod lock_waits;
mod native;
mod opening;
mod other_files;
mod packing;
mod procfs;
pub mod raw;
mod reader;
mod recording_cost;
mod sample;
mod setting_change;
mod snapshot;
mod tasks;
mod visit_cost;
mod without_names;
mod without_recorder;
mod workers;
mod xz;
mod zone_name;

// Signatures of this crate's public functions contain types of `pageset_core`.
pub use pageset_core;

pub use amount::Amount;
pub use call_sites::{CallSites, LockName, NamedLock};
pub use convert::{CONVERT_WRITES, ConvertSummary, convert};
pub use counts::{
    CountedLock, CountedSite, CountedTask, Counts, HitEstimate, Party, TracepointCount, ZoneWaits,
};
pub use damage::{Recovery, Strictness};
pub use decisions::{Decision, Decisions};
pub use error::TraceError;
pub use event::{Caller, Event, EventKind, Extfrag, MIGRATETYPE_NONE, PFN_NONE, Work, irq_flag};
pub use gfp::{gfp_bits, gfp_names};
pub use info::{Gap, LostEvents, SourceFormat, TraceInfo};
pub use input::{DESCRIPTION_BYTES_MAX, read_description};
pub use layout::{
    Cache, CacheKind, Layout, LayoutOptions, LayoutSource, Node, PcpSample, Sysctls, ZoneDescription,
};
pub use lock_waits::{LockWait, LockWaits};
pub use native::{BlockEntry, NativeReader, NativeWriter, WriteOptions};
pub use opening::{OpenOptions, open, open_with};
pub use other_files::is_zoneinfo;
pub use procfs::{
    Buddyinfo, FreeBlocks, Pageblocks, Pagetypeinfo, ProcError, TypedFreeBlocks, Vmstat, Zoneinfo,
};
pub use reader::{BLOCK_EVENTS_MAX, TraceReader};
pub use recording_cost::{CostRange, RecordingCost};
pub use sample::{Sample, ZoneSample};
pub use setting_change::SettingChange;
pub use snapshot::Snapshot;
pub use tasks::{Task, TaskBook, TaskIndex, Tasks};
pub use visit_cost::VisitCost;
pub use without_names::WithoutNames;
pub use without_recorder::{RECORDER_UNKNOWN, WithoutRecorder};

/// Runs the example of the crate's README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
