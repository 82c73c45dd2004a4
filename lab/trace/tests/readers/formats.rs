//! Tests of every format. Exact counts are compared with lines that the test counts, and several formats of
//! one recording are compared with each other.

use crate::bundled::{all, bytes, path};
use pageset_trace::{
    BLOCK_EVENTS_MAX, Event, EventKind, Extfrag, LostEvents, OpenOptions, SourceFormat, Strictness,
    TraceReader, open,
};

const TEXTS: [(&str, SourceFormat); 6] = [
    ("formats/ftrace.txt.xz", SourceFormat::Ftrace),
    ("formats/ftrace-old.txt", SourceFormat::Ftrace),
    ("formats/perf-script.txt.xz", SourceFormat::PerfScript),
    ("formats/perf-script-fields.txt.xz", SourceFormat::PerfScript),
    ("formats/trace-cmd-report.txt.xz", SourceFormat::TraceCmd),
    ("formats/trace-cmd-report-R.txt", SourceFormat::TraceCmd),
];

#[test]
fn every_matching_line_becomes_an_event() {
    for (name, format) in TEXTS {
        let mut reader = open(&path(name)).unwrap();
        assert_eq!(reader.info().source, format, "{name}");
        let events = all(reader.as_mut());
        let text = String::from_utf8(bytes(name)).unwrap();
        let mut total = 0;
        for kind in EventKind::ALL {
            let (plain, grouped) = (format!(": {}: ", kind.name()), format!(" kmem:{}: ", kind.name()));
            let lines = text
                .lines()
                .filter(|line| line.contains(&plain) || line.contains(&grouped))
                .filter(|line| kind != EventKind::KswapdSwitchedOut || line.contains("prev_comm=kswapd"))
                .count();
            assert_eq!(events.iter().filter(|event| event.kind == kind).count(), lines, "{name} {kind:?}");
            total += lines;
        }
        assert_eq!(events.len(), total);
        assert!(total > 15, "{name}");
    }
}

#[test]
fn whole_recordings_have_no_losses_and_the_counts_their_headings_give() {
    let mut reader = open(&path("formats/ftrace.txt.xz")).unwrap();
    assert_eq!(reader.info().cpus, Some(2));
    assert_eq!(all(reader.as_mut()).len(), 8582);
    assert_eq!(reader.lost(), LostEvents::default());
    let mut reader = open(&path("formats/trace-cmd-report-R.txt")).unwrap();
    assert_eq!(reader.info().cpus, Some(2));
    assert_eq!(all(reader.as_mut()).len(), 199);
    assert_eq!(reader.lost(), LostEvents::default());
}

#[test]
fn both_field_sets_of_perf_agree() {
    let long = all(open(&path("formats/perf-script.txt.xz")).unwrap().as_mut());
    let short = all(open(&path("formats/perf-script-fields.txt.xz")).unwrap().as_mut());
    assert_eq!(short.len(), 400);
    assert_eq!(long[..400], short);
}

#[test]
fn formatted_and_raw_reports_of_trace_cmd_agree() {
    let formatted = all(open(&path("formats/trace-cmd-report.txt.xz")).unwrap().as_mut());
    let raw = all(open(&path("formats/trace-cmd-report-R.txt")).unwrap().as_mut());
    assert_eq!(formatted[..raw.len()], raw);
}

/// Keeps only the fields of an event that are equal in the text and in the binary file of one recording. The
/// text lacks the interrupt state. For a work item, the text has the function's name, and the binary file has
/// the function's address.
fn common(mut event: Event) -> Event {
    (event.irq_flags, event.preempt) = (0, 0);
    if event.work().is_some() {
        event.pfn = 0;
    }
    event
}

