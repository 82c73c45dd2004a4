//! Tests the native file. Events survive writing and reading, damage is noticed, and the undamaged part can
//! be read.

use crate::bundled::{all, path};
use pageset_trace::{
    BLOCK_EVENTS_MAX, Event, EventKind, Gap, LostEvents, NativeReader, NativeWriter, OpenOptions, Recovery,
    TaskBook, Tasks, TraceError, TraceInfo, WriteOptions, convert, open,
};

const BUNDLED: [(&str, usize); 14] = [
    ("k618_2c_make_lua_j4", 1_114_888),
    ("k618_2c_make_openssl_j4", 665_737),
    ("k618_2c_make_openssl_tcc", 488_037),
    ("k618_2c_make_openssl_clang", 488_185),
    ("k618_2c_hackbench_sock", 210_962),
    ("k618_2c_fault_loop", 1_322_680),
    ("k612_2c_pf1x1", 131_156),
    ("k612_2c_tcp", 54_775),
    ("k612_2c_unix_stream", 46_398),
    ("k612_2c_sctp", 22_044),
    ("k612_8c_unix_stream", 90_390),
    ("k612_4c_2node_numa_tcp", 38_989),
    ("k61_2c_unix_stream", 35_836),
    ("k61_2c_tcp", 19_509),
];

#[test]
fn bundled_traces_are_whole_and_described() {
    for (name, count) in BUNDLED {
        let mut reader = open(&path(&format!("traces/{name}.pgtrace"))).unwrap();
        let events = all(reader.as_mut());
        assert_eq!(events.len(), count, "{name}");
        assert_eq!(reader.lost(), LostEvents::default(), "{name}");
        let info = reader.info();
        assert_eq!(info.events, Some(count as u64));
        let machine = info.machine.as_ref().unwrap();
        machine.check().unwrap();
        assert!(name.contains(&format!("_{}c_", machine.cpus)), "{name}");
        for snapshot in [&info.before, &info.after] {
            let snapshot = snapshot.as_ref().unwrap();
            assert_eq!(snapshot.zoneinfo.populated().count(), machine.zones.len());
            for zone in &machine.zones {
                let blocks = snapshot.buddyinfo.zone(zone.node, zone.kind).unwrap();
                assert!(blocks.frames() > 0 && blocks.frames() <= zone.managed, "{name} {}", zone.kind);
                assert!(snapshot.pagetypeinfo.as_ref().unwrap().pageblocks(zone.node, zone.kind).is_some());
            }
        }
        // Even a recording of one second has a few samples.
        assert!(info.samples.len() > 3, "{name}: {}", info.samples.len());
        // Every frame of a page event is in a zone of the machine.
        for event in &events {
            if let Some(frame) = event.frame() {
                assert!(machine.zone_of(frame.0).is_some(), "{name}: {event:?}");
            }
        }
    }
}

#[test]
fn a_recording_and_its_conversion_are_equal() {
    let mut recording = open(&path("traces/k61_2c_tcp.pgtrace")).unwrap();
    let mut bytes = Vec::new();
    let mut last = 0;
    let summary =
        convert(recording.as_mut(), &mut bytes, WriteOptions::new().level(1), |count| last = count).unwrap();
    assert_eq!((summary.events, last), (19_509, 19_509));
    assert_eq!(summary.bytes, bytes.len() as u64);
    let mut converted = OpenOptions::new().open_bytes("t.pgtrace".as_ref(), bytes).unwrap();

    let mut recording = open(&path("traces/k61_2c_tcp.pgtrace")).unwrap();
    assert_eq!(all(converted.as_mut()), all(recording.as_mut()));
    let mut info = converted.info().clone();
    info.path = recording.info().path.clone();
    assert_eq!(&info, recording.info());
}

#[test]
fn text_traces_survive_with_their_losses() {
    let name = path("formats/ftrace-old.txt");
    let mut bytes = Vec::new();
    let summary = convert(open(&name).unwrap().as_mut(), &mut bytes, WriteOptions::new(), |_| ()).unwrap();
    assert_eq!(summary.lost.missing(), 10);
    let mut back = OpenOptions::new().open_bytes("t.pgtrace".as_ref(), bytes).unwrap();
    assert_eq!(all(back.as_mut()), all(open(&name).unwrap().as_mut()));
    assert_eq!(back.lost(), summary.lost);
}

