//! Tests that `pageset record` refuses to record, and names the reason. Most tests cause a refusal in a new
//! mount namespace, so no other program is affected.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::record::{PAGESET, Tmpfs, instance_of, machine, start, text};

/// Runs a shell script in a separate mount namespace. In the script, `$PAGESET` is the path of a copy of
/// `pageset` that every user may run.
fn in_namespace(script: &str) -> Output {
    let directory = TempDir::new().expect("a directory can be made");
    let copy = directory.path().join("pageset");
    fs::copy(PAGESET, &copy).expect("the command can be copied");
    drop(Command::new("chmod").arg("755").arg(directory.path()).status());
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-e", "-c", script]);
    command.env("PAGESET", &copy).output().expect("unshare is there")
}

/// Whether this process may make namespaces. If the process may not, prints a message.
fn has_namespaces() -> bool {
    let output = in_namespace("true");
    if !output.status.success() {
        eprintln!("skipped, since no namespace can be made: {}", text(&output.stderr).trim());
    }
    output.status.success()
}

#[track_caller]
fn refuses(script: &str, message: &str) {
    let output = in_namespace(script);
    assert_eq!(text(&output.stderr), format!("error: {message}\n"));
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()));
}

const WITHOUT_TRACEFS: &str =
    "umount -R -l /sys/kernel/debug 2>/dev/null || true; umount -l /sys/kernel/tracing;";
const AS_ANOTHER_USER: &str = "setpriv --reuid=65534 --regid=65534 --clear-groups";

#[test]
fn without_tracing_files_the_mount_is_named_and_helps() {
    let Some(_guard) = machine() else { return };
    if !has_namespaces() {
        return;
    }
    let remedy = "mount -t tracefs nodev /sys/kernel/tracing";
    refuses(
        &format!("{WITHOUT_TRACEFS} $PAGESET record --check"),
        &format!("the kernel's tracing files are not mounted; run `{remedy}` as root"),
    );
    let output = in_namespace(&format!("{WITHOUT_TRACEFS} {remedy}; $PAGESET record --check"));
    assert!(text(&output.stdout).starts_with("A recording can begin"), "{}", text(&output.stderr));
}

#[test]
fn a_kernel_without_tracing_is_told_from_one_where_it_is_not_mounted() {
    let Some(_guard) = machine() else { return };
    if !has_namespaces() {
        return;
    }
    let script = format!(
        "{WITHOUT_TRACEFS} mount -t tmpfs own /mnt; printf 'nodev\\tproc\\n' >/mnt/known; \
         mount --bind /mnt/known /proc/filesystems; $PAGESET record --check"
    );
    refuses(
        &script,
        "this kernel was built without tracing; record under a kernel with CONFIG_FTRACE, as distributions have it",
    );
}

#[test]
fn tracing_files_below_debugfs_will_do() {
    let Some(_guard) = machine() else { return };
    if !has_namespaces() {
        return;
    }
    let script = format!(
        "{WITHOUT_TRACEFS} mount -t debugfs own /sys/kernel/debug; ls /sys/kernel/debug/tracing/instances >/dev/null || exit 77; \
         $PAGESET record --check"
    );
    let output = in_namespace(&script);
    if output.status.code() == Some(77) {
        eprintln!("skipped, since this kernel's debugfs has no tracing files");
        return;
    }
    assert!(text(&output.stdout).starts_with("A recording can begin"), "{}", text(&output.stderr));
}

#[test]
fn a_container_with_tracing_files_to_read_is_told_how_to_write_them() {
    let Some(_guard) = machine() else { return };
    if !has_namespaces() {
        return;
    }
    let read_only = "mount -o remount,bind,ro /sys/kernel/tracing;";
    let remedy = "mount -o remount,rw /sys/kernel/tracing";
    refuses(
        &format!("{read_only} $PAGESET record --check"),
        &format!(
            "/sys/kernel/tracing is mounted read-only, as in a container; record on the host, or run `{remedy}` as root"
        ),
    );
    let output = in_namespace(&format!("{read_only} {remedy}; $PAGESET record --check"));
    assert!(text(&output.stdout).starts_with("A recording can begin"), "{}", text(&output.stderr));
}

#[test]
fn root_of_a_container_is_not_told_to_become_root() {
    let Some(_guard) = machine() else { return };
    if !has_namespaces() {
        return;
    }
    let container = format!("{AS_ANOTHER_USER} unshare --user --map-root-user");
    if !in_namespace(&format!("{container} true")).status.success() {
        eprintln!("skipped, since users may not make user namespaces here");
        return;
    }
    refuses(
        &format!("{container} $PAGESET record --check"),
        "/sys/kernel/tracing is closed to this root, as in a container; record on the host, whose kernel is the same",
    );
}

#[test]
fn who_may_look_at_tracing_files_may_not_yet_make_an_instance() {
    let Some(_guard) = machine() else { return };
    if !has_namespaces() {
        return;
    }
    let script = format!(
        "mount -t tmpfs -o mode=755 own /sys/kernel/tracing; mkdir /sys/kernel/tracing/instances; \
         {AS_ANOTHER_USER} $PAGESET record --check"
    );
    let output = in_namespace(&script);
    let error = text(&output.stderr);
    assert!(
        error.starts_with("error: only root may use /sys/kernel/tracing/instances: run `sudo "),
        "{error}"
    );
    assert!(error.ends_with("/pageset record --check`\n"), "{error}");
}

#[test]
fn a_locked_down_kernel_is_named_as_the_reason() {
    let Some(_guard) = machine() else { return };
    if !has_namespaces() {
        return;
    }
    // A locked kernel cannot be unlocked, so this test only replaces the file that shows the lock. `cargo
    // xtask ci night guest` locks a real kernel.
    let script = |state: &str| {
        format!(
            "mount -t tmpfs own /sys/kernel; mkdir /sys/kernel/security /sys/kernel/tracing; \
             mount -t tracefs nodev /sys/kernel/tracing; echo '{state}' >/sys/kernel/security/lockdown; \
             {AS_ANOTHER_USER} $PAGESET record --check"
        )
    };
    refuses(
        &script("none integrity [confidentiality]"),
        "the kernel is locked down (confidentiality), which forbids tracing; boot with `lockdown=integrity`, or record on \
         another machine",
    );
    let output = in_namespace(&script("none [integrity] confidentiality"));
    assert!(text(&output.stderr).contains("run `sudo "), "{}", text(&output.stderr));
}

#[test]
fn a_file_system_that_may_only_be_read_is_named() {
    let Some(_guard) = machine() else { return };
    let memory = Tmpfs::mount("1m");
    let status = Command::new("mount").args(["-o", "remount,ro"]).arg(memory.0.path()).status();
    assert!(status.is_ok_and(|status| status.success()), "root can mount");
    let name = memory.0.path().join("t.pgtrace").display().to_string();
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/traces/k61_2c_tcp.pgtrace");
    for arguments in [&["record", "-o", &name, "--for", "1s"][..], &["convert", trace, &name]] {
        let child = start(arguments);
        let instance = instance_of(&child);
        let output = child.wait_with_output().unwrap();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(&name) && error.to_lowercase().contains("read-only file"), "{error}");
        assert!(!instance.exists() && !Path::new(&name).exists());
    }
}
