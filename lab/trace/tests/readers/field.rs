//! Tests files as people post them. Each file must have the expected contents, or give the expected error.

use std::path::{Path, PathBuf};

use crate::bundled::{all, bytes, path};
use pageset_trace::{
    Event, EventKind, Layout, LayoutOptions, LostEvents, OpenOptions, Strictness, TraceReader, is_zoneinfo,
    open,
};

fn field(name: &str) -> PathBuf {
    path(&format!("formats/field/{name}"))
}

fn text(name: &str) -> String {
    String::from_utf8(bytes(&format!("formats/field/{name}"))).expect("text")
}

/// Reads the events of a text. The returned reader has the counts of losses.
fn read(text: &str) -> Result<(Vec<Event>, Box<dyn TraceReader>), String> {
    read_as(text, Strictness::Strict)
}

fn read_as(text: &str, strictness: Strictness) -> Result<(Vec<Event>, Box<dyn TraceReader>), String> {
    let options = OpenOptions::new().strictness(strictness);
    let opened = options.open_bytes("f.txt".as_ref(), text.as_bytes().to_vec());
    let mut reader = opened.map_err(|error| error.to_string())?;
    let (mut events, mut block) = (Vec::new(), Vec::new());
    while reader.read_block(&mut block).map_err(|error| error.to_string())? > 0 {
        events.extend_from_slice(&block);
    }
    Ok((events, reader))
}

/// Reads the layout from a changed copy of `/proc/zoneinfo`.
fn layout(text: &str, options: &LayoutOptions) -> Result<Layout, String> {
    let file = tempfile::Builder::new().suffix(".txt").tempfile().expect("a file");
    std::fs::write(file.path(), text).expect("written");
    let name = file.path().display().to_string();
    options.load(file.path()).map_err(|error| error.to_string().replace(&name, "z.txt"))
}

fn plain(text: &str) -> Result<Layout, String> {
    layout(text, &LayoutOptions::new())
}

fn assumes(layout: &Layout, words: &str) -> bool {
    layout.assumed.iter().any(|sentence| sentence.contains(words))
}

#[test]
fn lines_of_a_call_chain_are_passed_over() {
    let (events, reader) = read(&text("ftrace-stacktrace.txt")).unwrap();
    assert_eq!((events.len(), reader.lost()), (1, LostEvents::default()));
    assert_eq!((events[0].pfn, events[0].cpu, events[0].preempt), (1_844_202, 4, 1));
    let quoted: String =
        text("ftrace-stacktrace.txt").lines().flat_map(|line| ["> ", line, "\r\n"]).collect();
    let (events, reader) = read(&quoted).unwrap();
    assert_eq!((events.len(), reader.lost()), (1, LostEvents::default()));
    let report = "cpus=8\n cc1-9 [004] 77212.233931: mm_page_free: page=0x1 pfn=1844202 order=0\n cc1-9 [004] 77212.233934: \
                  kernel_stack:         <stack trace >\n=> trace_event_raw_event_mm_page_free (ffffffff811d0a04)\n=> \
                  release_pages (ffffffff811d0a05)\n";
    let (events, reader) = read(report).unwrap();
    assert_eq!((events.len(), reader.lost()), (1, LostEvents::default()));
    let perf = "perf  6429 [000]    22.498450:             kmem:mm_page_alloc: page=0x176a17 pfn=1534487 order=0 \
                migratetype=0 gfp_flags=GFP_KERNEL\n\tffffffffbe23e32e trace_event_raw_event_mm_page_alloc+0x22e \
                ([kernel.kallsyms])\n\t    7efdf7f7d3e8 __poll+0x18 (/usr/lib64/libc-2.28.so)\n\n";
    let (events, reader) = read(perf).unwrap();
    assert_eq!((events.len(), reader.lost()), (1, LostEvents::default()));
    assert_eq!(events[0].pfn, 1_534_487, "page= is a number without a kernel's address");
}

