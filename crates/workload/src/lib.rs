//! Drives `pageset-core` with the page events of real kernels.
//!
//! [`replay`] runs a recording's allocations and frees through the core under any number of policies, on the
//! recording's own machine, and gives one [`Outcome`] per policy.
#![deny(unsafe_code)]

mod replay;

pub use replay::{Outcome, Replay, ReplayError, ReplayOptions, Unreplayed, guess_machine, replay};
