//! Tests recordings that the kernel's tracing files or trace-cmd made under each of the kernel's clocks.
//! `pageset` must read a recording if the clock counts nanoseconds, and refuse it if not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::record::{INSTANCES, machine, pageset, text};

/// Clocks that count nanoseconds.
const OF_TIME: [&str; 7] = ["local", "global", "perf", "mono", "mono_raw", "boot", "tai"];
/// Clocks that count something else: ticks of the kernel, events, cycles.
const OTHERS: [&str; 3] = ["uptime", "counter", "x86-tsc"];

/// A tracing instance that has recorded a small load under a clock. The instance is removed when this value
/// is dropped.
struct Instance(PathBuf);

impl Instance {
    /// Records a small load under the clock. `None` if this kernel does not have the clock.
    fn under(clock: &str) -> Option<Self> {
        let directory = Path::new(INSTANCES).join(format!("test-clocks-{}", std::process::id()));
        fs::create_dir(&directory).expect("root can make an instance");
        let instance = Self(directory);
        if fs::write(instance.0.join("trace_clock"), clock).is_err() {
            eprintln!("skipped: this kernel has no clock {clock}");
            return None;
        }
        for event in ["mm_page_alloc", "mm_page_free"] {
            instance.set(&format!("events/kmem/{event}/enable"), "1");
        }
        assert!(Command::new("true").status().is_ok_and(|status| status.success()));
        instance.set("events/enable", "0");
        Some(instance)
    }

    fn set(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// The recorded events, as the kernel's text.
    fn text(&self) -> String {
        fs::read_to_string(self.0.join("trace")).unwrap()
    }

    /// Writes the recorded events to `to`, as a file of trace-cmd.
    fn extract(&self, to: &Path) {
        let output = Command::new("trace-cmd")
            .current_dir(to.parent().unwrap())
            .args(["extract", "-B", self.0.file_name().unwrap().to_str().unwrap(), "-o"])
            .arg(to)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Ignore an error, because trace-cmd may have removed the instance.
        drop(fs::remove_dir(&self.0));
    }
}

/// The clock of the kernel's main buffer, which trace-cmd mistakes for the clock of an instance. The clock is
/// put back when this value is dropped.
struct MainClock {
    file: PathBuf,
    before: String,
}

impl MainClock {
    /// Reads the main buffer's clock. `None` if another program may be using this buffer, because a change of
    /// the clock would empty the buffer.
    fn unused() -> Option<Self> {
        let main = Path::new(INSTANCES).parent().unwrap();
        let file = main.join("trace_clock");
        let read = |name: &str| fs::read_to_string(main.join(name)).unwrap();
        let is_used = !read("set_event").is_empty()
            || read("current_tracer").trim() != "nop"
            || read("trace").lines().any(|line| !line.starts_with('#'));
        let before = read("trace_clock");
        let before = before.split_once('[').and_then(|(_, rest)| rest.split_once(']')).unwrap().0.to_owned();
        (!is_used).then_some(Self { file, before })
    }

    fn set(&self, clock: &str) {
        fs::write(&self.file, clock).unwrap();
    }
}

impl Drop for MainClock {
    fn drop(&mut self) {
        self.set(&self.before);
    }
}

/// Converts `from`, and returns the output, or the error.
fn convert(from: &Path) -> Result<String, String> {
    let to = from.with_extension("pgtrace");
    let output = pageset(&["convert", "--force", from.to_str().unwrap(), to.to_str().unwrap()]);
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

#[track_caller]
fn converts(clock: &str, from: &Path) {
    let said = convert(from).unwrap_or_else(|error| panic!("{clock}: {error}"));
    let events = said.split_once(": ").and_then(|(_, rest)| rest.split_once(" events"));
    let events: u64 = events.expect("events are counted").0.parse().expect("a number");
    assert!(events > 20, "{clock}: {said}");
}

/// Converts a recording of each clock. If the clock counts nanoseconds, the conversion must succeed; if not,
/// its error must contain `refusal`. `record` makes the recording, and returns its path.
fn under_each_clock(refusal: impl Fn(&str) -> String, record: impl Fn(&Instance, &str) -> PathBuf) {
    for clock in OF_TIME {
        if let Some(instance) = Instance::under(clock) {
            converts(clock, &record(&instance, clock));
        }
    }
    for clock in OTHERS {
        if let Some(instance) = Instance::under(clock) {
            let error = convert(&record(&instance, clock)).expect_err(clock);
            assert!(error.contains(&refusal(clock)), "{clock}: {error}");
        }
    }
}

#[test]
fn text_of_the_kernel_is_read_under_clocks_of_time_only() {
    let Some(_guard) = machine() else { return };
    let directory = TempDir::new().unwrap();
    under_each_clock(
        |_| "a page event whose time is not in seconds: the recording's clock counts something else".into(),
        |instance, clock| {
            let path = directory.path().join(format!("{clock}.txt"));
            fs::write(&path, instance.text()).unwrap();
            path
        },
    );
}

#[test]
fn files_of_trace_cmd_are_read_under_clocks_of_time_only() {
    let Some(_guard) = machine() else { return };
    if Command::new("trace-cmd").arg("--version").output().is_err() {
        eprintln!("skipped, since trace-cmd is not installed");
        return;
    }
    let Some(main) = MainClock::unused() else {
        eprintln!("skipped, since the kernel's main trace buffer is in use");
        return;
    };
    let directory = TempDir::new().unwrap();
    under_each_clock(
        |clock| {
            format!(
                "has times of the clock {clock:?}, which are not nanoseconds; record with `trace-cmd record -C mono`"
            )
        },
        |instance, clock| {
            let path = directory.path().join(format!("{clock}.dat"));
            main.set(clock);
            instance.extract(&path);
            path
        },
    );
}