#[test]
fn binary_and_text_of_one_recording_by_trace_cmd_agree() {
    let text: Vec<_> = all(open(&path("formats/trace-cmd-6.txt.xz")).unwrap().as_mut());
    let text: Vec<_> = text.into_iter().map(common).collect();
    assert!(text.iter().any(Event::is_tick) && text.len() > 1000);
    for name in ["formats/trace-cmd-6.dat.xz", "formats/trace-cmd-7.dat"] {
        let mut reader = open(&path(name)).unwrap();
        let info = reader.info();
        assert_eq!((info.source, info.cpus), (SourceFormat::TraceDat, Some(2)), "{name}");
        assert_eq!(info.kernel.as_deref(), Some("6.18.44-fc-v669"), "{name}");
        assert!(reader.has_ticks(&mut || {}).unwrap());
        let binary = all(reader.as_mut());
        let events: Vec<_> = binary.iter().copied().map(common).collect();
        assert!(events == text, "{name}");
        assert!(binary.iter().any(Event::in_interrupt), "{name}");
        assert_eq!(reader.lost(), LostEvents { overrun: 7737, ..LostEvents::default() }, "{name}");
    }
}

#[test]
fn binary_and_text_of_one_recording_by_perf_agree() {
    let text: Vec<_> = all(open(&path("formats/perf.data.txt.xz")).unwrap().as_mut());
    // A file of perf lacks the addresses of functions, so the file shows that a work item ran, but not which
    // work item.
    let work_is_any = |mut event: Event| {
        event.order = if event.work().is_some() { 0 } else { event.order };
        common(event)
    };
    let text: Vec<_> = text.into_iter().map(work_is_any).collect();
    let mut reader = open(&path("formats/perf.data.xz")).unwrap();
    let info = reader.info();
    assert_eq!((info.source, info.cpus), (SourceFormat::PerfData, Some(2)));
    assert_eq!(info.kernel.as_deref(), Some("6.18.44-fc-v669"));
    let binary = all(reader.as_mut());
    assert!(binary.iter().any(Event::in_interrupt) && binary.len() > 1000);
    let binary: Vec<_> = binary.into_iter().map(work_is_any).collect();
    assert!(binary == text);
    assert_eq!(reader.lost(), LostEvents::default());
}

/// Changes the first record of kind `from` in a file of perf to kind `to`, and reads the file.
fn with_record(from: u32, to: u32, change: impl Fn(&mut [u8])) -> Result<(usize, LostEvents), String> {
    let mut bytes = bytes("formats/perf.data.xz");
    let word = |at: usize, bytes: &[u8]| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
    let mut at = word(40, &bytes) as usize;
    while bytes[at..at + 4] != from.to_ne_bytes() {
        at += usize::from(u16::from_ne_bytes([bytes[at + 6], bytes[at + 7]]));
    }
    bytes[at..at + 4].copy_from_slice(&to.to_ne_bytes());
    change(&mut bytes[at + 8..]);
    let mut reader = OpenOptions::new().open_bytes("p.data".as_ref(), bytes).unwrap();
    read_to_end(reader.as_mut()).map(|events| (events, reader.lost()))
}

#[test]
fn what_perf_lost_is_counted_and_what_cannot_be_read_is_refused() {
    const COMM: u32 = 3;
    const LOST: u32 = 2;
    const LOST_SAMPLES: u32 = 13;
    const COMPRESSED: u32 = 81;
    for (kind, at) in [(LOST, 8), (LOST_SAMPLES, 0)] {
        let lose = |body: &mut [u8]| body[at..at + 8].copy_from_slice(&5_u64.to_ne_bytes());
        let (events, lost) = with_record(COMM, kind, lose).unwrap();
        assert_eq!((events, lost), (2735, LostEvents { overrun: 5, ..LostEvents::default() }));
    }
    let error = with_record(COMM, COMPRESSED, |_| ()).unwrap_err();
    assert!(error.starts_with("p.data: byte ") && error.contains("perf script"), "{error}");
}

#[test]
fn binary_files_that_were_cut_are_refused() {
    for name in ["formats/trace-cmd-6.dat.xz", "formats/trace-cmd-7.dat", "formats/perf.data.xz"] {
        let mut cut = bytes(name);
        cut.truncate(cut.len() / 2);
        let error = OpenOptions::new().open_bytes("cut".as_ref(), cut).map(drop).unwrap_err().to_string();
        assert!(error.contains("record again"), "{name}: {error}");
    }
}

