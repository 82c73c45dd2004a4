//! Hashes the sources that compute a simulation's result. A sweep reuses a stored result only if the hash of
//! the sources has not changed.

use std::path::Path;

#[path = "src/fnv.rs"]
mod fnv;
#[path = "build/sources.rs"]
mod sources;

fn main() {
    // The empty path names the package's directory, because cargo runs this script there.
    let package = Path::new("");
    let sources = sources::computing(package);
    for path in sources.iter().map(|path| path.display().to_string()).chain(["build.rs".to_owned()]) {
        println!("cargo::rerun-if-changed={path}");
    }
    let fingerprint = sources::fingerprint(package, &sources).expect("the sources can be read");
    println!("cargo::rustc-env=PAGESET_SOURCES={fingerprint}");
}
