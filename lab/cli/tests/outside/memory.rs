//! Tests that a command that runs out of memory prints an error. No signal may end the command.

use std::process::Command;

use pageset_trace::{Event, EventKind, LostEvents, NativeWriter, WriteOptions};

const MACHINE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/traces/k612_4c_2node_numa_tcp.pgtrace");

/// Writes a recording whose pages are spread over all memory of a machine with four CPUs. One million events
/// allocate and free single pages.
fn write(path: &std::path::Path) {
    let info = pageset_trace::open(MACHINE.as_ref()).expect("it is bundled").info().clone();
    let zones = &info.machine.as_ref().expect("it has a machine").zones;
    let zone = zones.iter().max_by_key(|zone| zone.spanned).expect("it has zones");
    let (start, spanned) = (zone.start_pfn, zone.spanned);
    let file = std::fs::File::create(path).expect("a file can be made");
    let mut writer = NativeWriter::new(file, &info, WriteOptions::new().level(1)).expect("a head");
    let kinds = [EventKind::MmPageAlloc, EventKind::MmPageFree];
    for block in 0..10_u64 {
        let events = (block * 100_000..(block + 1) * 100_000).map(|number| Event {
            pfn: start + number / 2 * 4099 % spanned,
            migratetype: 1,
            ..Event::new(kinds[number as usize % 2], 1_000_000 + 1000 * number, (number / 64 % 4) as u16)
        });
        writer.write(&events.collect::<Vec<_>>()).expect("events can be written");
    }
    writer.finish(LostEvents::default()).expect("it can be written");
}

#[test]
fn short_memory_is_an_error_and_never_a_signal() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let path = directory.path().join("spread.pgtrace");
    write(&path);
    let path = path.display();
    let (mut refused, mut read) = (0, 0);
    for verb in [
        "stat",
        "replay -p linux-6.18",
        "verify",
        "convert --force --to perfetto -p linux-6.18",
        "simulate -p linux-6.18 --recording",
    ] {
        for limit_mib in [60, 70, 80, 90, 100, 110, 120, 140, 160, 180, 200, 250, 300, 400] {
            let script = format!(
                "ulimit -v {}; exec {} {verb} {path}",
                limit_mib << 10,
                env!("CARGO_BIN_EXE_pageset")
            );
            let mut shell = Command::new("sh");
            let output = shell.args(["-c", &script]).current_dir(directory.path()).output();
            let output = output.expect("sh can be started");
            let error = String::from_utf8_lossy(&output.stderr);
            match output.status.code() {
                Some(0) => read += 1,
                Some(1) if error.contains("MiB") => refused += 1,
                // The system could not even load the program.
                Some(127) if error.contains("loading shared libraries") => {}
                _ => assert!(
                    error.contains("It has no mm_page"),
                    "{verb}, {limit_mib} MiB, {:?}: {error}",
                    output.status
                ),
            }
        }
    }
    assert!(refused > 0 && read > 0, "{refused} {read}");
}