#[test]
fn the_index_leads_to_any_time() {
    let name = path("traces/k612_2c_pf1x1.pgtrace");
    let mut reader = NativeReader::open(&name, Recovery::Refuse).unwrap();
    assert_eq!(reader.blocks().len(), 131_156_usize.div_ceil(BLOCK_EVENTS_MAX));
    let events = all(&mut reader);
    let count = |kind| events.iter().filter(|event| event.kind == kind).count() as u64;
    for (kind, counted) in reader.kind_counts().unwrap() {
        assert_eq!(counted, count(kind), "{kind:?}");
    }
    assert_eq!(reader.cpu_counts().unwrap().iter().sum::<u64>(), events.len() as u64);
    let mut reader = open(&name).unwrap();
    for place in [0, 1, 65_535, 65_536, 100_000, events.len() - 1] {
        let ts_ns = events[place].ts_ns;
        let first = events.iter().position(|event| event.ts_ns >= ts_ns).unwrap();
        reader.seek_ns(ts_ns).unwrap();
        assert_eq!(all(reader.as_mut()), events[first..], "from event {place}");
    }
    reader.seek_ns(u64::MAX).unwrap();
    assert!(all(reader.as_mut()).is_empty());
    let mut text = open(&path("formats/ftrace-old.txt")).unwrap();
    assert!(text.seek_ns(0).unwrap_err().to_string().contains("convert"));
}

fn three_blocks() -> (Vec<Event>, Vec<u8>) {
    let events: Vec<Event> = (0..2 * BLOCK_EVENTS_MAX as u64 + 5)
        .map(|number| Event {
            pfn: number ^ 0x155,
            ..Event::new(EventKind::MmPageFree, 1000 + number, (number % 3) as u16)
        })
        .collect();
    let options = WriteOptions::new().level(1);
    let mut writer = NativeWriter::new(Vec::new(), &TraceInfo::default(), options).unwrap();
    writer.write(&events[..70_000]).unwrap();
    writer.write(&events[70_000..]).unwrap();
    let (bytes, length) = writer.finish(LostEvents::default()).unwrap();
    assert_eq!(bytes.len() as u64, length);
    (events, bytes)
}

#[test]
fn a_truncated_file_is_recognised_and_can_be_read_up_to_the_damage() {
    let (events, bytes) = three_blocks();
    for cut in (40..bytes.len()).step_by(bytes.len() / 60 + 1) {
        let part = bytes[..cut].to_vec();
        let error =
            OpenOptions::new().open_bytes("cut.pgtrace".as_ref(), part.clone()).err().expect("an error");
        let error = error.to_string();
        assert!(error.starts_with("cut.pgtrace: byte ") && error.contains("again"), "{error}");
        let options = OpenOptions::new().recovery(Recovery::UpToDamage);
        let Ok(mut reader) = options.open_bytes("cut.pgtrace".as_ref(), part) else {
            assert!(cut < 400, "only the description cannot be spared");
            continue;
        };
        let mut first = Vec::new();
        if let Err(error) = reader.read_block(&mut first) {
            assert!(error.to_string().contains("no event before this"), "{error}");
            continue;
        }
        let left = [first, all(reader.as_mut())].concat();
        assert!(!left.is_empty(), "nothing is recovered silently");
        assert_eq!(left.len() % BLOCK_EVENTS_MAX, if left.len() == events.len() { 5 } else { 0 });
        assert_eq!(left, events[..left.len()]);
    }
}

#[test]
fn every_changed_byte_is_noticed() {
    let (events, bytes) = three_blocks();
    for at in (0..bytes.len()).step_by(bytes.len() / 300 + 1) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x20;
        let read = OpenOptions::new().open_bytes("x.pgtrace".as_ref(), damaged).and_then(|mut reader| {
            let (mut all, mut block) = (Vec::new(), Vec::new());
            while reader.read_block(&mut block)? > 0 {
                all.extend_from_slice(&block);
            }
            Ok(all)
        });
        assert!(read.is_err(), "byte {at} of {}, {} events", bytes.len(), events.len());
    }
}

/// The events and bytes of a file whose last event is a tick.
fn tick_at_the_end() -> (Vec<Event>, Vec<u8>) {
    let (mut events, _) = three_blocks();
    *events.last_mut().unwrap() =
        Event { order: 1, ..Event::new(EventKind::WorkqueueExecuteStart, 1 << 40, 0) };
    let mut writer =
        NativeWriter::new(Vec::new(), &TraceInfo::default(), WriteOptions::new().level(1)).unwrap();
    writer.write(&events).unwrap();
    (events, writer.finish(LostEvents::default()).unwrap().0)
}

