//! Checks that the hash of the sources covers every crate that computes results. A sweep reuses a stored
//! result only if the hash of the sources has not changed.

use std::fs;
use std::path::Path;
use std::process::Command;

#[path = "../src/fnv.rs"]
mod fnv;
#[path = "../build/sources.rs"]
mod sources;

/// Crates of this repository that `COMPUTING` leaves out. The files of `study` are listed separately. The
/// code of the crates `measure` and `report` takes no part in simulations.
const OTHERS: [&str; 3] = ["measure", "report", "study"];

#[test]
fn every_crate_that_computes_is_in_the_key_of_rows() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments =
        ["tree", "--offline", "--package", "pageset-study", "--edges", "normal", "--prefix", "none"];
    let output = Command::new(cargo)
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).expect("cargo prints UTF-8");
    let mut crates: Vec<_> =
        tree.lines().filter_map(|line| line.strip_prefix("pageset-")?.split(' ').next()).collect();
    crates.sort_unstable();
    crates.dedup();
    crates.retain(|name| !OTHERS.contains(name));
    let name = |directory: &str| directory.rsplit('/').next().unwrap_or_default().to_owned();
    assert_eq!(crates, sources::COMPUTING.map(name));
}

#[test]
fn the_build_has_the_fingerprint_of_the_sources_that_are_there() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let now = sources::fingerprint(package, &sources::computing(package)).expect("the sources can be read");
    assert_eq!(env!("PAGESET_SOURCES"), now, "the build script has not run again after an edit");
}

/// Makes a directory tree like this repository, with one file in each directory.
fn tree(root: &Path) -> std::path::PathBuf {
    let package = root.join("lab/study");
    let crates = sources::COMPUTING
        .iter()
        .flat_map(|at| [format!("../../{at}/src/lib.rs"), format!("../../{at}/Cargo.toml")]);
    let also = ["src/simulate/spec.rs", "../../machines/m.toml", "../../Cargo.lock"];
    for file in crates.chain(also.map(str::to_owned)) {
        // The path of the new file has no `..`, because the system resolves `..` only in existing
        // directories.
        let path = file.strip_prefix("../../").map_or_else(|| package.join(&file), |below| root.join(below));
        fs::create_dir_all(path.parent().expect("it has a directory")).expect("a directory can be made");
        fs::write(path, "1").expect("a file can be written");
    }
    package
}

#[test]
fn an_edit_of_any_source_changes_the_fingerprint() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let package = tree(directory.path());
    let fingerprint =
        || sources::fingerprint(&package, &sources::computing(&package)).expect("the sources can be read");
    let before = fingerprint();
    assert_eq!(fingerprint(), before);
    for edited in [
        "lab/sim/src/lib.rs",
        "kernel/core/src/lib.rs",
        "lab/study/src/simulate/spec.rs",
        "machines/m.toml",
        "Cargo.lock",
    ] {
        let path = directory.path().join(edited);
        fs::write(&path, "2").expect("a file can be written");
        assert_ne!(fingerprint(), before, "{edited}");
        fs::write(&path, "1").expect("a file can be written");
        assert_eq!(fingerprint(), before);
    }
    fs::rename(directory.path().join("machines/m.toml"), directory.path().join("machines/n.toml"))
        .expect("a file can be renamed");
    assert_ne!(fingerprint(), before);
}
