//! Ways into every parser for arbitrary bytes: used by the smoke tests and by the targets in `fuzz/`. Not an interface.
//!
//! Each function takes any bytes, may return an error's text, and must neither panic nor take memory beyond what
//! the bytes' number and the documented limits allow.

use std::path::Path;

use crate::{
    Buddyinfo, Event, Layout, LayoutOptions, Pagetypeinfo, Vmstat, Zoneinfo, native,
    opening::OpenOptions,
    reader::{Recovery, Strictness},
    tasks::Tasks,
};

/// A name that no file has.
const NAME: &str = "\u{0}fuzz";

/// Opens and reads `bytes` in whatever format they seem to be; returns the number of events. With recovery, asks for
/// ticks beforehand.
///
/// # Errors
/// What is wrong, which must name the file.
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
        Recovery::UpToDamage => Some(reader.has_ticks().map_err(check)?),
    };
    let mut events = Vec::new();
    let (mut count, mut ticks) = (0, 0);
    while reader.read_block(&mut events).map_err(check)? > 0 {
        count += events.len();
        ticks += events.iter().filter(|event| event.is_tick()).count();
    }
    assert!(has_ticks.is_none_or(|has_ticks| has_ticks == (ticks > 0)), "the look ahead sees what comes");
    assert_eq!(reader.read_block(&mut events).map_err(check)?, 0, "the end stays the end");
    Ok(count)
}

/// Decodes `bytes` as the payload of a block, checksums put right.
///
/// # Errors
/// What is wrong.
pub fn block(bytes: &[u8], events: u32) -> Result<Vec<Event>, &'static str> {
    native::decode_payload(bytes, events)
}

/// Parses `text` as the names of tasks in a description, and asks for all of them.
///
/// # Errors
/// What is wrong.
pub fn tasks(text: &str) -> Result<(), String> {
    let tasks: Tasks = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let index = tasks.index();
    for task in tasks.all() {
        let found = index.find(task.tid, task.since_ns).expect("each is found at its beginning");
        assert_eq!((found.tid, found.since_ns), (task.tid, task.since_ns));
        // Most lead nowhere.
        let _ = (tasks.name(task), tasks.cgroup(task), index.process_name(task));
    }
    let json = serde_json::to_string(&tasks).map_err(|error| error.to_string())?;
    assert_eq!(serde_json::from_str::<Tasks>(&json).ok(), Some(tasks), "it survives being written");
    Ok(())
}

/// Parses `text` as a machine description in TOML; what is accepted survives writing.
///
/// # Errors
/// What is wrong.
pub fn layout(text: &str) -> Result<(), String> {
    let machine: Layout = toml::from_str(text).map_err(|error| error.to_string())?;
    machine.check()?;
    let written = machine.to_toml()?;
    let again: Layout = toml::from_str(&written).map_err(|error| error.to_string())?;
    assert_eq!(again, machine);
    Ok(())
}

/// Parses `text` as each of the `/proc` files; a layout of a copy survives writing.
pub fn procfs(text: &str) {
    for options in [LayoutOptions::new(), LayoutOptions::new().page_size(65_536)] {
        let Ok(machine) = options.read_zoneinfo(Path::new(NAME), text) else { continue };
        // TOML has no number above 2^63 - 1.
        let Ok(written) = machine.to_toml() else { continue };
        assert_eq!(toml::from_str(&written), Ok(machine));
    }
    drop(Zoneinfo::parse(text));
    drop(Buddyinfo::parse(text));
    drop(Pagetypeinfo::parse(text));
    drop(Vmstat::parse(text));
}
