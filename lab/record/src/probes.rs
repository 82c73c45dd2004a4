//! Makes probes at the entry and return of the kernel's bulk allocator, which has no tracepoint.
//!
//! Source: the kernel's documentation "Kprobe-based Event Tracing". The documented arguments of
//! `alloc_pages_bulk` begin with the flags, and the fourth argument is the number of pages.

use std::{fs, io::Write as _};

use crate::error::RecordError;
use crate::tracefs::Tracefs;

const ENTRY: &str = "alloc_pages_bulk_entry";
const RETURN: &str = "alloc_pages_bulk_return";

/// The group name of an instance's probes. A group name cannot contain dashes.
pub(crate) fn group(instance: &str) -> String {
    instance.replace('-', "_")
}

/// Makes the probes on `function`.
///
/// # Errors
/// A sentence about the reason of the failure.
pub(crate) fn make(tracefs: &Tracefs, instance: &str, function: &str) -> Result<(), String> {
    let path = tracefs.path("kprobe_events");
    if !path.exists() {
        return Err("this kernel has no kprobe events".to_owned());
    }
    let group = group(instance);
    let definitions = [
        format!("p:{group}/{ENTRY} {function} gfp_flags=$arg1:u32 nr_pages=$arg4:u64"),
        format!("r:{group}/{RETURN} {function} ret=$retval:u64"),
    ];
    for definition in definitions {
        append(tracefs, &definition).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Removes the probes of an instance, if it has any.
pub(crate) fn remove(tracefs: &Tracefs, instance: &str) {
    let group = group(instance);
    if !tracefs.path("events").join(&group).exists() {
        return;
    }
    for event in [ENTRY, RETURN] {
        // Removing a probe that does not exist fails, which is harmless.
        drop(append(tracefs, &format!("-:{group}/{event}")));
    }
}

fn append(tracefs: &Tracefs, line: &str) -> Result<(), RecordError> {
    let path = tracefs.path("kprobe_events");
    let write = || fs::OpenOptions::new().append(true).open(&path)?.write_all(line.as_bytes());
    write().map_err(|error| RecordError::io(&path, "write", error))
}
