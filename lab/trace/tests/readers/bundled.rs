//! Paths of the bundled files, and functions to read them.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use pageset_trace::{Event, TraceReader};

/// A file below `data/`.
pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data").join(name)
}

/// All remaining events.
pub(crate) fn all(reader: &mut dyn TraceReader) -> Vec<Event> {
    let (mut all, mut block) = (Vec::new(), Vec::new());
    while reader.read_block(&mut block).expect("a whole trace") > 0 {
        all.extend_from_slice(&block);
    }
    all
}

/// Reads a file's bytes, and decompresses them if the file's name ends in `.xz`.
pub(crate) fn bytes(name: &str) -> Vec<u8> {
    let stored = std::fs::read(path(name)).expect("a bundled file");
    if !name.ends_with(".xz") {
        return stored;
    }
    let mut bytes = Vec::new();
    liblzma::read::XzDecoder::new(stored.as_slice()).read_to_end(&mut bytes).expect("whole xz");
    bytes
}
