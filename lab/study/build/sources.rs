//! Lists and hashes the files that decide a simulation's result, for the build script and for a test.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::fnv::Fnv;

/// Directories of other crates that compute a simulation's result.
pub(crate) const COMPUTING: [&str; 7] =
    ["kernel/blocks", "kernel/core", "kernel/fault", "kernel/pageops", "lab/replay", "lab/sim", "lab/trace"];
/// Files of this crate that compute a simulation's result, the bundled machines, and the versions of external
/// crates. A package from a registry lacks the directories of other crates. In a package from a registry,
/// this crate's version stands for the other crates, because all crates are released together.
const ALSO: [&str; 14] = [
    "src/contest",
    "src/load",
    "src/lru",
    "src/simulate",
    "src/slab",
    "src/jobs.rs",
    "src/target.rs",
    "src/random_time.rs",
    "src/lib.rs",
    "build",
    "Cargo.toml",
    "../../machines",
    "../../Cargo.toml",
    "../../Cargo.lock",
];

/// Returns the existing files and directories that decide a simulation's result.
pub(crate) fn computing(package: &Path) -> Vec<PathBuf> {
    let crates =
        COMPUTING.iter().flat_map(|at| [format!("../../{at}/src"), format!("../../{at}/Cargo.toml")]);
    existing(package, crates.chain(ALSO.map(str::to_owned)))
}

/// Keeps only existing paths, because a missing path would make cargo run the build script at every build.
fn existing(package: &Path, paths: impl IntoIterator<Item = String>) -> Vec<PathBuf> {
    paths.into_iter().map(|path| package.join(path)).filter(|path| path.exists()).collect()
}

/// Returns a hash of the names and contents of all files in `paths`. Equal files give an equal hash.
pub(crate) fn fingerprint(package: &Path, paths: &[PathBuf]) -> io::Result<String> {
    let mut files = Vec::new();
    paths.iter().try_for_each(|path| collect(path, &mut files))?;
    files.sort();
    let mut hash = Fnv::new();
    for file in files {
        let name = file.strip_prefix(package).unwrap_or(&file).to_string_lossy().into_owned();
        let contents = fs::read(&file)?;
        // The hash includes lengths. Without lengths, moving bytes from the end of one file to the beginning
        // of the next file would not change the hash.
        for part in [name.as_bytes(), &contents] {
            hash.add(&(part.len() as u64).to_le_bytes());
            hash.add(part);
        }
    }
    Ok(hash.text())
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    fs::read_dir(path)?.try_for_each(|entry| collect(&entry?.path(), files))
}
