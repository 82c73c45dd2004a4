//! Tests that data which was not recorded is unknown, not zero. The tests write variants of a bundled
//! recording that lack the events of some kinds.
//!
//! A number in the JSON of a variant must equal the number of the whole recording, or be absent. Only numbers
//! about the file itself, and upper bounds of waits, may differ.

use std::path::Path;
use std::process::{Command, Output};

use pageset_trace::{Counts, EventKind, LostEvents, NativeWriter, SourceFormat, TraceInfo, WriteOptions};
use serde_json::Value;
use tempfile::TempDir;

const TRACE: &str = "data/traces/k612_2c_tcp.pgtrace";

/// The parts that a variant may lack. A part is a kind of event, or for waits two kinds: the beginning and
/// the end.
const PARTS: [&[EventKind]; 7] = {
    use EventKind::*;
    [
        &[MmPageAlloc],
        &[MmPageFree],
        &[MmPageFreeBatched],
        &[MmPageAllocZoneLocked],
        &[MmPagePcpuDrain],
        &[MmPageAllocExtfrag],
        &[ContentionBegin, ContentionEnd],
    ]
};
/// Parts that are needed to count refills and drains.
const VISITS: u32 = 0b001_1111;
/// Allocations and frees.
const LOAD: u32 = 0b000_0011;

/// How a file shows which kinds were recorded: by a list, as a recorder's file does, or only by its events,
/// as text does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Recorder,
    Text,
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pageset"));
    command.current_dir(root()).args(arguments).output().expect("pageset can be started")
}