#[test]
fn columns_of_a_real_time_kernel_are_read_with_and_without_their_legend() {
    let whole = text("ftrace-real-time.txt");
    let (events, reader) = read(&whole).unwrap();
    assert_eq!((events.len(), reader.lost()), (6, LostEvents::default()));
    let levels: Vec<_> = events.iter().map(Event::interrupt_level).collect();
    assert_eq!(levels, [0, 0, 2, 1, 0, 0]);
    assert_eq!(events.iter().map(|event| event.preempt).collect::<Vec<_>>(), [0, 1, 1, 1, 1, 1]);
    let excerpt: String =
        whole.lines().filter(|line| !line.starts_with('#')).flat_map(|line| [line, "\n"]).collect();
    assert_eq!(read(&excerpt).unwrap().0, events);
    // Linux 5.4 with PREEMPT_RT prints one flag column less.
    let older: String = whole
        .lines()
        .filter(|line| !line.contains("preempt-lazy-depth"))
        .map(|line| {
            if line.starts_with('#') {
                format!("{line}\n")
            } else {
                format!("{}{}\n", &line[..38], &line[39..])
            }
        })
        .collect();
    let older: Vec<_> = read(&older).unwrap().0.iter().map(Event::interrupt_level).collect();
    assert_eq!(older, levels);
}

#[test]
fn events_before_linux_3_3_are_read_by_their_old_names() {
    let mut reader = open(&field("ftrace-2.6.txt")).unwrap();
    let events = all(reader.as_mut());
    let count = |kind| events.iter().filter(|event| event.kind == kind).count();
    assert_eq!(count(EventKind::MmPageAlloc), 100);
    assert_eq!(count(EventKind::MmPageFree), 40, "the kernel prints single frees twice");
    assert_eq!(count(EventKind::MmPageFreeBatched), 20);
    assert_eq!(events.iter().filter(|event| event.is_free()).count(), 60);
    assert_eq!(reader.lost(), LostEvents { unknown_events: 40, ..LostEvents::default() });
}

#[test]
fn perfs_unknown_task_is_a_task() {
    let whole = text("perf-unknown-task.txt");
    let (events, reader) = read(&whole).unwrap();
    assert_eq!((events.len(), reader.lost()), (3, LostEvents::default()));
    assert_eq!(events.iter().map(|event| event.pid).collect::<Vec<_>>(), [1_152_097, u32::MAX, 1_074_142]);
    let last_first: String = whole.lines().rev().flat_map(|line| [line, "\n"]).skip(2).collect();
    let (events, reader) = read(&last_first).unwrap();
    assert_eq!((events.len(), reader.info().source.name()), (2, "perf script text"));
}

#[test]
fn distances_in_the_array_of_pages_become_frames() {
    let steps_of_64 = text("perf-distances.txt");
    let (events, reader) = read(&steps_of_64).unwrap();
    let frames: Vec<_> = events.iter().map(|event| event.pfn).collect();
    assert_eq!(frames, (1_100_000..1_100_040).collect::<Vec<_>>());
    let [sentence] = reader.info().assumed.as_slice() else { panic!("{:?}", reader.info().assumed) };
    assert!(sentence.contains("divided by 64"), "{sentence}");
    let line = |frame: u64| {
        let distance = frame * 56;
        format!(
            "f 9 [001] 1.0001: kmem:mm_page_free: page={:#x} pfn={distance} order=0\n",
            0xffff_ea00_0000_0000 + distance
        )
    };
    let steps_of_56: String = (1_100_000..1_100_040).map(line).collect();
    assert_eq!(read(&steps_of_56).unwrap().0[39].pfn, 1_100_039);
    // A single number that is not a multiple of the step is damage.
    let damaged =
        steps_of_56.clone() + "f 9 [001] 1.0001: kmem:mm_page_free: page=0xffffea0000000039 pfn=57 order=0\n";
    let error = read(&damaged).map(drop).unwrap_err();
    assert!(error.starts_with("f.txt:41: ") && error.contains("a multiple of the step"), "{error}");
    // A text with only one event does not show the step between frames, so the reader rejects this text.
    let error = read(&line(64)).map(drop).unwrap_err();
    assert!(error.contains("too few") && error.contains("/sys/kernel/tracing/trace"), "{error}");
}

