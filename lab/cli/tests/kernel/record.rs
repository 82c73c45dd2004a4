//! Tests `pageset record` on the running kernel. Without root or tracing files, each test prints that it is
//! skipped.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{MutexGuard, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use pageset_trace::{Event, EventKind, OpenOptions, Recovery, TraceInfo};
use tempfile::TempDir;

pub(crate) const PAGESET: &str = env!("CARGO_BIN_EXE_pageset");
pub(crate) const INSTANCES: &str = "/sys/kernel/tracing/instances";
/// Waits until this test may use the machine alone. If the machine cannot record, prints the reason and
/// returns `None`.
pub(crate) fn machine() -> Option<MutexGuard<'static, ()>> {
    let guard = crate::one_at_a_time();
    if let Some(refused) = refused() {
        eprintln!("skipped, since this machine cannot record: {refused}");
        return None;
    }
    Some(guard)
}

/// Returns the reason why this machine cannot record; `None` if the machine can record. The first call
/// runs `record --check`, and later calls return its result.
pub(crate) fn refused() -> Option<&'static str> {
    static REFUSED: OnceLock<Option<String>> = OnceLock::new();
    let ask = || {
        let check = || pageset(&["record", "--check"]);
        let mut answer = check();
        if !answer.status.success() && !Path::new(INSTANCES).exists() {
            // The error names the command that mounts tracefs. Run the named command, and check the machine
            // again.
            drop(Command::new("mount").args(["-t", "tracefs", "nodev", "/sys/kernel/tracing"]).output());
            answer = check();
        }
        (!answer.status.success()).then(|| text(&answer.stderr).trim().to_owned())
    };
    REFUSED.get_or_init(ask).as_deref()
}

pub(crate) fn pageset(arguments: &[&str]) -> Output {
    Command::new(PAGESET).args(arguments).output().expect("the command can be started")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
pub(crate) fn succeeds(arguments: &[&str]) -> String {
    let output = pageset(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Starts the command so that signals have their default effects, as on a terminal. A test runner in the
/// background may ignore some signals, and its children ignore the same signals.
pub(crate) fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new("env");
    command
        .args(["--default-signal=INT,TERM,HUP", PAGESET])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().expect("the command can be started")
}

pub(crate) fn send(signal: &str, child: &Child) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()));
}

/// Waits until `is_so` returns true.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn instance_of(child: &Child) -> PathBuf {
    Path::new(INSTANCES).join(format!("pageset-{}", child.id()))
}

pub(crate) fn read(path: &Path, recovery: Recovery) -> (TraceInfo, Vec<Event>) {
    let mut reader = OpenOptions::new().recovery(recovery).open(path).expect("it is a trace");
    let (mut all, mut block) = (Vec::new(), Vec::new());
    while reader.read_block(&mut block).expect("it can be read") > 0 {
        all.extend_from_slice(&block);
    }
    (reader.info().clone(), all)
}

/// Makes a directory, and returns it with the path and the name of a trace in it.
pub(crate) fn directory() -> (TempDir, PathBuf, String) {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let path = directory.path().join("t.pgtrace");
    let name = path.display().to_string();
    (directory, path, name)
}

/// A file system in memory, which is unmounted when this value is dropped.
pub(crate) struct Tmpfs(pub(crate) TempDir);

impl Tmpfs {
    pub(crate) fn mount(size: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let options = format!("size={size}");
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(directory.path())
            .status();
        assert!(status.is_ok_and(|status| status.success()), "root can mount");
        Self(directory)
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(self.0.path()).status());
    }
}

