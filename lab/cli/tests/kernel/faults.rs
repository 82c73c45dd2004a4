//! Tests that a recorder notices disturbances, and that it does not disturb other programs. All tests need
//! root and tracing files, and fail without root or without tracing files.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::MutexGuard;

use pageset_trace::{Event, EventKind, Recovery, TraceInfo};

use crate::record::{INSTANCES, PAGESET, directory, machine, pageset, read, succeeds, text};

/// A shell command that allocates and frees some thousand pages.
const LOAD: &str = "for i in 1 2 3 4 5 6; do head -c 8000000 /dev/zero | tail -c 1 >/dev/null; done";

/// Waits until this test may use the machine alone. Panics if the machine cannot record.
fn this_machine() -> MutexGuard<'static, ()> {
    machine().expect("this machine can record")
}

/// Runs the command in a new PID namespace. In the new namespace, the command has the process number 1.
fn in_pid_namespace(arguments: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", PAGESET]).args(arguments);
    command
}

#[track_caller]
fn ends_well(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// The number of blocks that these threads allocated.
fn allocated(events: &[Event], pids: &[u32]) -> usize {
    let own = |event: &&Event| event.kind == EventKind::MmPageAlloc && pids.contains(&event.pid);
    events.iter().filter(own).count()
}

#[test]
#[ignore = "needs root and tracefs"]
fn fault_08_a_recorder_in_a_pid_namespace_knows_its_threads() {
    let _guard = this_machine();
    let (_directory, path, name) = directory();
    for options in [&[][..], &["--cpus", "0"], &["--flight-recorder"], &["--buffer", "8K"]] {
        let load = ["--force", "-o", &name, "--", "sh", "-c", LOAD];
        let recorded = in_pid_namespace(&[&["record"], options, &load].concat()).output().unwrap();
        ends_well(&recorded);
        let (info, events) = read(&path, Recovery::Refuse);
        // Thread numbers in the namespace begin at 1. The marks of samples have the machine's numbers.
        // `recorder_pids` must have the machine's numbers, too.
        assert_eq!(info.recorder_pids.len(), 3, "{options:?}: {:?}", info.not_recorded);
        assert!(info.recorder_pids.iter().all(|pid| *pid > 100), "{:?}", info.recorder_pids);
        let marks = events.iter().filter(|event| event.kind == EventKind::Marker);
        assert!(marks.map(|mark| mark.pid).all(|pid| info.recorder_pids.contains(&pid)), "{options:?}");
    }
    ends_well(
        &in_pid_namespace(&["record", "--force", "-o", &name, "--", "sh", "-c", LOAD]).output().unwrap(),
    );
    let (info, events) = read(&path, Recovery::Refuse);
    let own = allocated(&events, &info.recorder_pids);
    let without = format!("{name}.without");
    succeeds(&["convert", "--without-recorder", &name, &without]);
    let (_, rest) = read(Path::new(&without), Recovery::Refuse);
    assert!(own > 0 && allocated(&rest, &info.recorder_pids) == 0);
    let all = |events: &[Event]| events.iter().filter(|event| event.kind == EventKind::MmPageAlloc).count();
    assert_eq!(all(&events) - all(&rest), own, "no page of another task is left out");
}

#[test]
#[ignore = "needs root and tracefs"]
fn fault_08_a_recorder_in_a_time_namespace_is_refused_where_the_clocks_differ() {
    let _guard = this_machine();
    let (_directory, path, name) = directory();
    let under = |offset: &str| {
        let mut command = Command::new("unshare");
        command.args([
            "--time",
            "--monotonic",
            offset,
            "--fork",
            PAGESET,
            "record",
            "--for",
            "200ms",
            "-o",
            &name,
        ]);
        command.output().unwrap()
    };
    for offset in ["1000", "-1"] {
        let refused = under(offset);
        let error = text(&refused.stderr);
        assert!(
            error.contains("the clock of this process is not that of the kernel's trace"),
            "{offset}: {error}"
        );
        assert!(!path.exists(), "nothing was recorded");
    }
    ends_well(&under("0"));
}

#[test]
#[ignore = "needs root and tracefs"]
fn fault_08_two_recorders_may_have_the_same_number() {
    let _guard = this_machine();
    let (directory, ..) = directory();
    let recorders: Vec<_> = ["one", "two", "three"]
        .map(|name| {
            let path = directory.path().join(name).display().to_string();
            let mut command = in_pid_namespace(&["record", "--for", "1s", "-o", &path]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .into_iter()
        .collect();
    for recorder in recorders {
        ends_well(&recorder.wait_with_output().unwrap());
    }
    let left = fs::read_dir(INSTANCES).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert!(!left.iter().any(|name| name.starts_with("pageset-1")), "{left:?}");
}

#[test]
#[ignore = "needs root and tracefs"]
fn fault_09_a_limit_of_file_sizes_ends_a_recording_like_a_full_disk() {
    let _guard = this_machine();
    let (_directory, path, name) = directory();
    let script = format!("ulimit -f 40; exec {PAGESET} record -o {name} -- sh -c '{LOAD}; {LOAD}; {LOAD}'");
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{:?}: {error}", output.status);
    assert!(error.contains(&format!("{name}: cannot write the trace: File too large")), "{error}");
    assert!(error.contains("--recover"), "{error}");
    let left = fs::read_dir(INSTANCES).unwrap().flatten();
    let mut left = left.map(|entry| entry.file_name().into_string().unwrap());
    assert_eq!(left.find(|name| name.starts_with("pageset-")), None);
    assert!(fs::metadata(&path).unwrap().len() > 0);
    // In the recorded command, SIGXFSZ has its default action: a write past the limit of file sizes ends the
    // command.
    let script = format!(
        "ulimit -f 4000; exec {PAGESET} record --force -o {name} -- \
         dd if=/dev/zero of={name}.large bs=1M count=64"
    );
    let said = ends_well(&Command::new("sh").args(["-c", &script]).output().unwrap());
    assert!(said.contains("SIGXFSZ"), "{said}");
}

#[test]
#[ignore = "needs root and tracefs"]
fn fault_09_a_full_disk_says_what_goes_on() {
    let _guard = this_machine();
    let (directory, ..) = directory();
    let full = directory.path().join("full");
    fs::create_dir(&full).unwrap();
    let (full, name) = (full.display(), full.join("r.pgtrace").display().to_string());
    // The recorded command continues to run after the file system is full.
    let script = format!(
        "mount -t tmpfs -o size=512k none {full} && \
         {PAGESET} record -o {name} -- sh -c 'exec >/dev/null 2>&1; while :; do {LOAD}; done'; \
         echo status $?; {PAGESET} stat --recover {name} -f csv"
    );
    let output = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output().unwrap();
    let (said, error) = (text(&output.stdout), text(&output.stderr));
    assert!(said.contains("status 1"), "{said} {error}");
    let reason = format!("{name}: cannot write the trace: No space left on device");
    assert!(error.contains(&reason) && error.contains("written before"), "{error}");
    assert!(error.contains(&format!("`pageset stat --recover {name}`")), "{error}");
    let pid = error.split("still runs as process ").nth(1).and_then(|rest| rest.split('.').next());
    let pid: i32 = pid.expect(&error).parse().expect(&error);
    assert!(Command::new("kill").arg(pid.to_string()).status().unwrap().success(), "process {pid} runs");
    assert!(said.lines().any(|line| line.starts_with("events,")), "{said} {error}");
}

/// Records a load, and runs `script` in the middle of the load. In the script, `$I` is the directory of the
/// recorder's tracing instance.
#[track_caller]
fn disturbed(options: &[&str], script: &str) -> (String, TraceInfo, Vec<Event>) {
    let (_directory, path, name) = directory();
    let command = format!("I=$(echo {INSTANCES}/pageset-*); {LOAD}; {script}; {LOAD}; wait");
    let said = succeeds(&[&["record"], options, &["-o", &name, "--", "bash", "-c", &command]].concat());
    // Tests that `stat` and `convert` report the missing events of a file, as `record` does.
    let stat = succeeds(&["stat", &name]);
    let again = format!("{name}.again");
    let converted = succeeds(&["convert", &name, &again]);
    let (info, events) = read(&path, Recovery::Refuse);
    assert_eq!(read(Path::new(&again), Recovery::Refuse).0.lost, info.lost);
    let is_whole = said.contains("Lost events: 0.");
    assert_eq!(is_whole, info.lost.missing() == 0, "{said}");
    for other in [stat, converted] {
        assert_eq!(other.contains("Lost events: 0."), is_whole, "{other}");
        assert_eq!(
            other.contains("Events are missing: small differences mean nothing."),
            !is_whole,
            "{other}"
        );
    }
    (said, info, events)
}

#[test]
#[ignore = "needs root and tracefs"]
fn fault_10_an_undisturbed_recording_has_all_that_the_kernel_counted() {
    let _guard = this_machine();
    for options in [&[][..], &["--stack"], &["--cpus", "0"], &["--flight-recorder", "--buffer", "64K"]] {
        // Tests that no event is lost when another program reads the buffer and its state without taking
        // events, and writes a mark.
        let look =
            "cat $I/trace >/dev/null; cat $I/per_cpu/cpu*/stats >/dev/null; echo hello >$I/trace_marker";
        let (said, info, _) = disturbed(options, look);
        assert_eq!(info.lost.missing(), 0, "{options:?}: {said}");
        assert!(!said.contains("another program"), "{options:?}: {said}");
    }
    // Tests a buffer that is too small and loses events. The recording counts the lost events, and has no
    // other kind of gap.
    let (said, info, events) = disturbed(&["--buffer", "8K"], "true");
    assert!(info.lost.overrun > 0 && !events.is_empty(), "{said}");
    assert_eq!((info.lost.taken, info.lost.gaps_of_unknown_size), (0, 0), "{said}");
}

#[test]
#[ignore = "needs root and tracefs"]
fn fault_10_events_that_another_reader_took_are_counted_exactly() {
    let _guard = this_machine();
    // The recorder notices another program only after this program has read events. Events that the other
    // program has read but not printed count as taken, too.
    for (reader, options) in [
        ("cat $I/trace_pipe", &[][..]),
        ("cat $I/per_cpu/cpu0/trace_pipe_raw", &[]),
        ("cat $I/trace_pipe", &["--flight-recorder"]),
    ] {
        let (directory, ..) = directory();
        let lines = directory.path().join("lines");
        let script = format!("timeout -s INT 1 {reader} >{} & {LOAD}; {LOAD}; wait", lines.display());
        let (said, info, _) = disturbed(options, &script);
        assert!(info.lost.taken > 0, "{reader}: {said}");
        assert!(
            said.contains(&format!("{} taken from the kernel's buffer by another program", info.lost.taken)),
            "{said}"
        );
        if reader.ends_with("trace_pipe") {
            let lines = fs::read_to_string(&lines).unwrap().lines().count() as u64;
            assert!(lines > 0 && (lines..lines + 500).contains(&info.lost.taken), "{lines} lines: {said}");
        }
    }
}

#[test]
#[ignore = "needs root and tracefs"]
fn fault_10_what_another_program_did_to_the_instance_is_a_loss_of_unknown_size() {
    let _guard = this_machine();
    for (file, script) in [
        ("trace", "echo >$I/trace"),
        ("per_cpu/cpu0/trace", "echo >$I/per_cpu/cpu0/trace"),
        ("events/kmem/mm_page_free/enable", "echo 0 >$I/events/kmem/mm_page_free/enable"),
        ("events/kmem/enable", "echo 0 >$I/events/kmem/enable; echo 1 >$I/events/kmem/enable"),
        ("events/enable", "echo 0 >$I/events/enable"),
        ("set_event", "echo >$I/set_event"),
        ("events/kmem/mm_page_alloc/filter", "echo 'order > 3' >$I/events/kmem/mm_page_alloc/filter"),
        ("tracing_on", "echo 0 >$I/tracing_on; echo 1 >$I/tracing_on"),
        ("tracing_cpumask", "echo 1 >$I/tracing_cpumask"),
        ("set_event_pid", "echo 1 >$I/set_event_pid"),
    ] {
        for options in [&[][..], &["--flight-recorder"]] {
            let (said, info, _) = disturbed(options, script);
            assert_eq!(info.lost.gaps_of_unknown_size, 1, "{script}: {said}");
            assert!(said.contains(&format!("another program wrote to `{file}`")), "{script}: {said}");
        }
    }
}

/// A library for `LD_PRELOAD`. Inside the recorder, the library does what another program might do, at a
/// moment that a test cannot reach from outside.
fn meddling_library(directory: &Path) -> String {
    let library = directory.join("meddling.so").display().to_string();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernel/meddling.c");
    let output = Command::new("cc").args(["-shared", "-fPIC", "-o", &library, source]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    library
}

#[test]
#[ignore = "needs root and tracefs"]
fn fault_13_a_recorder_replaces_no_file_that_appears_while_it_begins() {
    let _guard = this_machine();
    let (directory, path, name) = directory();
    let library = meddling_library(directory.path());
    let mut refused = 0;
    for look in 1..=6 {
        drop(fs::remove_file(&path));
        let output = Command::new(PAGESET)
            .args(["record", "--for", "100ms", "-o", &name])
            .envs([("LD_PRELOAD", library.as_str()), ("VICTIM", &name), ("NTH", &look.to_string())])
            .output()
            .unwrap();
        if output.status.success() {
            // The recorder looks for the file fewer than `look` times, so the library made no file.
            assert!(!read(&path, Recovery::Refuse).1.is_empty());
        } else {
            assert!(text(&output.stderr).contains("exists already"), "{}", text(&output.stderr));
            assert_eq!(fs::read_to_string(&path).unwrap(), "precious\n", "look {look}");
            refused += 1;
        }
    }
    assert!(refused > 0, "the file appeared");
}

#[test]
#[ignore = "needs root and tracefs"]
fn a_device_stays_when_its_command_is_not_there() {
    let _guard = this_machine();
    let (directory, ..) = directory();
    let device = directory.path().join("null");
    let made = Command::new("mknod").arg(&device).args(["c", "1", "3"]).status();
    assert!(made.is_ok_and(|status| status.success()), "root can make a device");
    let output = pageset(&["record", "-o", &device.display().to_string(), "--", "/no/such/program"]);
    assert!(text(&output.stderr).contains("cannot start"), "{}", text(&output.stderr));
    assert!(device.exists());
}

#[test]
#[ignore = "needs root and tracefs"]
fn fault_08_a_recorder_that_cannot_mark_does_not_claim_to_know_its_threads() {
    let _guard = this_machine();
    let (directory, path, name) = directory();
    let output = Command::new(PAGESET)
        .args(["record", "--for", "200ms", "-o", &name])
        .envs([("LD_PRELOAD", meddling_library(directory.path()).as_str()), ("NO_MARKS", "1")])
        .output()
        .unwrap();
    let said = ends_well(&output);
    let reason = "which threads are the recorder's: trace_marker_raw cannot be written";
    assert!(said.contains(&format!("Not recorded: {reason}.")), "{said}");
    assert!(read(&path, Recovery::Refuse).0.recorder_pids.is_empty());
    let output = pageset(&["convert", "--without-recorder", &name, &format!("{name}.without")]);
    assert!(!output.status.success());
    assert!(
        text(&output.stderr)
            .contains(&format!("does not name its recorder's threads; not recorded: {reason}")),
        "{}",
        text(&output.stderr)
    );
}
