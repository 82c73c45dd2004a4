//! Finds and reads the repository's files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Directories with generated files.
const GENERATED: [&str; 7] = [
    ".git",
    "target",
    "kernel/ostd/target",
    "docs/book/book",
    "fuzz/target",
    "fuzz/corpus",
    "fuzz/artifacts",
];

/// Returns the repository's root.
///
/// Cargo names the directory of the package that it runs. Two checkouts that share a target directory share
/// this program, so the directory of its compilation may be the other checkout's.
pub(crate) fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let package =
            std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        PathBuf::from(package).parent().expect("this crate is a directory of the repository").to_owned()
    });
    &ROOT
}

/// Returns cargo's target directory.
pub(crate) fn target() -> PathBuf {
    let directory = std::env::var_os("CARGO_TARGET_DIR");
    directory.map_or_else(|| root().join("target"), |directory| root().join(directory))
}

/// A file of the repository. `name` is its path from the repository's root.
pub(crate) struct RepositoryFile {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
}

impl RepositoryFile {
    pub(crate) fn has_extension(&self, extensions: &[&str]) -> bool {
        let extension = self.path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| extensions.contains(&extension))
    }

    pub(crate) fn text(&self) -> String {
        fs::read_to_string(&self.path).unwrap_or_else(|error| panic!("{} can be read: {error}", self.name))
    }
}

/// Returns all files that are not generated, sorted by name. Links to directories are not followed.
pub(crate) fn files() -> Vec<RepositoryFile> {
    let mut files = Vec::new();
    let mut directories = vec![root().to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("a directory can be listed") {
            let path = entry.expect("a directory can be listed").path();
            let name = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
            if GENERATED.contains(&name.as_str()) || name.ends_with("__pycache__") {
                continue;
            }
            if path.is_dir() && !path.is_symlink() {
                directories.push(path);
            } else if path.is_file() {
                files.push(RepositoryFile { path, name });
            }
        }
    }
    files.sort_by(|left, right| left.name.cmp(&right.name));
    files
}

/// A rule as a sentence, and the places that break the rule.
pub(crate) type Broken = (&'static str, Vec<String>);

/// Returns the text of a file of the repository. Panics if the file cannot be read.
pub(crate) fn text(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name} can be read: {error}"))
}
