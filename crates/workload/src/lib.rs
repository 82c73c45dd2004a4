//! Drives `pageset-core` with the page events of real kernels.
//!
//! [`replay`] runs a recording's allocations and frees through the core under any number of policies, on the
//! recording's own machine, and gives one [`Outcome`] per policy.
//! [`survey()`] counts what the recording itself contains.
#![deny(unsafe_code)]

mod ladder;
mod replay;
mod survey;

pub use ladder::{Ladder, Sweep};
pub use replay::{Outcome, Replay, ReplayError, ReplayOptions, Unreplayed, guess_machine, replay};
pub use survey::{
    Bursts, CpuTotals, Cpus, Kernel, KernelCounter, Lifetimes, Log2Counts, MATRIX_CPUS_MAX, Orders,
    PagesetState, Runs, Survey, SurveyOptions, TYPE_COLUMNS, ZoneState, ZoneSurvey, survey,
};
