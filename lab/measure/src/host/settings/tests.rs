//! Tests on a directory that stands for `/proc/sys`. A killed process leaves the lines that are in the file
//! when it is killed. To simulate a killed process, the tests copy the file. No process has locked the copy,
//! so the copy looks like the file of a killed process.

use std::path::Path;

use tempfile::TempDir;

use super::*;

/// A machine with these settings.
struct Machine(TempDir);

impl Machine {
    fn new(settings: &[(&str, &str)]) -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        fs::create_dir(machine.root().join("vm")).unwrap();
        settings.iter().for_each(|(key, value)| machine.put(key, value));
        machine
    }

    fn root(&self) -> &Path {
        self.0.path()
    }

    fn settings(&self) -> Settings {
        Settings::at(self.root(), self.root().join("run/settings"))
    }

    fn put(&self, key: &str, value: &str) {
        fs::write(path_of(self.root(), key), value).unwrap();
    }

    fn now(&self, key: &str) -> String {
        fs::read_to_string(path_of(self.root(), key)).unwrap()
    }

    /// Returns the settings as a later command sees them if this process is killed now.
    fn killed(&self) -> Settings {
        fs::copy(self.root().join("run/settings"), self.root().join("left")).unwrap();
        Settings::at(self.root(), self.root().join("left"))
    }
}

fn one() -> Machine {
    Machine::new(&[("vm.stat_interval", "1\n")])
}

