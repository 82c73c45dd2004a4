//! Notes the commit for the provenance of results, if there is one. Packagers without git set
//! `PAGESET_COMMIT`.

use std::path::Path;
use std::process::Command;

/// Sources of a build, as git and cargo name them from this directory. If one of them differs from the
/// commit, the build is called `-dirty`.
const SOURCES: [&str; 6] =
    ["..", "../../machines", "../../data", "../../studies", "../../Cargo.toml", "../../Cargo.lock"];

fn main() {
    println!("cargo::rerun-if-env-changed=PAGESET_COMMIT");
    let mut watched = SOURCES.map(str::to_owned).to_vec();
    // Cargo runs this again when one of these files changes. Git writes them at a commit.
    watched
        .extend(["HEAD", "logs/HEAD"].into_iter().filter_map(|name| git(&["rev-parse", "--git-path", name])));
    // A path that does not exist would make cargo run this at every build.
    for path in watched.iter().filter(|path| Path::new(path).exists()) {
        println!("cargo::rerun-if-changed={path}");
    }
    let commit = std::env::var("PAGESET_COMMIT").ok().or_else(commit_of_checkout);
    if let Some(commit) = commit.filter(|commit| !commit.is_empty()) {
        println!("cargo::rustc-env=PAGESET_COMMIT={commit}");
    }
}

/// Abbreviated hash, with `-dirty` if sources differ from it. `None` without git, or outside this project's
/// checkout.
fn commit_of_checkout() -> Option<String> {
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let differs = Command::new("git").args(["diff", "--quiet", "HEAD", "--"]).args(SOURCES).output();
    Some(if differs.is_ok_and(|output| output.status.code() == Some(1)) { commit + "-dirty" } else { commit })
}

/// The output of git, in this project's checkout only.
fn git(arguments: &[&str]) -> Option<String> {
    if !Path::new("../../.git").exists() {
        return None;
    }
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
