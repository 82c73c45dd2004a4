//! Kernel settings that changed while recording.

use serde::{Deserialize, Serialize};

/// A setting of `/proc/sys/vm` whose value changed between two observations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingChange {
    /// The setting's name in `/proc/sys/vm`.
    pub name: String,
    /// The old value.
    pub from: String,
    /// The new value.
    pub to: String,
    /// Time when the old value was last observed, in nanoseconds of the events' clock.
    pub after_ns: u64,
    /// Time when the new value was first observed.
    pub before_ns: u64,
}
