//! Functions that pass arbitrary bytes to this crate's parsers. The smoke tests and the targets in `fuzz/`
//! use these functions. These functions are not a public interface.
//!
//! Each function accepts any bytes and may return the text of an error. A function must not panic, and its
//! memory is bounded by the number of bytes and the documented limits.

use std::path::Path;

use crate::{
    Buddyinfo, Event, Layout, LayoutOptions, Pagetypeinfo, Vmstat, Zoneinfo,
    damage::{Recovery, Strictness},
    native,
    opening::OpenOptions,
    tasks::Tasks,
};

/// A name that no file has.
const NAME: &str = "\u{0}fuzz";

/// Opens and reads `bytes` in the format that [`crate::open`] would detect, and returns the number of events.
/// If `recovery` allows damage, first asks the reader whether the trace has ticks.
///
/// # Errors
/// The text of an error. This function checks that the text names the file.
pub fn trace(bytes: &[u8], strictness: Strictness, recovery: Recovery) -> Result<usize, String> {
    let options = OpenOptions::new().strictness(strictness).recovery(recovery).spool_bytes_max(64 << 20);
    let check = |error: crate::TraceError| {
        let text = error.to_string();
        assert!(text.starts_with(NAME), "the error names the file: {text}");
        assert!(text.len() < 1000, "the error is readable: {text}");
        text
    };
    let mut reader = options.open_bytes(Path::new(NAME), bytes.to_vec()).map_err(check)?;
    let has_ticks = match recovery {
        Recovery::Refuse => None,
        Recovery::UpToDamage => Some(reader.has_ticks(&mut || {}).map_err(check)?),
    };
    let mut events = Vec::new();
    let (mut count, mut ticks) = (0, 0);
    while reader.read_block(&mut events).map_err(check)? > 0 {
        count += events.len();
        ticks += events.iter().filter(|event| event.is_tick()).count();
    }
    assert!(
        has_ticks.is_none_or(|has_ticks| has_ticks == (ticks > 0)),
        "expected a tick among the events if and only if the reader announced one"
    );
    assert_eq!(
        reader.read_block(&mut events).map_err(check)?,
        0,
        "expected no event from a reader that has reached the end"
    );
    Ok(count)
}

/// Decodes `bytes` as the payload of a block, as if its checksum were correct.
///
/// # Errors
/// The error's text.
pub fn block(bytes: &[u8], events: u32) -> Result<Vec<Event>, &'static str> {
    native::decode_payload(bytes, events)
}

/// Parses `text` as the names of tasks in a description, and looks up every task.
///
/// # Errors
/// The error's text.
pub fn tasks(text: &str) -> Result<(), String> {
    let tasks: Tasks = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let index = tasks.index();
    for task in tasks.all() {
        let found = index
            .find(task.tid, task.since_ns)
            .expect("expected to find each task by its number at the time of its beginning");
        assert_eq!((found.tid, found.since_ns), (task.tid, task.since_ns));
        // Most indices are out of range, so ignore the results.
        let _ = (tasks.name(task), tasks.cgroup(task), index.process_name(task));
    }
    let json = serde_json::to_string(&tasks).map_err(|error| error.to_string())?;
    assert_eq!(serde_json::from_str::<Tasks>(&json).ok(), Some(tasks), "it survives being written");
    Ok(())
}

/// Parses `text` as a machine description in TOML. An accepted description must stay the same when it is
/// written and parsed again.
///
/// # Errors
/// The error's text.
pub fn layout(text: &str) -> Result<(), String> {
    let machine: Layout = toml::from_str(text).map_err(|error| error.to_string())?;
    machine.check()?;
    let written = machine.to_toml()?;
    let again: Layout = toml::from_str(&written).map_err(|error| error.to_string())?;
    assert_eq!(again, machine);
    Ok(())
}

/// Parses `text` as each of the `/proc` files. A layout from a copy of `/proc/zoneinfo` must stay the same
/// when it is written and parsed again.
pub fn procfs(text: &str) {
    for options in [LayoutOptions::new(), LayoutOptions::new().page_size(65_536)] {
        let Ok(machine) = options.read_zoneinfo(Path::new(NAME), text) else { continue };
        // A layout with a number above 2^63 - 1 cannot be written, because TOML has no such number.
        let Ok(written) = machine.to_toml() else { continue };
        assert_eq!(toml::from_str(&written), Ok(machine));
    }
    drop(Zoneinfo::parse(text));
    drop(Buddyinfo::parse(text));
    drop(Pagetypeinfo::parse(text));
    drop(Vmstat::parse(text));
}