/// perf writes the records first, then the list of the further parts, then the descriptions of the events,
/// and then the kernel's release and other texts.
#[test]
fn a_cut_file_of_perf_is_read_leniently_if_the_cut_is_behind_the_descriptions_of_its_events() {
    let whole = bytes("formats/perf.data.xz");
    let word = |at: usize| u64::from_ne_bytes(whole[at..at + 8].try_into().unwrap()) as usize;
    let records = word(40)..word(40) + word(48);
    let part = |number: usize| (word(records.end + 16 * number), word(records.end + 16 * number + 8));
    let (descriptions, (release, _)) = (part(0).0..part(0).0 + part(0).1, part(3));
    let open = |bytes: usize, strictness| {
        let options = OpenOptions::new().strictness(strictness);
        options.open_bytes("cut.data".as_ref(), whole[..bytes].to_vec()).map_err(|error| error.to_string())
    };
    let all_events = all(open(whole.len(), Strictness::Strict).unwrap().as_mut());
    for cut in [
        descriptions.start + 10_000,
        descriptions.end - 1,
        descriptions.end,
        release,
        release + 5,
        release + 68,
        whole.len() - 1,
    ] {
        let mut reader = open(cut, Strictness::Lenient).unwrap();
        let (is_cut, info) = (cut < whole.len() - 1, reader.info().clone());
        assert_eq!(info.not_recorded.iter().any(|what| what.contains("the file is cut")), is_cut, "{cut}");
        assert_eq!(info.kernel.is_some(), cut >= release + 68, "{cut}");
        assert_eq!(info.recorded.len(), open(whole.len(), Strictness::Strict).unwrap().info().recorded.len());
        assert!(all(reader.as_mut()) == all_events, "{cut}");
        assert_eq!(open(cut, Strictness::Strict).is_err(), is_cut, "{cut}");
    }
}

/// If the descriptions of the events are missing, the samples before the cut show which page events they are.
/// Tests that the page events of a cut file are the first page events of the whole file. Events of the last
/// round may be missing between other events, because perf writes a round CPU by CPU.
#[test]
fn a_file_of_perf_that_is_cut_among_its_samples_is_read_leniently_up_to_the_cut() {
    let whole = bytes("formats/perf.data.xz");
    let word = |at: usize| u64::from_ne_bytes(whole[at..at + 8].try_into().unwrap()) as usize;
    let records = word(40)..word(40) + word(48);
    let descriptions = word(records.end);
    let read = |bytes: &[u8], strictness| {
        let options = OpenOptions::new().strictness(strictness);
        let opened = options.open_bytes("cut.data".as_ref(), bytes.to_vec());
        let mut reader = opened.map_err(|error| error.to_string())?;
        let info = reader.info().clone();
        let events = all(reader.as_mut());
        Ok::<_, String>((info, events, reader.lost()))
    };
    let is_of_page = |event: &Event| event.kind.name().starts_with("mm_page");
    let mut expected = read(&whole, Strictness::Strict).unwrap().1;
    expected.retain(is_of_page);

    // A recording that was killed has no length of its data.
    let mut killed = whole[..records.end - 40].to_vec();
    killed[48..56].fill(0);
    let mut cuts = vec![(killed, true)];
    let among = (records.start + 60_000..records.end).step_by(6_997);
    cuts.extend(among.chain([records.end - 1]).map(|cut| (whole[..cut].to_vec(), true)));
    let behind = [records.end, records.end + 100, descriptions, descriptions + 2_000];
    cuts.extend(behind.map(|cut| (whole[..cut].to_vec(), false)));
    let mut counts = Vec::new();
    for (bytes, lacks_samples) in cuts {
        let cut = bytes.len();
        let error = read(&bytes, Strictness::Strict).unwrap_err();
        assert!(error.contains("record again"), "{cut}: {error}");
        assert_eq!(error.contains("leniently"), lacks_samples, "{cut}: {error}");
        let (info, events, lost) = read(&bytes, Strictness::Lenient).unwrap();
        let mut rest = expected.iter();
        assert!(events.iter().all(|event| rest.any(|other| other == event)), "{cut}");
        assert!(events.iter().all(is_of_page) && (lacks_samples || events.len() == expected.len()), "{cut}");
        assert_eq!(lost.gaps_of_unknown_size, u64::from(lacks_samples), "{cut}");
        assert_eq!(info.recorded.len(), 5, "{cut}");
        assert_eq!(info.assumed.len(), 1, "{cut}");
        let place = info.not_recorded.iter().find_map(|what| what.strip_prefix("events after byte "));
        let place = place.and_then(|rest| rest.split(' ').next()).map(|at| at.parse::<usize>().unwrap());
        assert_eq!(place.is_some(), lacks_samples, "{cut}: {:?}", info.not_recorded);
        assert!(place.is_none_or(|at| at <= cut && cut - at < 200), "{cut}: {place:?}");
        counts.push(events.len());
    }
    assert!(counts[1..].is_sorted() && counts[1] * 4 < expected.len(), "{counts:?}");
    // The first of these files has no samples. The second has only some samples of the first CPU.
    for cut in [records.start, records.start + 100] {
        let error = read(&whole[..cut], Strictness::Lenient).unwrap_err();
        assert!(error.contains("do not show which events are allocations and frees"), "{cut}: {error}");
    }
}

