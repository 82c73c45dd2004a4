//! Fuzzes this crate's parsers in ordinary tests with a limited number of cases. The inputs are arbitrary
//! bytes, and valid files that are damaged at random.
//!
//! The targets in `fuzz/` pass bytes to the same functions, for as long as a user wants.

use std::sync::LazyLock;

use pageset_trace::{
    Event, EventKind, LostEvents, NativeWriter, Recovery, Strictness, TaskBook, TraceInfo, WriteOptions,
    fuzzing, open,
};
use proptest::{collection::vec, prelude::*, sample::Index};

/// The beginning of a bundled text, which has all forms of lines and can be read quickly.
fn text(name: &str) -> Vec<u8> {
    let mut bytes = crate::bundled::bytes(name);
    bytes.truncate(4000);
    bytes
}

/// A small valid file of each format.
static VALID: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let reader = open(&crate::bundled::path("formats/ftrace-old.txt")).expect("bundled");
    let mut book = TaskBook::default();
    (0..5).for_each(|tid| book.add(tid, 1, u64::from(tid), b"\x1b[31m\xff"));
    book.put_cgroup(1, "/build");
    let tasks = Some(book.into_tasks());
    let info = TraceInfo { samples: Vec::new(), tasks, ..reader.info().clone() };
    let events: Vec<Event> = (0..300_u16)
        .map(|number| Event {
            pfn: u64::from(number) * 77,
            ..Event::new(
                EventKind::ALL[usize::from(number) % EventKind::COUNT],
                u64::from(number),
                number % 5,
            )
        })
        .collect();
    let mut writer = NativeWriter::new(Vec::new(), &info, WriteOptions::new()).expect("memory");
    writer.write(&events).expect("memory");
    let native = writer.finish(LostEvents::default()).expect("memory").0;
    vec![
        text("formats/ftrace.txt.xz"),
        text("formats/ftrace-old.txt"),
        text("formats/perf-script.txt.xz"),
        text("formats/perf-script-fields.txt.xz"),
        text("formats/trace-cmd-report.txt.xz"),
        text("formats/trace-cmd-report-R.txt"),
        text("formats/field/ftrace-stacktrace.txt"),
        text("formats/field/ftrace-real-time.txt"),
        text("formats/field/ftrace-2.6.txt"),
        text("formats/field/ftrace-raw.txt"),
        text("formats/field/perf-unknown-task.txt"),
        text("formats/field/perf-distances.txt"),
        text("formats/field/mem-info.txt"),
        crate::bundled::bytes("formats/trace-cmd-6.dat.xz"),
        crate::bundled::bytes("formats/trace-cmd-7.dat"),
        crate::bundled::bytes("formats/perf.data.xz"),
        std::fs::read(crate::bundled::path("formats/perf-script-fields.txt.xz")).expect("bundled"),
        native,
    ]
});

/// Copies of `/proc/zoneinfo`.
static COPIES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let names = ["2.6", "2node-cold", "2node", "64k", "indented", "own-zone"];
    let copy = |name| crate::bundled::bytes(&format!("formats/field/zoneinfo-{name}.txt"));
    names.map(|name| String::from_utf8(copy(name)).expect("text")).to_vec()
});

