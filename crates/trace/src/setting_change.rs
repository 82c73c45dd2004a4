//! Settings of the kernel that changed while it was recorded.

use serde::{Deserialize, Serialize};

/// A setting of `/proc/sys/vm` that got another value. It did so between two looks at it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingChange {
    /// Its name there.
    pub name: String,
    /// The value it had.
    pub from: String,
    /// The value it got.
    pub to: String,
    /// When the old value was seen last, in nanoseconds of the events' clock.
    pub after_ns: u64,
    /// When the new value was seen first.
    pub before_ns: u64,
}
