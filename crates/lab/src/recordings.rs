//! What other kernels and settings would have done with a recorded load, and how that is checked.

pub use pageset_workload::{
    Against, Candidate, Change, Interval, Mode, Outcome, Replay, ReplayError, ReplayOptions, Stage,
    Verification, VerifyError, VerifyOptions, VmSettings, against, replay, verify,
};
