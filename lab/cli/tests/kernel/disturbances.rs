//! Tests recordings of a machine that changes during the recording. CPUs are switched on or off, a setting
//! changes, or another program writes to the recorder's tracing instance.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use pageset_trace::{Event, Recovery};

use crate::record::{
    directory, instance_of, machine, pageset, read, send, start, succeeds, text, wait_until,
};

/// A test leaves the last CPU off for at least this time.
const OFF: Duration = Duration::from_millis(200);

/// The last CPU of this machine, which is off until this value is dropped.
struct SwitchedOff {
    cpu: u16,
    switch: PathBuf,
}

impl SwitchedOff {
    /// Switches the last CPU off. If the CPU cannot be switched off, prints the reason and returns `None`.
    fn last() -> Option<Self> {
        let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
        let cpu = online.trim().rsplit(['-', ',']).next().and_then(|cpu| cpu.parse().ok()).unwrap();
        let switch = PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/online"));
        if cpu == 0 || !switch.exists() {
            eprintln!("skipped, since CPU {cpu} cannot be switched off");
            return None;
        }
        let off = Self { cpu, switch };
        match fs::write(&off.switch, "0") {
            Ok(()) => Some(off),
            Err(error) => {
                eprintln!("skipped, since CPU {cpu} cannot be switched off: {error}");
                None
            }
        }
    }
}

impl Drop for SwitchedOff {
    fn drop(&mut self) {
        drop(fs::write(&self.switch, "1"));
    }
}

/// Allocates and frees pages on a CPU.
fn load(cpu: u16) {
    let status = Command::new("taskset")
        .args(["-c", &cpu.to_string(), "sh", "-c", "head -c 40000000 /dev/zero | tail -c 1 >/dev/null"])
        .status();
    assert!(status.is_ok_and(|status| status.success()));
}

