//! Recordings that are built in.

use std::path::Path;

use pageset_trace::{OpenOptions, TraceError, TraceReader};

/// Recorded on Linux 6.18.44 with 2 CPUs: `make -j4` of Lua, 1.1 million events. It is built in, so that a
/// first try needs no recording.
pub static BUNDLED: &[u8] = include_bytes!("../bundled/k618_2c_make_lua_j4.pgtrace");
/// Its name in messages and results, instead of a path.
const BUNDLED_NAME: &str = "k618_2c_make_lua_j4 (bundled)";

/// All recordings that are built in, by name: `make -j4` of Lua, and the first 4 s of `make -j4` of OpenSSL
/// on the same machine, with no file in memory before. A study plays copies of the second.
const ALL: [(&str, &[u8]); 2] = [
    ("k618_2c_make_lua_j4", BUNDLED),
    ("k618_2c_make_openssl_j4", include_bytes!("../bundled/k618_2c_make_openssl_j4.pgtrace")),
];

/// Opens one of the recordings that are built in; `None` if none has this name.
///
/// # Errors
/// As [`pageset_trace::open`]; they are whole, so there are none.
#[must_use]
pub fn bundled_named(name: &str) -> Option<Result<Box<dyn TraceReader>, TraceError>> {
    let (name, bytes) = ALL.iter().find(|(known, _)| *known == name)?;
    Some(OpenOptions::new().open_bytes(Path::new(name), bytes.to_vec()))
}

/// Opens the recording that is built in.
///
/// # Errors
/// As [`pageset_trace::open`]; it is whole, so there are none.
pub fn bundled() -> Result<Box<dyn TraceReader>, TraceError> {
    bundled_with(&OpenOptions::new())
}

/// Opens the recording that is built in, with options.
///
/// # Errors
/// As [`pageset_trace::open`], for the files that the options name.
pub fn bundled_with(options: &OpenOptions) -> Result<Box<dyn TraceReader>, TraceError> {
    options.open_bytes(Path::new(BUNDLED_NAME), BUNDLED.to_vec())
}