#[test]
fn text_that_has_no_names_or_no_context_is_refused_with_the_command_that_helps() {
    let page = "mm_page_alloc: page=00000000aa pfn=0x186a0 order=0 migratetype=1 gfp_flags=GFP_KERNEL";
    for (text, remedy) in [
        (text("ftrace-raw.txt"), "echo 0 > /sys/kernel/tracing/options/raw"),
        ("# tracer: nop\n0000691f 00000001 00000b65123e4f31 type: 653\n".to_owned(), "options/hex"),
        ("# tracer: nop\n\u{1f}i\0\0\u{1}\0\0\0type: 653\n".to_owned(), "options/bin"),
        ("26911 1 12528813095347 type: 653\n".to_owned(), "options/raw"),
        (format!("# tracer: nop\n#\n{page}\n"), "echo 1 > /sys/kernel/tracing/options/context-info"),
        (format!("# tracer: nop\n#\n cat-1458    1d..1.  123us : {page}\n"), "options/latency-format"),
        (format!("# tracer: function_graph\n 1)               |  /* {page} */\n"), "echo nop > "),
        (format!("cpus=2\n     cat-1458    1d..1. 5313.517212: {page}\n"), "without -l"),
        (format!("cat 1458 5313.517212: kmem:{page}\n"), "-F comm,pid,cpu,time,event,trace"),
        (" cpus=2\n cat-1 [000] 5.1: mm_page_alloc: page=0xffffea00 order=0 gfp_flags=0xcc0 migratetype=0\n".to_owned(), "without -R"),
    ] {
        let error = read(&text).map(drop).unwrap_err();
        let is_of_line = error.strip_prefix("f.txt:").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        assert!(is_of_line && error.contains(remedy), "{error}");
        assert!(!error.contains("leniently"), "to skip all lines is no remedy: {error}");
        // A text without any event is an error that quotes its first line.
        let lenient = read_as(&text, Strictness::Lenient).map(drop).unwrap_err();
        assert_eq!(lenient, error);
    }
}

#[test]
fn a_layout_of_an_old_kernel_says_what_it_takes_for_managed() {
    let machine = plain(&text("zoneinfo-2.6.txt")).unwrap();
    assert_eq!((machine.cpus, machine.zones.len(), machine.page_size), (8, 3, 4096));
    assert_eq!((machine.zones[1].present, machine.zones[1].managed), (828_852, 828_852));
    assert!(assumes(&machine, "present") && assumes(&machine, "4 KiB"), "{:?}", machine.assumed);
    let one = text("zoneinfo-2.6.txt").replacen(
        "        present  3900",
        "        present  3900\n        managed  3900",
        1,
    );
    let error = plain(&one).unwrap_err();
    assert!(error.starts_with("z.txt:") && error.contains("has no managed"), "{error}");
}

#[test]
fn a_copy_is_read_with_what_stands_before_its_lines() {
    let indented = text("zoneinfo-indented.txt");
    let machine = plain(&indented).unwrap();
    assert_eq!((machine.cpus, machine.zones.len()), (2, 3));
    let outdented: String = indented.lines().flat_map(|line| [&line[4..], "\n"]).collect();
    for prefix in ["", "> ", "> > ", "\t", "| ", "[   12.345678] ", "Jan  1 12:00:00 host kernel: "] {
        for end in ["\n", "\r\n"] {
            let copy: String = outdented.lines().flat_map(|line| [prefix, line, end]).collect();
            assert_eq!(plain(&copy).unwrap(), machine, "{prefix:?} {end:?}");
        }
    }
    assert_eq!(plain(&format!("$ cat /proc/zoneinfo\n{outdented}$ ")).unwrap(), machine);
    assert_eq!(plain(&format!("\u{feff}{outdented}")).unwrap(), machine);
}

#[test]
fn a_copy_that_was_cut_is_refused() {
    let whole: String = text("zoneinfo-indented.txt").lines().flat_map(|line| [&line[4..], "\n"]).collect();
    let zone_starts: Vec<_> = whole.match_indices("Node ").map(|(at, _)| at).skip(1).collect();
    let mut refused = 0;
    for cut in (1..whole.len()).filter(|cut| whole.as_bytes()[cut - 1] == b'\n') {
        match plain(&whole[..cut]) {
            // If a copy was cut off between two zones, only a lower zone's reserve shows that a zone is
            // missing.
            Ok(machine) if zone_starts.contains(&cut) => {
                let has_all = machine.zones.len() == 3;
                assert_eq!(
                    assumes(&machine, "check that the copy is complete"),
                    !has_all,
                    "{:?}",
                    machine.assumed
                );
            }
            // A copy that is cut off after the last field of a zone is read without an error.
            Ok(machine) => assert_eq!(machine.zones.len(), 3, "cut at {cut}"),
            Err(error) => {
                refused += 1;
                assert!(error.contains("cat /proc/zoneinfo") || error.contains("is no"), "{error}");
            }
        }
    }
    assert!(refused > 60, "{refused}");
    let unfinished = whole.trim_end_matches(|c: char| !c.is_ascii_digit());
    let cut_number = &unfinished[..unfinished.find("Node 0, zone  Movable").unwrap()];
    assert!(assumes(&plain(cut_number.trim_end()).unwrap(), "the last line has no line end"));
}