fn told(all: &[PutBack]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

#[test]
fn a_setting_is_put_back_unless_it_is_kept() {
    let machine = one();
    let mut changes = machine.settings().begin("test").unwrap();
    changes.set("vm.stat_interval=5").unwrap();
    assert_eq!(machine.now("vm.stat_interval"), "5");
    assert_eq!(changes.ways_back(), ["sysctl vm.stat_interval=1"]);
    drop(changes);
    assert_eq!(machine.now("vm.stat_interval"), "1");
    let mut changes = machine.settings().begin("test").unwrap();
    changes.set("vm.stat_interval=7").unwrap();
    changes.set("vm.stat_interval=8").unwrap();
    let all = changes.put_back();
    assert_eq!(told(&all), ["vm.stat_interval was put back to 7.", "vm.stat_interval was put back to 1."]);
    assert_eq!(machine.now("vm.stat_interval"), "1");
    let mut changes = machine.settings().begin("test").unwrap();
    changes.set("vm.stat_interval=9").unwrap();
    changes.keep().unwrap();
    assert_eq!(machine.now("vm.stat_interval"), "9");
    assert_eq!(machine.settings().left(), None);
}

#[test]
fn fault_07_two_at_once_are_refused_with_the_name_of_the_other() {
    let machine = one();
    let mut first = machine.settings().begin("pageset advise --apply 'vm.a=1'").unwrap();
    first.set("vm.stat_interval=7").unwrap();
    let error = machine.settings().begin("test").unwrap_err().to_string();
    let name = format!("process {} (`pageset advise --apply 'vm.a=1'`, begun ", std::process::id());
    assert!(error.contains(&name) && error.contains(" s ago)"), "{error}");
    assert_eq!(machine.settings().left(), None, "its owner lives");
    drop(first);
    assert_eq!(machine.now("vm.stat_interval"), "1");
    machine.settings().begin("test").unwrap();
}

#[test]
fn fault_07_what_another_process_changed_is_said_and_left_alone() {
    let machine = one();
    let mut changes = machine.settings().begin("test").unwrap();
    changes.set("vm.stat_interval=7").unwrap();
    machine.put("vm.stat_interval", "42\n");
    let all = changes.put_back();
    assert_eq!(
        told(&all),
        [
            "vm.stat_interval was not put back to 1: another process set vm.stat_interval=42 meanwhile. `sysctl \
          vm.stat_interval=1` puts it back."
        ]
    );
    assert_eq!(machine.now("vm.stat_interval"), "42\n");
    assert_eq!(machine.settings().left(), None, "it is settled");

    let mut changes = machine.settings().begin("test").unwrap();
    changes.set("vm.stat_interval=7").unwrap();
    machine.put("vm.stat_interval", "42\n");
    assert_eq!(told(&changes.put_back()), ["vm.stat_interval is 42 again already."]);
}

#[test]
fn fault_07_what_a_killed_process_left_is_found_and_not_taken_for_the_original() {
    let machine = one();
    let mut changes = machine.settings().begin("pageset advise").unwrap();
    assert_eq!(machine.killed().left(), None, "nothing was changed");
    changes.set("vm.stat_interval=7").unwrap();
    let later = machine.killed();
    let left = later.left().unwrap();
    assert_eq!(left.ways_back(), ["sysctl vm.stat_interval=1"]);
    let sentence = left.to_string();
    let begin =
        "A command was killed before it put settings back: vm.stat_interval is 7, and was 1. It was process ";
    assert!(
        sentence.starts_with(begin)
            && sentence.contains("(`pageset advise`, begun ")
            && sentence.ends_with(" ago)."),
        "{sentence}"
    );
    let error = later.begin("test").unwrap_err();
    assert!(matches!(error, SettingError::Left(_)), "{error}");
    assert_eq!(machine.now("vm.stat_interval"), "7", "nothing happens silently");

    assert_eq!(told(&left.put_back().unwrap()), ["vm.stat_interval was put back to 1."]);
    assert_eq!((machine.now("vm.stat_interval").as_str(), later.left()), ("1", None));
    later.begin("test").unwrap();
}

#[test]
fn fault_07_what_a_killed_process_left_can_be_kept() {
    let machine = one();
    let mut changes = machine.settings().begin("test").unwrap();
    changes.set("vm.stat_interval=7").unwrap();
    let later = machine.killed();
    later.left().unwrap().keep().unwrap();
    assert_eq!((machine.now("vm.stat_interval").as_str(), later.left()), ("7", None));
}

#[test]
fn fault_07_a_change_is_written_down_before_it_is_made() {
    let machine = one();
    let mut changes = machine.settings().begin("test").unwrap();
    // A directory in place of a setting cannot be written, so the change is not made.
    fs::create_dir(machine.root().join("vm/a_directory")).unwrap();
    assert!(changes.set("vm.a_directory=1").is_err());
    changes.set("vm.stat_interval=7").unwrap();
    let written = fs::read_to_string(machine.root().join("run/settings")).unwrap();
    // The process is killed after it wrote the line and before it wrote the setting: the line is in the file,
    // and the setting is unchanged.
    machine.put("vm.stat_interval", "1\n");
    assert_eq!(machine.killed().left(), None);
    // The process is killed while it writes the line, and before it changes the setting.
    fs::write(machine.root().join("torn"), &written[..written.len() - 1]).unwrap();
    machine.put("vm.stat_interval", "7\n");
    let torn = Settings::at(machine.root(), machine.root().join("torn"));
    assert_eq!(torn.left(), None);
    // If the file of changes cannot be written, nothing must change.
    fs::create_dir(machine.root().join("blocked")).unwrap();
    let error = Settings::at(machine.root(), machine.root().join("blocked")).begin("test").unwrap_err();
    assert!(error.to_string().contains("nothing was changed"), "{error}");
}

#[test]
fn fault_07_settings_of_an_earlier_start_of_the_machine_are_none_that_were_left() {
    let machine = one();
    let mut changes = machine.settings().begin("test").unwrap();
    changes.set("vm.stat_interval=7").unwrap();
    let later = machine.killed();
    let path = machine.root().join("left");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let written = fs::read_to_string(&path).unwrap();
    assert!(later.left().is_some() && written.contains(boot.trim()));
    fs::write(&path, written.replace(boot.trim(), "another")).unwrap();
    assert_eq!(later.left(), None);
    later.begin("test").unwrap();
}

/// Sets a setting to 0, as the kernel does with the other setting of a pair.
fn reset(machine: &Machine, key: &str) {
    machine.put(key, "0\n");
}

#[test]
fn fault_07_a_setting_and_the_one_that_is_reset_by_it_are_put_back_as_a_pair() {
    for (bytes, percent) in
        [("vm.dirty_bytes", "vm.dirty_ratio"), ("vm.overcommit_kbytes", "vm.overcommit_ratio")]
    {
        // The percentage was in force, and the test sets the bytes.
        let machine = Machine::new(&[(bytes, "0\n"), (percent, "20\n")]);
        let mut changes = machine.settings().begin("test").unwrap();
        assert!(changes.set(&format!("{bytes}=100000000")).is_err(), "a kernel without the reset");
        assert_eq!((machine.now(bytes).as_str(), machine.now(percent).as_str()), ("0", "20"));
        reset(&machine, percent);
        machine.put(bytes, "100000000");
        let written = machine.root().join("run/settings");
        let text = fs::read_to_string(&written).unwrap();
        assert!(text.contains(percent) && text.contains("20"), "the other one is written down: {text}");
        let left = machine.killed().left().unwrap();
        assert_eq!(left.ways_back(), [format!("sysctl {percent}=20")]);
        let sentence = left.to_string();
        assert!(sentence.contains(&format!("{percent} is 0, and was 20")), "{sentence}");
        assert!(left.put_back().unwrap().iter().all(PutBack::is_settled));
        assert_eq!((machine.now(bytes).as_str(), machine.now(percent).as_str()), ("0", "20"));

        // The bytes were in force, and the test sets the percentage.
        let machine = Machine::new(&[(bytes, "50000000\n"), (percent, "0\n")]);
        let mut changes = machine.settings().begin("test").unwrap();
        assert!(changes.set(&format!("{percent}=30")).is_err());
        reset(&machine, bytes);
        machine.put(percent, "30");
        assert_eq!(machine.killed().left().unwrap().ways_back(), [format!("sysctl {bytes}=50000000")]);
    }
}

#[test]
fn what_cannot_be_put_back_is_not_changed() {
    let machine = Machine::new(&[("vm.drop_caches", "0\n"), ("vm.stat_interval", "1\n")]);
    let mut changes = machine.settings().begin("test").unwrap();
    let error = changes.set("vm.drop_caches=3").unwrap_err();
    assert!(matches!(error, SettingError::AnAct(_)), "{error}");
    assert_eq!(machine.now("vm.drop_caches"), "0\n");
}

#[test]
fn nothing_else_is_written() {
    let machine = one();
    let mut changes = machine.settings().begin("test").unwrap();
    for wrong in
        ["vm.stat_interval", "kernel.pid_max=1", "vm.=1", "vm.../../etc/x=1", "vm.a=-1", "vm.a=1;", "vm.a="]
    {
        let error = changes.set(wrong).unwrap_err();
        assert!(matches!(error, SettingError::NotASetting(_)), "{wrong}: {error}");
        assert!(machine.settings().check(wrong).is_err());
    }
    let error = changes.set("vm.unknown=1").unwrap_err();
    assert!(matches!(error, SettingError::Unreadable { .. }), "{error}");
    assert!(!machine.root().join("vm/unknown").exists());
    assert!(machine.settings().check("vm.stat_interval=007").is_ok());
    assert_eq!(machine.now("vm.stat_interval"), "1\n");
}
