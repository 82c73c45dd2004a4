//! Hashes the sources that compute a simulation's result, so that stored results of other sources are not
//! used again. Also lists the built-in studies.

use std::env;
use std::path::{Path, PathBuf};

#[path = "src/sweep/fnv.rs"]
mod fnv;
#[path = "build/sources.rs"]
mod sources;
#[path = "build/studies.rs"]
mod studies;

/// The directory with published tables and the files of their studies.
const TABLES: &str = "tables";

fn main() {
    // The path is relative to the package's directory, because cargo runs this script there.
    let package = Path::new("");
    let sources = sources::computing(package);
    for path in
        sources.iter().map(|path| path.display().to_string()).chain(["build.rs", TABLES].map(str::to_owned))
    {
        println!("cargo::rerun-if-changed={path}");
    }
    let fingerprint = sources::fingerprint(package, &sources).expect("the sources can be read");
    println!("cargo::rustc-env=PAGESET_SOURCES={fingerprint}");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    studies::write(&package.join(TABLES), &out.join("studies.rs")).expect("the tables can be read");
}