#[test]
fn a_zone_with_a_name_of_its_own_is_never_dropped_silently() {
    let whole = text("zoneinfo-own-zone.txt");
    let error = plain(&whole).unwrap_err();
    assert!(error.starts_with("z.txt:33: zone Non-volatile of node 0 has 1292800 pages"), "{error}");
    assert!(error.contains("sed '/zone *Non-volatile/,/start_pfn/d' z.txt"), "{error}");
    // Apply the remedy.
    let mut is_in = false;
    let without: String = whole
        .lines()
        .filter(|line| {
            is_in |= line.contains("zone Non-volatile");
            let is_kept = !is_in;
            is_in &= !line.contains("start_pfn");
            is_kept
        })
        .flat_map(|line| [line, "\n"])
        .collect();
    assert_eq!(plain(&without).unwrap().zones.len(), 1);
    // A device zone has no pages of the allocator.
    let device = whole.replace("Non-volatile", "  Device").replace("managed  1292800", "managed  0");
    let machine = plain(&device).unwrap();
    assert!(
        machine.zones.len() == 1 && assumes(&machine, "zone Device of node 0 is left out"),
        "{:?}",
        machine.assumed
    );
}

#[test]
fn the_batch_of_a_zone_shows_the_size_of_its_pages() {
    let of_64_kib = text("zoneinfo-64k.txt");
    let error = plain(&of_64_kib).unwrap_err();
    assert!(error.starts_with("z.txt:1: zone Normal of node 0 has batch 3"), "{error}");
    assert!(error.contains("63") && error.contains("--page-size 64K"), "{error}");
    let machine = layout(&of_64_kib, &LayoutOptions::new().page_size(65_536)).unwrap();
    assert_eq!((machine.page_size, machine.zones[0].managed), (65_536, 261_000));
    assert!(!assumes(&machine, "a page has"), "{:?}", machine.assumed);
    let of_16_kib = of_64_kib.replace("batch: 3", "batch: 15");
    assert!(plain(&of_16_kib).unwrap_err().contains("--page-size 16K"));
    assert_eq!(layout(&of_16_kib, &LayoutOptions::new().page_size(16_384)).unwrap().page_size, 16_384);
    let of_4_kib = of_64_kib.replace("batch: 3", "batch: 63");
    assert!(assumes(&plain(&of_4_kib).unwrap(), "batch 63 fits it"));
    let error = layout(&of_4_kib, &LayoutOptions::new().page_size(65_536)).unwrap_err();
    assert!(error.contains("--page-size 4K"), "{error}");
    // A zone that grew after boot has a batch that is too small. A zone that did not grow shows the page
    // size.
    let grown = text("zoneinfo-indented.txt");
    assert!(assumes(&plain(&grown).unwrap(), "batch 31 fits it"));
    // A small zone has the same batch under every page size.
    let small = of_64_kib.replace("262144", "16384").replace("261000", "16000");
    assert!(assumes(&plain(&small).unwrap(), "too small to show the size"));
}

#[test]
fn the_cpus_of_several_nodes_are_shown_given_or_asked_for() {
    let cpus =
        |machine: &Layout| machine.nodes.iter().map(|node| (node.id, node.cpus.clone())).collect::<Vec<_>>();
    let cold = plain(&text("zoneinfo-2node-cold.txt")).unwrap();
    assert_eq!(cpus(&cold), [(0, vec![0, 1]), (1, vec![])]);
    assert_eq!(
        (cold.zones[0].pagesets[0].count, cold.zones[0].pagesets[0].batch),
        (80, 31),
        "hot and cold pages"
    );
    assert!(assumes(&cold, "hot and cold") && assumes(&cold, "0=0-1,1="), "{:?}", cold.assumed);
    let two = text("zoneinfo-2node.txt");
    let shown = plain(&two).unwrap();
    assert_eq!(cpus(&shown), [(0, vec![0, 1]), (1, vec![2, 3])]);
    assert!(assumes(&shown, "the CPUs of the nodes are assumed to be 0=0-1,1=2-3"), "{:?}", shown.assumed);
    let given = LayoutOptions::new().node_cpus("0=0,2,1=1,3").unwrap();
    assert_eq!(cpus(&layout(&two, &given).unwrap()), [(0, vec![0, 2]), (1, vec![1, 3])]);
    assert!(!assumes(&layout(&two, &given).unwrap(), "CPUs are local"));
    // If CPUs hold pages of both nodes, the copy does not show the node of a CPU.
    let busy = two.replace("count: 0\n", "count: 7\n");
    let error = plain(&busy).unwrap_err();
    assert!(error.contains("2 nodes") && error.contains("--node-cpus 0=0-1,1=2-3"), "{error}");
    assert_eq!(cpus(&layout(&busy, &given).unwrap()), [(0, vec![0, 2]), (1, vec![1, 3])]);
    for (list, problem) in
        [("0=0-1,1=2", "CPU 3 has"), ("0=0-1,1=1-3", "two nodes"), ("0=0-2,4,1=3", "CPU 4 is on a node")]
    {
        let given = LayoutOptions::new().node_cpus(list).unwrap();
        let error = layout(&two, &given).unwrap_err();
        assert!(error.contains(problem), "{error}");
    }
    let third = LayoutOptions::new().node_cpus("0=0,1=1,2=2-3").unwrap();
    assert_eq!(layout(&two, &third).unwrap().nodes.len(), 3, "a node without memory is not in the file");
}

