//! Notes the commit for the provenance of results, if there is one, and a hash of the sources that compute them. Packagers
//! without git set `PAGESET_COMMIT`.

use std::path::Path;
use std::process::Command;

#[path = "src/sweep/fnv.rs"]
mod fnv;
#[path = "build/sources.rs"]
mod sources;

fn main() {
    println!("cargo::rerun-if-env-changed=PAGESET_COMMIT");
    // From here: cargo runs this in the package's directory.
    let package = Path::new("");
    // What makes a build differ from its commit, and what changes with a commit.
    let mut watched: Vec<_> = sources::all(package).iter().map(|path| path.display().to_string()).collect();
    watched.push("build.rs".to_owned());
    watched
        .extend(["HEAD", "logs/HEAD"].into_iter().filter_map(|name| git(&["rev-parse", "--git-path", name])));
    for path in watched.iter().filter(|path| Path::new(path).exists()) {
        println!("cargo::rerun-if-changed={path}");
    }
    let fingerprint =
        sources::fingerprint(package, &sources::computing(package)).expect("the sources can be read");
    println!("cargo::rustc-env=PAGESET_SOURCES={fingerprint}");
    let commit = std::env::var("PAGESET_COMMIT").ok().or_else(commit_of_checkout);
    if let Some(commit) = commit.filter(|commit| !commit.is_empty()) {
        println!("cargo::rustc-env=PAGESET_COMMIT={commit}");
    }
}

/// Abbreviated hash, with `-dirty` if sources differ from it. `None` without git, or outside this project's checkout.
fn commit_of_checkout() -> Option<String> {
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let differs =
        ["diff", "--quiet", "HEAD", "--", "../../crates", "../../machines", "../../data", "../../studies"];
    let differs = Command::new("git").args(differs).args(["../../Cargo.toml", "../../Cargo.lock"]).output();
    Some(if differs.is_ok_and(|output| output.status.code() == Some(1)) { commit + "-dirty" } else { commit })
}

/// What git prints, in this project's checkout only.
fn git(arguments: &[&str]) -> Option<String> {
    if !Path::new("../../.git").exists() {
        return None;
    }
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
