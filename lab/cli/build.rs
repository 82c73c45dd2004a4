//! Finds out the commit that is built, because results name this commit. Packagers who build without git name
//! the commit in `PAGESET_COMMIT`.

use std::path::Path;
use std::process::Command;

/// The sources of a build, as paths from this directory. If a source differs from the commit, the commit's
/// name ends in `-dirty`.
const SOURCES: [&str; 6] =
    ["..", "../../machines", "../../data", "../../studies", "../../Cargo.toml", "../../Cargo.lock"];

fn main() {
    println!("cargo::rerun-if-env-changed=PAGESET_COMMIT");
    let mut watched = SOURCES.map(str::to_owned).to_vec();
    // Cargo runs this script again when one of these files changes. Git changes these files at each commit.
    watched
        .extend(["HEAD", "logs/HEAD"].into_iter().filter_map(|name| git(&["rev-parse", "--git-path", name])));
    // Leave out paths that do not exist: for such a path, cargo would run this script at every build.
    for path in watched.iter().filter(|path| Path::new(path).exists()) {
        println!("cargo::rerun-if-changed={path}");
    }
    let commit = std::env::var("PAGESET_COMMIT").ok().or_else(commit_of_checkout);
    if let Some(commit) = commit.filter(|commit| !commit.is_empty()) {
        println!("cargo::rustc-env=PAGESET_COMMIT={commit}");
    }
}

/// The commit's abbreviated hash, with `-dirty` if sources differ from the commit. `None` without git, or
/// outside this project's checkout.
fn commit_of_checkout() -> Option<String> {
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let differs = Command::new("git").args(["diff", "--quiet", "HEAD", "--"]).args(SOURCES).output();
    Some(if differs.is_ok_and(|output| output.status.code() == Some(1)) { commit + "-dirty" } else { commit })
}

/// Runs git, and returns git's output. `None` outside this project's checkout, or if git fails.
fn git(arguments: &[&str]) -> Option<String> {
    if !Path::new("../../.git").exists() {
        return None;
    }
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