/// The command's output, its error messages included.
fn said(arguments: &[&str]) -> String {
    let output = run(arguments);
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    text.concat().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn json(arguments: &[&str]) -> Value {
    let output = run(&[arguments, &["--format", "json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Writes the recording with the parts whose bits are set. `change` edits its description.
fn write(directory: &TempDir, parts: u32, source: Source, change: impl Fn(&mut TraceInfo)) -> String {
    let mut reader = pageset_trace::open(&root().join(TRACE)).expect("it is bundled");
    let left_out = PARTS.iter().enumerate().filter(|(at, _)| parts >> at & 1 == 0);
    let left_out: Vec<EventKind> = left_out.flat_map(|(_, kinds)| kinds.iter().copied()).collect();
    let mut info = reader.info().clone();
    match source {
        Source::Recorder => {
            let recorded = EventKind::ALL.into_iter().filter(|kind| !left_out.contains(kind));
            info.recorded = recorded.map(|kind| kind.name().to_owned()).collect();
        }
        Source::Text => info.source = SourceFormat::Ftrace,
    }
    change(&mut info);
    let path = directory.path().join(format!("{parts:07b}-{}.pgtrace", u8::from(source == Source::Text)));
    let file = std::fs::File::create(&path).expect("it can be written");
    let mut writer = NativeWriter::new(file, &info, WriteOptions::new().level(1)).expect("a head");
    let mut events = Vec::new();
    while reader.read_block(&mut events).expect("it is whole") > 0 {
        events.retain(|event| !left_out.contains(&event.kind));
        writer.write(&events).expect("it can be written");
    }
    writer.finish(LostEvents::default()).expect("it can be written");
    path.display().to_string()
}

/// Whether this number of a variant may differ from the whole recording's number. Two kinds of numbers may
/// differ: numbers about the file itself, and upper bounds in place of waits that were not recorded.
fn is_of_file(path: &str) -> bool {
    let last = path.rsplit('.').next().unwrap_or_default();
    path.starts_with("events.")
        || ["trace.", "provenance."].iter().any(|head| path.starts_with(head)) && path != "trace.unseen"
        || ["events", "seconds", "impossible"].contains(&last)
        || path == "findings.waiting.percent"
        || ["load.cpu_time_ns", "load.wait_ns", "waits_percent"]
            .iter()
            .any(|part| path.starts_with(&format!("findings.spending.{part}")))
}

/// The field that identifies an entry of a list.
fn name(value: &Value) -> Option<String> {
    let keys = ["order", "cpu", "policy", "zone", "from"];
    keys.iter().find_map(|key| value.get(key)).map(Value::to_string)
}

/// Collects numbers in `part` that differ from `whole`.
fn differing(path: &str, whole: &Value, part: &Value, found: &mut Vec<String>) {
    match part {
        Value::Number(number) if part != whole && !is_of_file(path) => {
            found.push(format!("{path}: {number}, not {whole}"));
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                differing(&inner, whole.get(key).unwrap_or(&Value::Null), value, found);
            }
        }
        Value::Array(values) => {
            for (at, value) in values.iter().enumerate() {
                let others = whole.as_array();
                let other = match name(value) {
                    Some(named) => {
                        others.and_then(|all| all.iter().find(|one| name(one).as_deref() == Some(&named)))
                    }
                    None => others.and_then(|all| all.get(at)),
                };
                differing(path, other.unwrap_or(&Value::Null), value, found);
            }
        }
        _ => {}
    }
}

#[track_caller]
fn assert_part(verb: &str, parts: u32, whole: &Value, part: &Value) {
    let mut found = Vec::new();
    differing("", whole, part, &mut found);
    assert!(found.is_empty(), "{verb}, parts {parts:07b}: {found:#?}");
}

#[test]
fn every_number_of_stat_and_advise_is_that_of_the_whole_recording_or_unknown() {
    let directory = tempfile::tempdir().expect("a directory");
    for source in [Source::Recorder, Source::Text] {
        let whole = write(&directory, 0b111_1111, source, |_| ());
        let whole = [json(&["stat", &whole]), json(&["advise", &whole])];
        for parts in 0..0b111_1111 {
            let part = write(&directory, parts, source, |_| ());
            let [stat, advice] = [json(&["stat", &part]), json(&["advise", &part])];
            assert_part("stat", parts, &whole[0], &stat);
            assert_part("advise", parts, &whole[1], &advice);
            if parts & VISITS != VISITS {
                let label = format!("{parts:07b}: {advice}");
                assert_eq!(
                    advice["verdict"],
                    serde_json::json!({"verdict": "unknown", "why": "not_recorded"}),
                    "{label}"
                );
                assert_eq!(advice["forecasts"], serde_json::json!([]), "{label}");
                assert!(
                    advice["findings"]["visits"].is_null() && advice["findings"]["waiting"].is_null(),
                    "{label}"
                );
                let first = advice["sentences"][0].as_str().expect("a sentence");
                assert!(first.starts_with("This recording does not say. It has no mm_page_"), "{first}");
                assert!(first.contains("record them with `pageset record`"), "{first}");
                let lacking = advice["findings"]["not_recorded"].as_array().expect("a list");
                assert!(!lacking.is_empty() && stat["warnings"][0].as_str().is_some(), "{label}");
            }
        }
    }
}

/// Tests that the counts of a kernel that never went to a zone are 0, and not null as if they had not been
/// recorded.
#[test]
fn a_run_without_visits_has_zeros() {
    let directory = tempfile::tempdir().expect("a directory");
    let all_kinds = |info: &mut TraceInfo| {
        info.recorded = EventKind::ALL.into_iter().map(|kind| kind.name().to_owned()).collect();
    };
    let path = write(&directory, 0b110_0111, Source::Recorder, all_kinds);
    let replay = json(&["replay", &path, "-p", "linux-6.12,linux-6.18"]);
    for key in ["refills", "refilled_pages", "drains", "drained_pages"] {
        assert_eq!(replay["trace"]["kernel_itself"][key], 0, "{key}");
    }
    const KEYS: [&str; 4] = ["drained_pages", "refilled_pages", "visits", "zone_lock_acquisitions"];
    for row in replay["rows"].as_array().expect("rows") {
        assert!(row["interval"].as_object().expect("intervals").keys().eq(KEYS), "{row}");
        for key in KEYS {
            let ends = [&row["interval"][key][0], &row["interval"][key][1]].map(Value::as_u64);
            assert!(ends[0].is_some() && ends[0] <= ends[1], "{key}: {row}");
        }
    }
}

#[test]
fn every_number_of_replay_is_that_of_the_whole_recording_or_unknown() {
    let directory = tempfile::tempdir().expect("a directory");
    let replay = |path: &str| json(&["replay", path, "-p", "linux-6.12"]);
    let whole = replay(&write(&directory, 0b111_1111, Source::Recorder, |_| ()));
    for parts in (0..0b111_1111).filter(|parts| parts & LOAD == LOAD) {
        let mut part = replay(&write(&directory, parts, Source::Text, |_| ()));
        assert_part("replay", parts, &whole["trace"]["kernel_itself"], &part["trace"]["kernel_itself"]);
        if parts & VISITS == VISITS {
            assert_part("replay", parts, &whole, &part);
            continue;
        }
        let row = part["rows"][0].take();
        assert!(row["interval"].is_null(), "{parts:07b}: how near it comes is not known");
        assert_eq!(
            (&row["allocs"], &row["frees"]),
            (&whole["rows"][0]["allocs"], &whole["rows"][0]["frees"])
        );
        assert_eq!(row["is_recorded_kernel"], false, "{parts:07b}");
        let warning = part["warnings"][0].as_str().expect("a warning");
        assert!(warning.contains("does not show what its kernel did"), "{warning}");
        assert!(warning.contains("It has no mm_page_"), "{warning}");
    }
}

/// The words of a command line: a verb with its options, and the recording.
fn words<'w>(verb: &'w str, recording: &'w str) -> Vec<&'w str> {
    verb.split(' ').chain([recording]).collect()
}

#[test]
fn verbs_that_need_what_was_not_recorded_refuse_and_say_what_is_missing() {
    let directory = tempfile::tempdir().expect("a directory");
    for (parts, verbs) in [
        (0b111_1110, ["replay", "verify", "simulate --recording"].as_slice()),
        (0b111_1101, &["replay", "verify", "simulate --recording"]),
        (0b000_0001, &["replay", "verify", "simulate --recording"]),
        (0b111_1011, &["verify"]),
        (0b111_0111, &["verify"]),
        (0b110_1111, &["verify"]),
        (0b000_0011, &["verify"]),
    ] {
        let path = write(&directory, parts, Source::Text, |_| ());
        for verb in verbs {
            let output = run(&words(verb, &path));
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{verb} {parts:07b}: {error}");
            assert!(error.contains("This recording does not say. It has no mm_page_"), "{verb}: {error}");
            assert!(error.contains("record them with `pageset record`"), "{verb}: {error}");
            assert!(output.stdout.is_empty(), "{verb} {parts:07b}");
        }
    }
    let path = write(&directory, LOAD, Source::Text, |_| ());
    let against = said(&["verify", &path, "--against", TRACE]);
    assert!(
        against.contains("It has no mm_page_free_batched, mm_page_pcpu_drain and mm_page_alloc_zone_locked"),
        "{against}"
    );
}

#[test]
fn a_page_of_a_recording_without_its_kernels_events_has_no_count_of_them() {
    let directory = tempfile::tempdir().expect("a directory");
    for parts in [0b000_0001, 0b000_0011, 0b000_1111, 0b111_1110] {
        let path = write(&directory, parts, Source::Text, |_| ());
        let page = said(&["report", &path]);
        assert!(page.contains("This recording does not say. It has no mm_page_"), "{parts:07b}");
        assert!(page.contains("There is no forecast"), "{parts:07b}");
        for made_up in ["0 refills", "0 drains", "visits a second", "drains 0", "refills 0"] {
            assert!(!page.contains(made_up), "{parts:07b}: {made_up}");
        }
    }
}

#[test]
fn text_of_allocations_alone_says_nothing_of_page_sets() {
    for trace in ["data/formats/allocs-only.txt", "data/formats/alloc-free-only.txt"] {
        let advice = said(&["advise", trace]);
        assert!(
            advice.contains(
                "This recording does not say. It has no mm_page_free, mm_page_free_batched, mm_page_pcpu_drain and \
                 mm_page_alloc_zone_locked events: none happened, or they were not switched on; record them with \
                 `pageset record`, or with `perf record -a -e 'kmem:mm_page_*'"
            ),
            "{advice}"
        );
        for verb in ["replay", "simulate --recording"] {
            let error = said(&words(verb, trace));
            assert!(error.contains("This recording does not say. It has no mm_page_free events"), "{error}");
        }
        let stat = said(&["stat", trace]);
        assert!(stat.contains("`-` is unknown."), "{stat}");
    }
}

#[test]
fn where_a_setting_changed_and_it_is_not_known_when_no_forecast_is_made() {
    let directory = tempfile::tempdir().expect("a directory");
    let change = |info: &mut TraceInfo| {
        info.not_recorded.push("when vm.percpu_pagelist_high_fraction changed from 8 to 512".to_owned());
    };
    let path = write(&directory, 0b111_1111, Source::Recorder, change);
    let advice = json(&["advise", &path]);
    assert_eq!(advice["verdict"]["why"], "setting_changed");
    assert_eq!(advice["forecasts"], serde_json::json!([]));
    for verb in ["advise", "replay", "verify", "report"] {
        let said = said(&[verb, &path]);
        let sentence = "does not say when vm.percpu_pagelist_high_fraction changed from 8 to 512";
        assert!(said.contains(sentence), "{verb}: {said}");
    }
}

#[test]
fn what_is_said_is_of_the_longest_part_under_one_setting() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut on = (0, 0);
    let change_at = |part: f64| {
        move |info: &mut TraceInfo| {
            let (begin, end) = info.t_on_ns.zip(info.t_off_ns).expect("a recorder's times");
            let at = begin + ((end - begin) as f64 * part) as u64;
            info.setting_changes.push(pageset_trace::SettingChange {
                name: "percpu_pagelist_high_fraction".to_owned(),
                from: "0".to_owned(),
                to: "8".to_owned(),
                after_ns: at - 1_000_000,
                before_ns: at,
            });
        }
    };
    let info = pageset_trace::open(&root().join(TRACE)).expect("it is bundled").info().clone();
    (on.0, on.1) = info.t_on_ns.zip(info.t_off_ns).expect("times");
    for (part, words) in [(0.7, "its first 2.6 s"), (0.2, "what comes after 0.7 s")] {
        let path = write(&directory, 0b111_1111, Source::Recorder, change_at(part));
        let advice = json(&["advise", &path]);
        let seconds = advice["findings"]["seconds"].as_f64().expect("a time");
        assert!(seconds < 0.85 * (on.1 - on.0) as f64 / 1e9, "{seconds}");
        for (verb, warnings) in [
            ("advise", &advice["warnings"]),
            ("replay", &json(&["replay", &path, "-p", "linux-6.12"])["warnings"]),
            ("verify", &json(&["verify", &path])["warnings"]),
        ] {
            let warning = warnings[0].as_str().expect("a warning");
            assert!(
                warning.contains("vm.percpu_pagelist_high_fraction changed from 0 to 8"),
                "{verb}: {warning}"
            );
            assert!(warning.contains(words), "{verb}: {warning}");
        }
        for verb in ["advise", "replay", "verify", "report"] {
            let said = said(&[verb, &path]);
            assert!(said.contains("changed from 0 to 8"), "{verb}: {said}");
        }
        // The charts over time show the change, although the verdict is about one part of the recording.
        let html = said(&["report", &path]);
        let change = "\"text\":\"vm.percpu_pagelist_high_fraction changed from 0 to 8 between ";
        assert!(html.contains(change), "each chart has the change");
        assert!(html.contains("vm.percpu_pagelist_high_fraction=0"), "the settings when it began");
        assert!(html.contains("The charts over time show the whole recording"), "it is said");
        let forecast = |setting: &str| {
            let forecasts = advice["forecasts"].as_array().expect("a list");
            forecasts.iter().any(|forecast| forecast["settings"] == setting)
        };
        let is_under_8 = part < 0.5;
        assert_eq!(forecast("vm.percpu_pagelist_high_fraction=8"), !is_under_8, "the part's own is none");
        assert_eq!(forecast("vm.percpu_pagelist_high_fraction=0"), is_under_8);
    }
}

/// Tests a load of one kernel that is labelled as another kernel's, so that the own row differs much from the
/// recorded kernel's counts.
#[test]
fn beyond_the_limit_of_its_own_row_a_recording_gives_no_advice() {
    let directory = tempfile::tempdir().expect("a directory");
    let path =
        write(&directory, 0b111_1111, Source::Recorder, |info| info.kernel = Some("5.14.0".to_owned()));
    let advice = json(&["advise", &path]);
    let off = advice["findings"]["own_off_percent"].as_f64().expect("a distance");
    assert!(off.abs() > 25.0, "{off}");
    assert_eq!(advice["verdict"]["why"], "own_kernel_missed");
    let warnings = advice["warnings"].to_string();
    assert!(warnings.contains("Beware: linux-5.14 under its own policy is replayed"), "{warnings}");
    for verb in ["advise", "replay", "report"] {
        let said = said(&[verb, &path]);
        assert!(said.contains("Beware: linux-5.14 under its own policy is replayed"), "{verb}: {said}");
    }
}

#[test]
fn a_recording_of_some_cpus_gives_no_verdict_on_the_machine() {
    let directory = tempfile::tempdir().expect("a directory");
    let change = |info: &mut TraceInfo| info.not_recorded.push("other CPUs than 0: not asked for".to_owned());
    let path = write(&directory, 0b111_1111, Source::Recorder, change);
    let advice = json(&["advise", &path]);
    assert_eq!(advice["verdict"]["why"], "part_of_machine");
    assert!(said(&["advise", &path]).contains("It has the events of CPU 0 only."));
}

#[test]
fn counts_make_no_trace_for_perfetto() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = write(&directory, 0, Source::Recorder, |info| info.counts = Some(Counts::default()));
    let output = directory.path().join("counts.pftrace");
    let error = said(&["convert", &path, &output.display().to_string(), "--to", "perfetto"]);
    assert!(error.contains("it has no events, only counts"), "{error}");
    assert!(!output.exists(), "{error}");
}

/// Tests that a text without a layout is refused after its first 64 KiB. The next line is damaged, so reading
/// it would give another error.
#[test]
fn what_lacks_a_layout_is_refused_before_the_rest_is_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("text.txt");
    let kinds = [
        ("mm_page_alloc", " migratetype=1 gfp_flags=GFP_KERNEL"),
        ("mm_page_free", ""),
        ("mm_page_free_batched", ""),
        ("mm_page_pcpu_drain", " migratetype=1"),
        ("mm_page_alloc_zone_locked", " migratetype=1 percpu_refill=1"),
    ];
    for lacking in [0, 2] {
        let mut text = String::from("# tracer: nop\n#\n");
        for number in 0..1_000_u32 {
            let (kind, rest) = kinds[number as usize % (kinds.len() - lacking)];
            let (pfn, at_s) = (4096 + number, 7200.0 + f64::from(number) / 1e5);
            text += &format!(
                "  bash-901     [000] .....  {at_s:.6}: {kind}: page=0x{pfn:x} pfn=0x{pfn:x} order=0{rest}\n"
            );
        }
        assert!(text.len() > 64 << 10, "the damaged line is behind the first 64 KiB");
        text += "  bash-901     [000] .....  7300.000000: mm_page_free: page=0x1000 pfn=nonsense order=0\n";
        std::fs::write(&path, text).expect("it can be written");
        let path = path.to_str().expect("UTF-8");
        // If kinds of events are missing, `advise` only counts events, and needs no layout.
        let verbs: &[&str] = if lacking == 0 { &["verify", "advise"] } else { &["verify"] };
        for verb in verbs {
            let error = said(&[verb, path]);
            let refusal = "text.txt: This recording does not say how memory is laid out (give `--layout`)";
            assert!(error.contains(refusal), "{verb}: {error}");
            let kinds = "it has no mm_page_pcpu_drain and mm_page_alloc_zone_locked events";
            assert_eq!(error.contains(kinds), lacking > 0, "{verb}: {error}");
        }
        assert!(said(&["stat", path]).contains("nonsense"), "the end cannot be read");
    }
}
