//! Builds the list of built-in studies into the crate.

use std::env;
use std::path::{Path, PathBuf};

#[path = "build/studies.rs"]
mod studies;

/// The directory with published tables and the files of their studies. Cargo runs this script in the
/// package's directory, and the path is relative to that directory.
const TABLES: &str = "tables";

fn main() {
    for path in ["build.rs", "build", TABLES] {
        println!("cargo::rerun-if-changed={path}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    studies::write(Path::new(TABLES), &out.join("studies.rs")).expect("the tables can be read");
}
