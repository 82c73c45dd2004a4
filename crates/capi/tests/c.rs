//! The C library as C uses it: programs in C, and in C++, that are compiled against the header and the libraries.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where cargo has put the libraries.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    test.parent().expect("a test is in a directory").to_owned()
}

fn succeed(command: &mut Command) {
    let output = command.output().expect("a C compiler is installed");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{error}", output.status);
}

const C89: &[&str] = &["-std=c89"];

/// Compiles a program and runs it.
fn run(compiler: &str, flags: &[&str], source: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = directory.path().join("program");
    succeed(
        Command::new(compiler)
            .args(["-pedantic", "-Wall", "-Wextra", "-Werror", "-O1"])
            .args(flags)
            .arg("-I")
            .arg(root.join("include"))
            .arg("-o")
            .arg(&program)
            .arg(root.join("tests/c").join(source))
            .args(["-x", "none"])
            .arg(libraries().join("libpageset_capi.a"))
            .args(["-lpthread", "-ldl", "-lm"]),
    );
    succeed(&mut Command::new(&program));
}

#[test]
fn misuse_gets_an_error() {
    run("cc", C89, "misuse.c");
}

#[test]
fn every_function_does_what_the_header_says() {
    run("cc", C89, "uses.c");
}

#[test]
fn a_child_changes_nothing_and_waits_for_nothing() {
    run("cc", C89, "forked.c");
}

#[test]
fn threads_free_what_others_allocated() {
    run("cc", C89, "threads.c");
}

#[test]
fn the_header_is_cpp_too() {
    run("c++", &["-x", "c++"], "misuse.c");
}