/// Regression test: fuzzing found such a file.
#[test]
fn a_long_name_does_not_make_a_long_error() {
    for name in ["7".to_owned() + &"\u{1}".repeat(200), "x".repeat(5000)] {
        let bytes = [b"\x17\x08\x44tracing".as_slice(), name.as_bytes(), &[0; 40]].concat();
        let error =
            OpenOptions::new().open_bytes("long.dat".as_ref(), bytes).map(drop).unwrap_err().to_string();
        assert!(error.len() < 400, "{error}");
    }
}

#[test]
fn a_sample_or_a_page_that_makes_no_sense_is_an_error_or_is_counted() {
    let perf = bytes("formats/perf.data.xz");
    // The changed file announces call chains in all samples, but the samples have none.
    let mut damaged = perf.clone();
    let attributes = u64::from_ne_bytes(perf[24..32].try_into().unwrap()) as usize;
    let (bytes_each, all_bytes) = (
        u64::from_ne_bytes(perf[16..24].try_into().unwrap()) as usize,
        perf[32] as usize + perf[33] as usize * 256,
    );
    for at in (attributes..attributes + all_bytes).step_by(bytes_each) {
        damaged[at + 24] |= 1 << 5;
    }
    let open = |strictness| {
        OpenOptions::new().strictness(strictness).open_bytes("p.data".as_ref(), damaged.clone()).unwrap()
    };
    let error = read_to_end(open(Strictness::Strict).as_mut()).unwrap_err();
    assert!(error.contains("leniently"), "{error}");
    let mut lenient = open(Strictness::Lenient);
    let count = read_to_end(lenient.as_mut()).unwrap() as u64;
    let lost = lenient.lost();
    assert_eq!(count + lost.malformed_lines + lost.unknown_events, 2735);
}

#[test]
fn the_old_style_is_read_with_decimal_frames() {
    let mut reader = open(&path("formats/ftrace-old.txt")).unwrap();
    let events = all(reader.as_mut());
    let lost = reader.lost();
    assert_eq!((lost.overrun, lost.lost_in_text, lost.unknown_events), (5, 5, 1));
    assert_eq!(lost.missing(), 10);
    assert_eq!(events[0].frame().unwrap().0, 295_948);
    assert_eq!((events[4].pid, events[4].cpu, events[4].preempt), (902, 1, 1));
    assert!(events[4].in_interrupt());
    let extfrag = events.iter().find_map(Event::extfrag).unwrap();
    assert_eq!(
        extfrag,
        Extfrag {
            alloc_order: 0,
            fallback_order: 9,
            alloc_migratetype: 1,
            fallback_migratetype: 0,
            change_ownership: true
        }
    );
    assert_eq!(events.iter().filter(|event| event.is_failed_allocation()).count(), 1);
}

#[test]
fn a_damaged_line_is_an_error_with_its_number_or_is_counted() {
    let text = String::from_utf8(bytes("formats/ftrace.txt.xz")).unwrap();
    let line = text.lines().position(|line| line.contains("mm_page_free:")).unwrap();
    let damaged: String = text
        .lines()
        .enumerate()
        .map(|(number, text)| if number == line { text.replace("pfn=", "pfn=!") } else { text.to_owned() } + "\n")
        .collect();
    let open = |strictness| {
        OpenOptions::new()
            .strictness(strictness)
            .open_bytes("damaged.txt".as_ref(), damaged.clone().into_bytes())
            .unwrap()
    };
    let error = read_to_end(open(Strictness::Strict).as_mut()).unwrap_err();
    assert!(error.starts_with(&format!("damaged.txt:{}: mm_page_free: pfn", line + 1)), "{error}");
    assert!(error.contains("copy /sys/kernel/tracing/trace again"), "{error}");
    let mut lenient = open(Strictness::Lenient);
    assert_eq!(read_to_end(lenient.as_mut()), Ok(8581));
    assert_eq!(lenient.lost().malformed_lines, 1);
}

