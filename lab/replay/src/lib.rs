//! Analyses recordings of page events. This crate counts the contents of a recording, checks whether a policy
//! explains the kernel's decisions, makes forecasts for other policies, and gives advice about the machine.
//!
//! | what | where |
//! |---|---|
//! | counts of what a recording itself contains | [`survey()`], [`timeline`] |
//! | its allocations and frees repeated on the core's page sets, under any number of policies and settings |
//! [`replay`](fn@replay) |
//! | such a forecast beside a recording of the load under another kernel or setting | [`against`](fn@against) |
//! | each decision of the recorded kernel beside a policy's | [`verify`](fn@verify) |
//! | what to do about a machine, from a recording of its load | [`advise`] |
//! | many recordings of one load: which files they are, and what they say together | [`fleet`] |
//! | everything that a recording shows, over time and per CPU, for a report | [`report_data`] |
//! | what each process did, and each call site, and how much was the command's | [`who`], [`sites`] |
//! | its allocations and frees one by one, for programs that play its blocks on another allocator | [`operations`] |
//! | a recording in the formats of other programs | [`export`] |
//! | recordings that are built in | [`recordings`] |
//!
//! `replay` and `verify` simulate the recorded machine, and say how large their error may be. Long work
//! reports its progress to a [`Progress`](pageset_report::Progress), which may end the work. This crate
//! prints nothing.
#![forbid(unsafe_code)]

pub mod advise;
mod against;
mod caches;
pub mod export;
pub mod file;
pub mod fleet;
mod gfp;
mod kernel_policy;
mod ladder;
mod limits;
mod memory;
pub mod operations;
mod placeholders;
mod policy_file;
mod pressure;
pub mod recorded;
mod recorded_time;
pub mod recordings;
mod replay;
pub mod report_data;
pub mod sites;
mod stretch;
mod survey;
mod verify;
pub mod who;

// Signatures of this crate's public functions contain types of these crates.
pub use {pageset_core, pageset_report, pageset_trace};

pub use against::{Against, Change, Side, against};
pub use kernel_policy::{neighbours, policy_of_kernel};
pub use ladder::{Ladder, Sweep};
pub use memory::require_room;
pub use policy_file::{PolicyFileError, names_policy_file, policy_to_toml, read_policy};
pub use recorded::{Recorded, RecordedKinds};
pub use recorded_time::{RecordedTime, TimeCounter};
pub use replay::{
    Candidate, FAR_OFF_PERCENT, FEW_VISITS, INTERVAL_COVERAGE, Interval, Intervals, KernelTotals, Made,
    Outcome, RECORD_LONGER, Replay, ReplayError, ReplayOptions, Room, Stage, Step, Steps, Unreplayed, Unseen,
    VmSettings, Window, guess_layout, replay, replay_repeats, replayable,
};
pub use stretch::{OneSetting, untimed};
pub use survey::{
    Bursts, CallerWaits, CpuTimeline, CpuTotals, Cpus, Extent, Group, GroupName, Kernel, Lifetimes,
    Log2Counts, MATRIX_CPUS_MAX, OrderBlocks, Orders, OtherLock, PagesetState, Runs, Survey, SurveyOptions,
    TYPE_COLUMNS, TaskShare, TaskTotals, Timeline, WaitSum, Who, ZoneLockWaits, ZoneLocks, ZoneState,
    ZoneSurvey, survey, timeline, type_key, type_names,
};
pub use verify::{
    Class, Decays, Drains, ExplainRequest, Explanation, Fetches, Fit, Mismatches, Mode, PassedOver, Refills,
    Samples, Undetermined, Verification, VerifyError, VerifyOptions, verify,
};

/// The crate's README. Tests run its example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