#[test]
fn a_known_load_is_recorded_whole_and_can_be_used() {
    let Some(_guard) = machine() else { return };
    const PAGES: u64 = 16 << 8;
    let (_directory, path, name) = directory();
    let memory = Tmpfs::mount("64m");
    let file = memory.0.path().join("load").display().to_string();
    // Without the sleep, a recording on a busy machine might end before the recorder takes a sample.
    let load = format!("dd if=/dev/zero of={file} bs=1M count=16 2>/dev/null; rm {file}; sleep 1; exit 3");
    let said = succeeds(&["record", "-o", &name, "--", "sh", "-c", &load]);
    assert!(said.contains("ended: exit status: 3") && said.contains("Lost events: 0."), "{said}");

    let (info, events) = read(&path, Recovery::Refuse);
    let pages = |kind| {
        let own =
            events.iter().filter(|event| event.kind == kind && !info.recorder_pids.contains(&event.pid));
        own.map(|event| 1_u64 << event.order.min(10)).sum::<u64>()
    };
    assert!(pages(EventKind::MmPageAlloc) >= PAGES, "{}", pages(EventKind::MmPageAlloc));
    assert!(pages(EventKind::MmPageFree) >= PAGES, "{}", pages(EventKind::MmPageFree));
    assert!(events.is_sorted_by_key(|event| event.ts_ns) || info.lost.out_of_order > 0);
    let (on, off) = (info.t_on_ns.unwrap(), info.t_off_ns.unwrap());
    assert!(on <= info.t_start_ns.unwrap() && info.t_end_ns.unwrap() <= off);
    assert!(events.iter().all(|event| (on..=off).contains(&event.ts_ns)));
    assert!(info.pgalloc_delta.unwrap() >= PAGES && info.pgfree_delta.unwrap() >= PAGES);
    let machine = info.machine.unwrap();
    let frames = events.iter().filter_map(Event::frame);
    assert!(frames.map(|pfn| machine.zone_of(pfn.0)).all(|zone| zone.is_some()));
    assert!(info.before.is_some() && info.after.is_some() && info.recorder_pids.len() == 3);

    // Each sample lies between its marks.
    assert!(!info.samples.is_empty());
    let marks: Vec<_> = events.iter().filter(|event| event.kind == EventKind::Marker).collect();
    assert!(marks.iter().all(|mark| mark.pfn & 0xfff == u64::from(mark.cpu)));
    let last = info.samples.last().unwrap();
    let between = marks.iter().filter(|mark| (last.t0_ns..=last.t1_ns).contains(&mark.ts_ns));
    assert_eq!(between.map(|mark| mark.pfn >> 24).collect::<Vec<_>>(), [0x5a, 0x5b]);

    assert!(succeeds(&["stat", &name]).contains("mm_page_alloc"));
    succeeds(&["verify", &name]);
    succeeds(&["replay", &name, "-p", "linux-6.1,linux-6.12"]);
    succeeds(&["convert", &name, &format!("{name}.again")]);
    let again = pageset(&["record", "-o", &name, "--for", "1s"]);
    assert!(text(&again.stderr).contains("exists already"), "{}", text(&again.stderr));
}

#[test]
fn an_interrupt_ends_a_recording_well() {
    let Some(_guard) = machine() else { return };
    for signal in ["-INT", "-TERM", "-HUP"] {
        let (_directory, path, name) = directory();
        let mut child = start(&["record", "-o", &name]);
        wait_until("the trace grows", || fs::metadata(&path).is_ok_and(|file| file.len() > 0));
        send(signal, &child);
        wait_until("the signal ends it", || child.try_wait().unwrap().is_some());
        assert!(child.wait().unwrap().success(), "{signal}");
        assert!(!instance_of(&child).exists());
        assert!(read(&path, Recovery::Refuse).0.after.is_some());
    }
}

#[test]
fn a_killed_recorder_leaves_its_trace_and_the_next_one_cleans_up() {
    let Some(_guard) = machine() else { return };
    let (directory, path, name) = directory();
    let mut child = start(&["record", "-o", &name]);
    let is_written =
        |path: &Path| fs::read(path).is_ok_and(|trace| trace.windows(4).any(|part| part == b"PGBK"));
    wait_until("a block is written", || is_written(&path));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(instance_of(&child).exists(), "nobody could clean up");
    assert!(pageset::fails(&["stat", &name]).contains("--recover"));
    let (info, events) = read(&path, Recovery::UpToDamage);
    assert!(!events.is_empty() && info.machine.is_some() && info.before.is_some() && info.after.is_none());
    succeeds(&["stat", "--recover", &name]);

    let next = directory.path().join("next.pgtrace").display().to_string();
    let output = pageset(&["record", "--for", "100ms", "-o", &next]);
    assert!(output.status.success());
    let said = text(&output.stderr);
    assert!(said.contains(&format!("Removed the tracing instance pageset-{}", child.id())), "{said}");
    assert!(!instance_of(&child).exists());
}

mod pageset {
    use super::*;

    #[track_caller]
    pub(super) fn fails(arguments: &[&str]) -> String {
        let output = pageset(arguments);
        assert!(!output.status.success(), "{arguments:?}: {}", text(&output.stdout));
        text(&output.stderr)
    }
}

#[test]
fn two_recorders_do_not_disturb_each_other() {
    let Some(_guard) = machine() else { return };
    let (directory, first, name) = directory();
    let second = directory.path().join("second.pgtrace");
    let mut children = [
        start(&["record", "--for", "1s", "-o", &name]),
        start(&["record", "--for", "1s", "--cpus", "0", "-o", &second.display().to_string()]),
    ];
    for child in &mut children {
        let status = child.wait().unwrap();
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(status.success() && said.is_empty(), "{said}");
        assert!(!instance_of(child).exists());
    }
    assert!(!read(&first, Recovery::Refuse).1.is_empty());
    let (info, events) = read(&second, Recovery::Refuse);
    assert!(!events.is_empty() && events.iter().all(|event| event.cpu == 0));
    assert!(info.samples.iter().all(|sample| sample.cpu == 0));
}

