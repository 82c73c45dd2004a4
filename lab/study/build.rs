//! Hashes the sources that compute a simulation: rows that other sources have computed are not used again.

use std::path::Path;

#[path = "src/sweep/fnv.rs"]
mod fnv;
#[path = "build/sources.rs"]
mod sources;

fn main() {
    // From here: cargo runs this in the package's directory.
    let package = Path::new("");
    let sources = sources::computing(package);
    for path in sources.iter().map(|path| path.display().to_string()).chain(["build.rs".to_owned()]) {
        println!("cargo::rerun-if-changed={path}");
    }
    let fingerprint = sources::fingerprint(package, &sources).expect("the sources can be read");
    println!("cargo::rustc-env=PAGESET_SOURCES={fingerprint}");
}
