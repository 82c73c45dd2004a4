//! The environment of the process.

use std::ffi::CStr;

use super::host;

/// Whether an environment variable has this value.
pub(crate) fn says(name: &CStr, value: &CStr) -> bool {
    host::environment_says(name, value)
}