#[test]
fn a_full_file_system_is_an_error_and_what_was_written_can_be_read() {
    let Some(_guard) = machine() else { return };
    let (small, memory) = (Tmpfs::mount("300k"), Tmpfs::mount("64m"));
    let path = small.0.path().join("t.pgtrace");
    let name = path.display().to_string();
    let file = memory.0.path().join("load").display().to_string();
    let stop = small.0.path().with_extension("stop");
    let load = format!(
        "until test -e {}; do dd if=/dev/zero of={file} bs=1M count=48 2>/dev/null; rm {file}; done",
        stop.display()
    );
    let log = memory.0.path().join("log");
    // Write the errors to a file. The recorded command continues after the recorder has ended and keeps its
    // outputs open, so a pipe would not end.
    let status = Command::new("timeout")
        .args(["60", PAGESET, "record", "-o", &name, "--", "sh", "-c", &load])
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log).unwrap())
        .status();
    let error = fs::read_to_string(&log).unwrap();
    assert_eq!(status.unwrap().code(), Some(1), "{error}");
    fs::write(&stop, "").unwrap();
    assert!(error.contains("No space left") && error.contains("--recover"), "{error}");
    let (_, events) = read(&path, Recovery::UpToDamage);
    assert!(!events.is_empty());
    thread::sleep(Duration::from_millis(500));
    wait_until("the load ends", || !Path::new(&file).exists());
    fs::remove_file(&stop).unwrap();
}

#[test]
fn who_is_not_root_is_told_what_to_do() {
    let Some(_guard) = machine() else { return };
    let (directory, ..) = directory();
    let copy = directory.path().join("pageset");
    fs::copy(PAGESET, &copy).unwrap();
    drop(Command::new("chmod").arg("755").arg(directory.path()).status());
    for arguments in [&["record", "--check"][..], &["record", "-o", "/tmp/none.pgtrace"]] {
        let output = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&copy)
            .args(arguments)
            .output()
            .expect("setpriv is there");
        let works = format!("sudo {} {}", copy.display(), arguments.join(" "));
        assert_eq!(
            text(&output.stderr),
            format!("error: only root may use /sys/kernel/tracing: run `{works}`\n")
        );
        assert_eq!(output.status.code(), Some(1));
    }
    assert!(!Path::new("/tmp/none.pgtrace").exists());
}

#[test]
fn a_command_that_is_not_there_leaves_no_file() {
    let Some(_guard) = machine() else { return };
    let (_directory, path, name) = directory();
    let error = pageset::fails(&["record", "-o", &name, "--", "/no/such/program"]);
    assert!(error.contains("cannot start /no/such/program"), "{error}");
    assert!(!path.exists());
}

#[test]
fn buffers_and_cpus_that_cannot_be_are_refused() {
    let Some(_guard) = machine() else { return };
    let (_directory, path, name) = directory();
    let error = pageset::fails(&["record", "-o", &name, "--cpus", "0,4095", "--for", "1s"]);
    assert!(error.contains("there is no CPU 4095"), "{error}");
    let error = pageset::fails(&["record", "-o", &name, "--buffer", "9000000G", "--for", "1s"]);
    assert!(error.contains("make --buffer smaller"), "{error}");
    assert!(!path.exists());
}

#[test]
fn small_buffers_lose_events_and_say_where() {
    let Some(_guard) = machine() else { return };
    let (_directory, path, name) = directory();
    let memory = Tmpfs::mount("64m");
    let file = memory.0.path().join("load").display().to_string();
    let load = format!(
        "for i in 1 2 3 4 5 6; do dd if=/dev/zero of={file} bs=1M count=48; rm {file}; done 2>/dev/null"
    );
    let said = succeeds(&["record", "-o", &name, "--buffer", "8K", "--", "sh", "-c", &load]);
    assert!(!said.contains("Lost events: 0."), "{said}");
    let (info, events) = read(&path, Recovery::Refuse);
    assert!(info.lost.missing() > 0 && !info.gaps.is_empty(), "{said}");
    for gap in &info.gaps {
        assert!(gap.after_ns <= gap.before_ns, "{gap:?}");
        let within = |event: &&Event| {
            event.cpu == gap.cpu && event.ts_ns > gap.after_ns && event.ts_ns < gap.before_ns
        };
        assert_eq!(events.iter().find(within), None, "{gap:?}");
    }
    let counted: u64 = info.gaps.iter().filter_map(|gap| gap.events).sum();
    assert!(info.lost.overrun >= counted, "{} of {counted}", info.lost.overrun);
}