#[test]
fn a_cut_last_line_is_not_believed() {
    let mut text = bytes("formats/perf-script.txt.xz");
    text.truncate(text.len() - 12);
    let mut reader = OpenOptions::new().open_bytes("cut.txt".as_ref(), text.clone()).unwrap();
    let error = read_to_end(reader.as_mut()).unwrap_err();
    assert!(error.contains(":8336: ") && error.contains("truncated"), "{error}");
}

#[test]
fn strange_bytes_between_lines_are_counted() {
    let mut text = bytes("formats/trace-cmd-report.txt.xz");
    text.extend(b"\0\xff\xfe[001]\n");
    text.extend(vec![b'x'; 1 << 20]);
    text.extend(b"\n");
    let mut reader = OpenOptions::new().open_bytes("strange.txt".as_ref(), text).unwrap();
    assert_eq!(read_to_end(reader.as_mut()), Ok(3999));
    assert_eq!((reader.lost().unrecognised_lines, reader.lost().oversized_lines), (1, 1));
}

/// Tests that an over-long line, which is skipped while the headings are read, is counted only once.
#[test]
fn an_over_long_line_among_the_headings_is_counted_once() {
    for length in [100 << 10, 1 << 20] {
        let mut text = b"# tracer: nop\n".to_vec();
        text.extend(vec![b'#'; length]);
        text.extend(b"\n# entries-in-buffer/entries-written: 1/1   #P:3\n a-1 [000] ..... 5.1: mm_page_free: pfn=1 order=0\nx");
        let mut reader = OpenOptions::new().open_bytes("long.txt".as_ref(), text).unwrap();
        assert_eq!(reader.lost().oversized_lines, 1, "{length} bytes");
        assert_eq!(reader.info().cpus, Some(3), "headings after it count too");
        let error = read_to_end(reader.as_mut()).unwrap_err();
        assert!(error.starts_with("long.txt:5: "), "{error}");
        assert_eq!(reader.lost().oversized_lines, 1, "{length} bytes");
    }
}

#[test]
fn text_is_looked_ahead_for_ticks_and_then_read_as_before() {
    let page = |number: u64| format!(" a-1 [000] ..... {}.5: mm_page_free: pfn={number} order=0\n", number);
    let lines: String = (0..2 * BLOCK_EVENTS_MAX as u64).map(page).collect();
    let work = |function: &str| {
        format!(
            " kworker/0:1-9 [000] ..... 900000.5: workqueue_execute_start: work struct 00000000c0ffee00: function {function}\n"
        )
    };
    for (last, has_ticks) in [("vmstat_update", true), ("lru_add_drain_per_cpu", false), ("other", false)] {
        let text = lines.clone() + &work(last) + &page(1_000_000);
        let open = || OpenOptions::new().open_bytes("t.txt".as_ref(), text.clone().into_bytes()).unwrap();
        let plain = all(open().as_mut());
        assert_eq!(plain.len(), 2 * BLOCK_EVENTS_MAX + 2);
        let mut reader = open();
        assert_eq!(reader.has_ticks(&mut || {}).unwrap(), has_ticks, "{last}");
        assert_eq!(reader.has_ticks(&mut || {}).unwrap(), has_ticks, "{last}, asked again");
        assert!(all(reader.as_mut()) == plain, "{last}");
        assert!(!reader.has_ticks(&mut || {}).unwrap(), "nothing is left");
    }
}

fn read_to_end(reader: &mut dyn TraceReader) -> Result<usize, String> {
    let (mut count, mut block) = (0, Vec::new());
    while reader.read_block(&mut block).map_err(|error| error.to_string())? > 0 {
        count += block.len();
    }
    Ok(count)
}