#[test]
fn a_tick_is_found_in_any_block_and_nothing_is_skipped() {
    let (events, bytes) = tick_at_the_end();
    for recovery in [Recovery::Refuse, Recovery::UpToDamage] {
        let options = OpenOptions::new().recovery(recovery);
        let mut reader = options.open_bytes("t.pgtrace".as_ref(), bytes.clone()).unwrap();
        assert!(reader.has_ticks(&mut || {}).unwrap());
        assert!(all(reader.as_mut()) == events);
        assert!(!reader.has_ticks(&mut || {}).unwrap(), "nothing is left");
        let mut reader = options.open_bytes("t.pgtrace".as_ref(), three_blocks().1).unwrap();
        assert!(!reader.has_ticks(&mut || {}).unwrap());
    }
    // The index is missing, and the last block is cut off.
    let options = OpenOptions::new().recovery(Recovery::UpToDamage);
    let footer = bytes.len() - 24;
    let mut reader = options.open_bytes("t.pgtrace".as_ref(), bytes[..footer].to_vec()).unwrap();
    assert!(reader.has_ticks(&mut || {}).unwrap());
    let last = index_offset(&bytes) - 1;
    let mut reader = options.open_bytes("t.pgtrace".as_ref(), bytes[..last].to_vec()).unwrap();
    assert!(!reader.has_ticks(&mut || {}).unwrap(), "the last block is not delivered");
    assert_eq!(all(reader.as_mut()).len(), 2 * BLOCK_EVENTS_MAX);
}

fn index_offset(bytes: &[u8]) -> usize {
    u64::from_le_bytes(bytes[bytes.len() - 24..][..8].try_into().unwrap()) as usize
}

/// Tests that a block counts as damaged if its header names a kind of event that the block lacks. `has_ticks`
/// relies on the kinds in headers.
#[test]
fn kinds_that_are_not_in_the_block_are_damage() {
    let (_, mut bytes) = three_blocks();
    let stored = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    let header = &mut bytes[32 + stored..][..40];
    assert_eq!(header[..4], *b"PGBK");
    header[33] ^= 2;
    let crc = crc32fast::hash(&header[..36]);
    header[36..].copy_from_slice(&crc.to_le_bytes());
    let mut reader = OpenOptions::new().open_bytes("k.pgtrace".as_ref(), bytes).unwrap();
    let error = reader.read_block(&mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("other kinds"), "{error}");
}

#[test]
fn recovery_gets_around_an_index_that_promises_too_much() {
    let (events, mut bytes) = three_blocks();
    let (start, end) = (index_offset(&bytes), bytes.len() - 24 - 4);
    bytes[start + 16 + 8] += 1;
    let crc = crc32fast::hash(&bytes[start..end]);
    bytes[end..end + 4].copy_from_slice(&crc.to_le_bytes());
    let read = |recovery| {
        let options = OpenOptions::new().recovery(recovery);
        let mut reader = options.open_bytes("p.pgtrace".as_ref(), bytes.clone())?;
        let (mut count, mut block) = (0, Vec::new());
        while reader.read_block(&mut block)? > 0 {
            count += block.len();
        }
        Ok((count, reader.lost().damaged_blocks))
    };
    let error: TraceError = read(Recovery::Refuse).unwrap_err();
    assert!(matches!(error, TraceError::Damaged { .. }), "{error}");
    assert_eq!(read(Recovery::UpToDamage).unwrap(), (events.len(), 1));
}

#[test]
fn an_empty_trace_is_a_trace() {
    let writer = NativeWriter::new(Vec::new(), &TraceInfo::default(), WriteOptions::new()).unwrap();
    let (bytes, _) = writer.finish(LostEvents::default()).unwrap();
    let mut reader = OpenOptions::new().open_bytes("empty.pgtrace".as_ref(), bytes).unwrap();
    assert_eq!(reader.info().events, Some(0));
    assert!(all(reader.as_mut()).is_empty());
}

/// Two tasks. The name of one task has characters that are dangerous to print.
fn tasks() -> Tasks {
    let mut book = TaskBook::default();
    book.add(8, 8, 3, b"make");
    book.put_cgroup(8, "/build");
    book.add(9, 8, 4, b"\x1b[31m\xff");
    book.into_tasks()
}

/// A recording whose closing description differs from the description at its head.
fn recorded() -> (Vec<u8>, TraceInfo, TraceInfo, Vec<Event>) {
    let head = TraceInfo { name: Some("as it began".into()), t_on_ns: Some(1), ..TraceInfo::default() };
    let end = TraceInfo {
        name: Some("as it ended".into()),
        t_off_ns: Some(9),
        recorder_pids: vec![7],
        tasks: Some(tasks()),
        not_recorded: vec!["kmem:mm_page_free: no".into()],
        gaps: vec![Gap { cpu: 1, after_ns: 2, before_ns: 5, events: Some(3) }],
        ..head.clone()
    };
    let events: Vec<Event> =
        (0..10).map(|at| Event { pfn: at, ..Event::new(EventKind::MmPageFree, at, 0) }).collect();
    let mut writer = NativeWriter::provisional(Vec::new(), &head, WriteOptions::new()).unwrap();
    writer.write(&events[..4]).unwrap();
    writer.flush().unwrap();
    writer.flush().unwrap();
    writer.write(&events[4..]).unwrap();
    let lost = LostEvents { overrun: 3, ..LostEvents::default() };
    let (bytes, size) = writer.finish_with(&end, lost).unwrap();
    assert_eq!(size, bytes.len() as u64);
    (bytes, head, end, events)
}

