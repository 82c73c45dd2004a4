//! Notes the commit for the provenance of results, if there is one. Packagers without git set `PAGESET_COMMIT`.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=PAGESET_COMMIT");
    // What changes with a commit, and what makes a build differ from its commit. Naming a file that does not exist would
    // run this at every build.
    let watched = [
        "../../.git/HEAD",
        "../../.git/logs/HEAD",
        "../core/src",
        "../report/src",
        "../trace/src",
        "../workload/src",
        "build.rs",
        "src",
    ];
    for path in watched.iter().filter(|path| Path::new(path).exists()) {
        println!("cargo::rerun-if-changed={path}");
    }
    let commit = std::env::var("PAGESET_COMMIT").ok().or_else(commit_of_checkout);
    if let Some(commit) = commit.filter(|commit| !commit.is_empty()) {
        println!("cargo::rustc-env=PAGESET_COMMIT={commit}");
    }
}

/// Abbreviated hash, with `-dirty` if sources differ from it. `None` without git, or outside this project's checkout.
fn commit_of_checkout() -> Option<String> {
    if !Path::new("../../.git").exists() {
        return None;
    }
    let git = |arguments: &[&str]| Command::new("git").args(arguments).output().ok();
    let output = git(&["rev-parse", "--short=12", "HEAD"]).filter(|output| output.status.success())?;
    let commit = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    let differs = git(&["diff", "--quiet", "HEAD", "--", "../../crates", "../../Cargo.lock"])
        .is_some_and(|output| output.status.code() == Some(1));
    Some(if differs { commit + "-dirty" } else { commit })
}
