//! Drives `pageset-core` with the page events of real kernels, and with models of well-known benchmarks.
//!
//! [`replay`](fn@replay) puts a recording's allocations and frees to the core's page sets under any number of policies and
//! settings, on the recording's own machine, and gives one [`Outcome`] for each, with intervals.
//! [`against`](fn@against) compares such a forecast with what another kernel or setting really made of the load.
//! [`survey()`] counts what the recording itself contains.
//! [`verify`](fn@verify) compares each decision of the recorded kernel with a policy's.
//! [`contest`] plays a recording's blocks on whole allocators, Linux's and our own.
//! [`ageing`] plays a day that mixes memory on whole allocators.
//! [`load`] has the benchmarks, written once over [`Target`], the world they run in; [`run_on_threads`] is one.
#![deny(unsafe_code)]

mod against;
pub mod ageing;
mod caches;
pub mod contest;
mod cpus;
mod gfp;
mod kernel_policy;
mod ladder;
mod limits;
pub mod load;
mod lru;
mod memory;
mod policy_file;
mod pressure;
pub mod recorded;
mod replay;
mod slab;
mod stretch;
mod survey;
mod target;
mod threads;
mod tokens;
mod varied;
mod verify;

// Their types are in signatures here.
pub use {pageset_core, pageset_trace};

pub use against::{Against, Change, Side, against};
pub use cpus::{pin, usable_cpus};
pub use kernel_policy::{neighbours, policy_of_kernel};
pub use ladder::{Ladder, Sweep};
pub use policy_file::{PolicyFileError, names_policy_file, policy_to_toml, read_policy};
pub use recorded::{Recorded, RecordedKinds};
pub use replay::{
    Candidate, FAR_OFF_PERCENT, FEW_VISITS, INTERVAL_COVERAGE, Interval, Intervals, KernelTotals, Made,
    Outcome, Replay, ReplayError, ReplayOptions, Room, Stage, Step, Steps, Unreplayed, Unseen, VmSettings,
    Window, guess_layout, replay, replay_repeats, replayable,
};
pub use slab::Object;
pub use stretch::{OneSetting, untimed};
pub use survey::{
    Bursts, CallerWaits, CpuTimeline, CpuTotals, Cpus, Decision, Decisions, Extent, Group, GroupName, Kernel,
    KernelCounter, Lifetimes, Log2Counts, MATRIX_CPUS_MAX, Orders, OtherLock, PagesetState, Runs, Survey,
    SurveyOptions, TYPE_COLUMNS, TaskShare, TaskTotals, Timeline, Who, ZoneLocks, ZoneState, ZoneSurvey,
    survey, timeline,
};
pub use target::{Access, Block, ChannelId, Fill, Hold, LockId, Message, Received, Target, locked};
pub use threads::{ThreadError, ThreadOptions, ThreadOutcome, run_on_threads};
pub use verify::{
    Class, Decays, Drains, ExplainRequest, Explanation, Fetches, Fit, Mismatches, Mode, PassedOver, Refills,
    Samples, Verification, VerifyError, VerifyOptions, verify,
};

/// The crate's README, its example run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
