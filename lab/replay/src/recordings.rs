//! Recordings that are built in.

use std::path::Path;

use pageset_trace::{OpenOptions, TraceError, TraceReader};

/// A recording that is part of the program, so that users can try the program without recording anything. The
/// recording shows `make -j4` of Lua on Linux 6.18.44 with 2 CPUs, and has 1.1 million events.
pub static BUNDLED: &[u8] = include_bytes!("../bundled/k618_2c_make_lua_j4.pgtrace");
/// The name of the built-in recording in messages and results, where other recordings have a path.
const BUNDLED_NAME: &str = "k618_2c_make_lua_j4 (bundled)";

/// All recordings that are part of the program, by name: `make -j4` of Lua, and the first 4 s of `make -j4`
/// of OpenSSL. The second recording was made on the same machine, and began with an empty page cache. A study
/// uses copies of the second recording.
const ALL: [(&str, &[u8]); 2] = [
    ("k618_2c_make_lua_j4", BUNDLED),
    ("k618_2c_make_openssl_j4", include_bytes!("../bundled/k618_2c_make_openssl_j4.pgtrace")),
];

/// Opens the built-in recording with this name. Returns `None` if no built-in recording has this name.
///
/// # Errors
/// The errors of [`pageset_trace::open`]. The built-in recordings are complete, so no error occurs.
#[must_use]
pub fn bundled_named(name: &str) -> Option<Result<Box<dyn TraceReader>, TraceError>> {
    let (name, bytes) = ALL.iter().find(|(known, _)| *known == name)?;
    Some(OpenOptions::new().open_bytes(Path::new(name), bytes.to_vec()))
}

/// Opens the recording [`BUNDLED`].
///
/// # Errors
/// The errors of [`pageset_trace::open`]. The built-in recording is complete, so no error occurs.
pub fn bundled() -> Result<Box<dyn TraceReader>, TraceError> {
    bundled_with(&OpenOptions::new())
}

/// Opens the recording [`BUNDLED`] with options.
///
/// # Errors
/// The errors of [`pageset_trace::open`] for the files that the options name.
pub fn bundled_with(options: &OpenOptions) -> Result<Box<dyn TraceReader>, TraceError> {
    options.open_bytes(Path::new(BUNDLED_NAME), BUNDLED.to_vec())
}