/// Waits for the end of a recording. Checks that the recording succeeded and wrote nothing to the standard
/// error, and returns its output.
#[track_caller]
fn ends_well(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn has_begun(path: &Path) {
    wait_until("the trace grows", || fs::metadata(path).is_ok_and(|file| file.len() > 0));
}

fn of_cpu(events: &[Event], cpu: u16) -> usize {
    events.iter().filter(|event| event.cpu == cpu).count()
}

#[test]
fn a_cpu_that_goes_and_comes_back_is_recorded_while_it_is_there() {
    let Some(_guard) = machine() else { return };
    let (_directory, path, name) = directory();
    let child = start(&["record", "-o", &name]);
    has_begun(&path);
    let cpu = SwitchedOff::last().map(|off| {
        thread::sleep(OFF);
        off.cpu
    });
    cpu.into_iter().for_each(load);
    send("-INT", &child);
    let said = ends_well(child);
    let Some(cpu) = cpu else { return };
    assert!(said.contains("Lost events: 0."), "{said}");
    let (info, events) = read(&path, Recovery::Refuse);
    // The CPU has no events while it is off. After the CPU is switched on again, it has more than 100 events,
    // because the load sends 40 MB through a pipe.
    let times: Vec<_> = events.iter().filter(|event| event.cpu == cpu).map(|event| event.ts_ns).collect();
    let silence = times.windows(2).position(|pair| pair[1] - pair[0] >= OFF.as_nanos() as u64);
    let again = times.len() - silence.expect("it was off") - 1;
    assert!(again > 100, "{again} of {}", times.len());
    assert!(info.samples.iter().any(|sample| sample.cpu == u32::from(cpu)), "{:?}", info.not_recorded);
    succeeds(&["stat", &name]);
    succeeds(&["verify", &name]);
}

#[test]
fn a_cpu_that_comes_while_others_are_recorded_is_said_to_be_missing() {
    let Some(_guard) = machine() else { return };
    let (_directory, path, name) = directory();
    let Some(off) = SwitchedOff::last() else { return };
    let cpu = off.cpu;
    let refused = pageset(&["record", "--check", "--cpus", &cpu.to_string()]);
    let child = start(&["record", "-o", &name]);
    has_begun(&path);
    drop(off);
    load(cpu);
    send("-INT", &child);
    let said = ends_well(child);
    let error = text(&refused.stderr);
    assert!(error.contains(&format!("there is no CPU {cpu}, or it is switched off")), "{error}");
    assert!(said.contains(&format!("Not recorded: CPU {cpu}: it was switched on meanwhile.")), "{said}");
    let (info, events) = read(&path, Recovery::Refuse);
    assert_eq!(of_cpu(&events, cpu), 0);
    assert!(of_cpu(&events, 0) > 0 && info.machine.is_some());
    succeeds(&["stat", &name]);
    succeeds(&["replay", "-p", "linux-6.18", &name]);
}

#[test]
fn nobody_can_remove_the_instance_of_a_recorder() {
    let Some(_guard) = machine() else { return };
    let (_directory, path, name) = directory();
    let child = start(&["record", "-o", &name]);
    has_begun(&path);
    let instance = instance_of(&child);
    let removed = fs::remove_dir(&instance);
    assert!(removed.is_err() && instance.exists(), "the kernel keeps what is open");
    send("-INT", &child);
    ends_well(child);
    assert!(!instance.exists());
    assert!(!read(&path, Recovery::Refuse).1.is_empty());
}

#[test]
fn a_recording_that_somebody_switches_off_ends_with_what_there_was() {
    let Some(_guard) = machine() else { return };
    let (_directory, path, name) = directory();
    let child = start(&["record", "-o", &name]);
    has_begun(&path);
    // The recorder writes the head of its file before it switches recording on.
    let switch = instance_of(&child).join("tracing_on");
    wait_until("recording is on", || fs::read_to_string(&switch).is_ok_and(|state| state.trim() == "1"));
    fs::write(switch, "0").unwrap();
    thread::sleep(Duration::from_millis(200));
    send("-INT", &child);
    let said = ends_well(child);
    assert!(said.contains("another program switched recording off"), "{said}");
    read(&path, Recovery::Refuse);
}

/// A setting of this machine, which is put back when this value is dropped.
struct Setting {
    path: &'static str,
    before: String,
}

impl Drop for Setting {
    fn drop(&mut self) {
        drop(fs::write(self.path, &self.before));
    }
}

#[test]
fn a_setting_that_changes_meanwhile_is_named() {
    let Some(_guard) = machine() else { return };
    let path = "/proc/sys/vm/stat_interval";
    let setting = Setting { path, before: fs::read_to_string(path).unwrap() };
    let then: u32 = setting.before.trim().parse().unwrap();
    let (_directory, trace, name) = directory();
    let child = start(&["record", "-o", &name]);
    has_begun(&trace);
    let written = fs::write(path, (then + 1).to_string());
    send("-INT", &child);
    let said = ends_well(child);
    drop(setting);
    if let Err(error) = written {
        eprintln!("skipped, since {path} cannot be written: {error}");
        return;
    }
    let expected = format!("vm.stat_interval changed from {then} to {} meanwhile", then + 1);
    assert!(said.contains(&expected), "{said}");
    let info = pageset_trace::open(&trace).unwrap().info().clone();
    let change = info.setting_changes.first().expect("the change is in the file");
    assert_eq!(
        (change.name.as_str(), change.to.as_str()),
        ("stat_interval", (then + 1).to_string().as_str())
    );
    let (on_ns, off_ns) = info.t_on_ns.zip(info.t_off_ns).unwrap();
    // The recorder reads the setting every 20 ms. Therefore the recorder's last reading of the old value may
    // be 20 ms before the change. Its first reading of the new value may be 20 ms after the change.
    assert!(change.after_ns < change.before_ns, "{change:?}");
    assert!(change.after_ns <= off_ns && change.before_ns >= on_ns, "{change:?}, {on_ns} to {off_ns}");
}