#[test]
fn a_closing_description_replaces_the_one_at_the_head() {
    let (bytes, _, end, events) = recorded();
    assert_eq!(bytes[8..12], [1, 0, 1, 0], "version 1.1");
    let mut reader = OpenOptions::new().open_bytes("t.pgtrace".as_ref(), bytes).unwrap();
    let lost = LostEvents { overrun: 3, ..LostEvents::default() };
    let expected = TraceInfo { path: "t.pgtrace".into(), events: Some(10), lost, ..end };
    assert_eq!(reader.info(), &expected);
    assert_eq!(all(reader.as_mut()), events);
    assert_eq!(reader.lost(), lost);
}

#[test]
fn a_recording_that_is_cut_off_anywhere_is_read_up_to_there() {
    let (bytes, head, end, events) = recorded();
    let find = |magic: &[u8]| bytes.windows(4).position(|window| window == magic).unwrap();
    let (first, closing) = (find(b"PGBK"), find(b"PGDS"));
    let second = first + 1 + bytes[first + 1..].windows(4).position(|window| window == b"PGBK").unwrap();
    for cut in first..=bytes.len() {
        let options = OpenOptions::new().recovery(Recovery::UpToDamage);
        let mut reader = options.open_bytes("t.pgtrace".as_ref(), bytes[..cut].to_vec()).unwrap();
        let expected = if cut == bytes.len() { &end.name } else { &head.name };
        assert_eq!(&reader.info().name, expected, "cut at {cut}");
        if cut > first && cut < second {
            assert!(reader.read_block(&mut Vec::new()).is_err(), "nothing is left at {cut}");
            continue;
        }
        let read = all(reader.as_mut());
        let whole = if cut == first {
            0
        } else if cut < closing {
            4
        } else {
            10
        };
        assert_eq!(read, events[..whole], "cut at {cut}");
        let is_between = [first, second, closing].contains(&cut) || cut >= closing + 4;
        assert_eq!(reader.lost().damaged_blocks, u64::from(!is_between), "cut at {cut}");
    }
}

#[test]
fn a_damaged_closing_description_is_noticed() {
    let (bytes, head, ..) = recorded();
    let closing = bytes.windows(4).position(|window| window == b"PGDS").unwrap();
    for at in [closing, closing + 5, closing + 14, closing + 30] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        let error = OpenOptions::new().open_bytes("t.pgtrace".as_ref(), damaged.clone()).err().unwrap();
        assert!(matches!(error, TraceError::Damaged { offset, .. } if offset == closing as u64), "{error}");
        let options = OpenOptions::new().recovery(Recovery::UpToDamage);
        let mut reader = options.open_bytes("t.pgtrace".as_ref(), damaged).unwrap();
        assert_eq!(reader.info().name, head.name);
        assert_eq!(all(reader.as_mut()).len(), 10);
    }
}

/// Tests files with one changed byte, and files that are cut at some place. The error must mention recovery
/// if and only if recovery reads some events.
#[test]
fn recovery_is_advised_exactly_where_it_recovers_events() {
    let (bytes, ..) = recorded();
    let cut = (0..bytes.len()).map(|end| bytes[..end].to_vec());
    let flipped = (0..bytes.len()).map(|at| {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        damaged
    });
    let count = |bytes: &[u8], recovery| -> Result<usize, TraceError> {
        let options = OpenOptions::new().recovery(recovery);
        let mut reader = options.open_bytes("t.pgtrace".as_ref(), bytes.to_vec())?;
        let (mut count, mut block) = (0, Vec::new());
        while reader.read_block(&mut block)? > 0 {
            count += block.len();
        }
        Ok(count)
    };
    let mut advised = [0, 0];
    for damaged in cut.chain(flipped) {
        let Err(error) = count(&damaged, Recovery::Refuse) else { continue };
        let is_advised = matches!(error, TraceError::Damaged { .. });
        let recovered = count(&damaged, Recovery::UpToDamage).unwrap_or(0);
        assert_eq!(is_advised, recovered > 0, "{recovered} events: {error}");
        assert_eq!(is_advised, error.to_string().contains("recovery"), "{error}");
        advised[usize::from(is_advised)] += 1;
    }
    assert!(advised.iter().all(|&files| files > 10), "both kinds are met: {advised:?}");
}