#[test]
fn a_flight_recorder_keeps_what_was_last() {
    let Some(_guard) = machine() else { return };
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("last.pgtrace");
    let load = "for i in 1 2 3 4 5 6 7 8 9; do head -c 60000000 /dev/zero | tail -c 1 >/dev/null; done; sleep 0.3; /bin/true";
    let name = path.to_str().unwrap();
    let said =
        succeeds(&["record", "--flight-recorder", "--buffer", "64K", "-o", name, "--", "sh", "-c", load]);
    assert!(said.contains("a flight recorder keeps the latest events"), "{said}");
    assert!(said.contains("Lost events: 0."), "what is overwritten is not lost: {said}");
    let mut reader = pageset_trace::open(&path).unwrap();
    let info = reader.info().clone();
    assert!(info.before.is_none() && info.after.is_some() && info.machine.is_some());
    let (mut events, mut all) = (Vec::new(), Vec::new());
    while reader.read_block(&mut events).unwrap() > 0 {
        all.extend_from_slice(&events);
    }
    assert!(!all.is_empty());
    assert!(all.iter().all(|event| Some(event.ts_ns) >= info.t_on_ns), "it begins where all buffers do");
    assert!(all.windows(2).all(|pair| pair[0].ts_ns <= pair[1].ts_ns));
    succeeds(&["stat", name]);
    succeeds(&["replay", "-p", "linux-6.18", name]);
}

/// A shell command whose processes make CPUs wait for locks, for some tenths of a second.
const BUSY: &str = "for i in 1 2 3 4; do head -c 200000000 /dev/zero | tail -c 1 >/dev/null & done; wait";

#[test]
fn call_chains_say_who_waits() {
    let Some(_guard) = machine() else { return };
    let (_directory, path, name) = directory();
    succeeds(&["record", "--stack", "-o", &name, "--", "sh", "-c", BUSY]);
    let (_, events) = read(&path, Recovery::Refuse);
    let waits: Vec<_> = events.iter().filter(|event| event.kind == EventKind::ContentionBegin).collect();
    let known = waits.iter().filter(|event| event.caller().is_some()).count();
    assert!(!waits.is_empty() && known * 10 >= waits.len() * 9, "{known} of {}", waits.len());
}

#[test]
fn a_flight_recorder_ends_at_what_it_waits_for() {
    let Some(_guard) = machine() else { return };
    for condition in ["spin_wait_us > 0", "zone_wait_us > 100000000"] {
        let (_directory, path, name) = directory();
        let said = succeeds(&["record", "--when", condition, "-o", &name, "--", "sh", "-c", BUSY]);
        let is_met = said.contains(&format!("Ended by {condition}: "));
        assert_eq!(is_met, condition.starts_with("spin"), "{said}");
        assert!(!read(&path, Recovery::Refuse).1.is_empty());
    }
}

#[test]
fn the_cost_of_recording_is_measured_and_kept() {
    let Some(_guard) = machine() else { return };
    let (_directory, path, name) = directory();
    let said = succeeds(&["record", "--calibrate-cost=2", "-o", &name, "--", "sleep", "0.01"]);
    assert!(said.contains("2 pairs"), "{said}");
    let cost = read(&path, Recovery::Refuse).0.recording_cost.expect("it is in the trace");
    let wall = cost.wall_percent.expect("sleeping takes time");
    assert!(cost.rounds == 2 && wall.min <= wall.median && wall.median <= wall.max, "{cost:?}");
}

#[test]
fn pages_of_the_recorder_can_be_left_out() {
    let Some(_guard) = machine() else { return };
    let (_directory, path, name) = directory();
    succeeds(&["record", "-o", &name, "--", "sleep", "0.3"]);
    let without = format!("{name}.without");
    let said = succeeds(&["convert", "--without-recorder", &name, &without]);
    assert!(said.contains("Left out: "), "{said}");
    let (info, events) = read(&path, Recovery::Refuse);
    let own =
        |event: &&Event| event.kind == EventKind::MmPageAlloc && info.recorder_pids.contains(&event.pid);
    assert!(events.iter().any(|event| own(&event)));
    let (_, rest) = read(Path::new(&without), Recovery::Refuse);
    assert!(!rest.is_empty() && !rest.iter().any(|event| own(&event)));
    let again = pageset(&["convert", "--without-recorder", &without, &format!("{name}.again")]);
    assert!(text(&again.stderr).contains("does not name its recorder's threads"), "{}", text(&again.stderr));
}

#[test]
fn an_interrupted_top_leaves_nothing_behind() {
    let Some(_guard) = machine() else { return };
    let mut child = start(&["top", "--once", "--interval", "1m"]);
    let watch = Path::new(INSTANCES).join(format!("pageset-{}-watch", child.id()));
    wait_until("it watches waits", || watch.exists());
    send("-INT", &child);
    wait_until("the signal ends it", || child.try_wait().unwrap().is_some());
    assert!(!watch.exists());
}