#[test]
fn cpus_between_others_may_be_offline() {
    let holes = text("zoneinfo-2node.txt").replace("cpu: 1\n", "cpu: 5\n");
    let machine = plain(&holes).unwrap();
    assert_eq!((machine.cpus, machine.online_cpus()), (6, 4));
    assert_eq!(machine.nodes[0].cpus, [0, 5]);
    assert_eq!((machine.node_of_cpu(4), machine.node_of_cpu(5)), (None, Some(0)));
}

#[test]
fn the_nodes_of_the_recording_serve_a_layout_for_it() {
    let recording = path("traces/k612_4c_2node_numa_tcp.pgtrace");
    let own = open(&recording).unwrap().info().machine.clone().unwrap();
    let copy = text("zoneinfo-2node.txt").replace("count: 0\n", "count: 7\n");
    let options = OpenOptions::new().layout_text("z.txt", copy, LayoutOptions::new());
    let reader = options.open(&recording).unwrap();
    let given = reader.info().machine.clone().unwrap();
    assert!(assumes(&given, "that the recording names"), "{:?}", given.assumed);
    let cpus = |machine: &Layout| machine.nodes.iter().map(|node| node.cpus.clone()).collect::<Vec<_>>();
    assert_eq!(cpus(&given), cpus(&own));
    // The layout gets the page size of the recording. A layout with another page size is accepted, but the
    // difference is listed as an assumption.
    assert!(!assumes(&given, "a page has"), "{:?}", given.assumed);
    let options = LayoutOptions::new().recorded_on(&own).page_size(65_536);
    let other = options.load(&field("zoneinfo-64k.txt")).unwrap();
    assert!(
        assumes(&other, "frames of the recording have 4 KiB, and frames of the layout 64 KiB"),
        "{:?}",
        other.assumed
    );
}

#[test]
fn another_file_is_called_by_its_name() {
    let mem_info = Layout::load(&field("mem-info.txt")).unwrap_err().to_string();
    assert!(mem_info.contains("(Mem-Info)") && mem_info.contains("cat /proc/zoneinfo"), "{mem_info}");
    let as_trace = open(&field("mem-info.txt")).map(drop).unwrap_err().to_string();
    assert!(as_trace.contains("(Mem-Info)") && as_trace.contains("neither events"), "{as_trace}");
    let prefixed: String =
        text("mem-info.txt").lines().flat_map(|line| ["[  123.456789] ", line, "\n"]).collect();
    assert!(plain(&prefixed).unwrap_err().contains("Mem-Info"));
    assert!(read(&prefixed).map(drop).unwrap_err().contains("Mem-Info"));
    let zoneinfo = open(&field("zoneinfo-64k.txt")).map(drop).unwrap_err().to_string();
    assert!(zoneinfo.contains("/proc/zoneinfo") && zoneinfo.contains("--to layout"), "{zoneinfo}");
    let trace = Layout::load(&field("perf-unknown-task.txt")).unwrap_err().to_string();
    assert!(trace.contains("is a trace (perf script text)"), "{trace}");
    assert!(is_zoneinfo(&field("zoneinfo-indented.txt")).unwrap());
    assert!(!is_zoneinfo(&field("mem-info.txt")).unwrap());
    assert!(is_zoneinfo(Path::new("/nowhere")).is_err());
}