/// A random change to a file.
#[derive(Clone, Debug)]
enum Damage {
    Set(Index, u8),
    Cut(Index),
    Drop(Index, u8),
    Repeat(Index, Index),
    Insert(Index, Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        4 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        1 => any::<Index>().prop_map(Damage::Cut),
        2 => (any::<Index>(), any::<u8>()).prop_map(|(at, length)| Damage::Drop(at, length)),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Damage::Repeat(from, to)),
        2 => (any::<Index>(), vec(any::<u8>(), 1..20)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &[Damage]) {
    for damage in damage {
        if bytes.is_empty() {
            return;
        }
        let length = bytes.len();
        match damage {
            Damage::Set(at, byte) => bytes[at.index(length)] = *byte,
            Damage::Cut(at) => bytes.truncate(at.index(length)),
            Damage::Drop(at, count) => {
                let at = at.index(length);
                bytes.drain(at..length.min(at + usize::from(*count)));
            }
            Damage::Repeat(from, to) => {
                let (from, to) = (from.index(length), to.index(length));
                let part = bytes[from.min(to)..from.max(to)].to_vec();
                bytes.splice(from..from, part);
            }
            Damage::Insert(at, new) => {
                let at = at.index(length);
                bytes.splice(at..at, new.iter().copied());
            }
        }
    }
}

fn read_every_way(bytes: &[u8]) {
    for strictness in [Strictness::Strict, Strictness::Lenient] {
        for recovery in [Recovery::Refuse, Recovery::UpToDamage] {
            drop(fuzzing::trace(bytes, strictness, recovery));
        }
    }
}

/// Damages the bytes of `text`, and returns the result as text.
fn damaged_text(text: &str, damage: &[Damage]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    apply(&mut bytes, damage);
    String::from_utf8_lossy(&bytes).into_owned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_are_no_trace_but_no_panic(bytes in vec(any::<u8>(), 0..2000)) {
        read_every_way(&bytes);
    }

    #[test]
    fn arbitrary_bytes_behind_a_valid_start(
        which in any::<Index>(),
        kept in any::<Index>(),
        bytes in vec(any::<u8>(), 0..500),
    ) {
        let valid = which.get(&VALID);
        let mut file = valid[..kept.index(valid.len())].to_vec();
        file.extend(bytes);
        read_every_way(&file);
    }

    #[test]
    fn damaged_files(which in any::<Index>(), damage in vec(damage(), 1..6)) {
        let mut file = which.get(&VALID).clone();
        apply(&mut file, &damage);
        read_every_way(&file);
    }

    #[test]
    fn arbitrary_blocks(bytes in vec(any::<u8>(), 0..300), events in 0..100_000_u32) {
        if let Ok(decoded) = fuzzing::block(&bytes, events) {
            prop_assert!(decoded.len() <= 65_536);
        }
    }

    #[test]
    fn arbitrary_texts(text in "\\PC{0,400}", lines in "(Node|cpu:|count:|high:|pages|type|[0-9 ,]|zone|DMA|\n){0,80}") {
        for text in [&text, &lines] {
            fuzzing::procfs(text);
            drop(fuzzing::layout(text));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn damaged_copies_of_zoneinfo(which in any::<Index>(), damage in vec(damage(), 1..6)) {
        fuzzing::procfs(&damaged_text(&COPIES[which.index(COPIES.len())], &damage));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn damaged_names_of_tasks(damage in vec(damage(), 1..6), text in "\\PC{0,80}") {
        let valid = r#"{"names":["sh","cc1"],"cgroups":["/a"],"tasks":[[7,7,0,0,null],[8,7,5,1,0],[7,7,9,1,0]],"left_out":1}"#;
        fuzzing::tasks(valid).expect("valid as it is");
        drop(fuzzing::tasks(&damaged_text(valid, &damage)));
        drop(fuzzing::tasks(&text));
    }

    #[test]
    fn damaged_proc_files_and_machines(damage in vec(damage(), 1..4)) {
        for name in ["zoneinfo", "buddyinfo", "pagetypeinfo", "vmstat"] {
            let text = crate::bundled::bytes(&format!("formats/procfs/{name}.txt"));
            fuzzing::procfs(&damaged_text(&String::from_utf8(text).expect("text"), &damage));
        }
        let reader = open(&crate::bundled::path("traces/k61_2c_tcp.pgtrace")).expect("bundled");
        let machine = reader.info().machine.as_ref().expect("a machine").to_toml().expect("small numbers");
        fuzzing::layout(&machine).expect("valid as it is");
        drop(fuzzing::layout(&damaged_text(&machine, &damage)));
    }
}
