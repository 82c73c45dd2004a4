//! Reads `.xz` files, if the crate is built with the feature `xz`.

use std::io::Read;
use std::path::Path;

use crate::error::TraceError;

/// The bytes that `.xz` files start with. Source: the .xz file format 1.2.1, section 2.1.1.1.
pub(crate) const MAGIC: &[u8] = b"\xfd7zXZ\0";

/// Maximum memory of the decoder. `xz -9` needs 65 MiB. A header that asks for more memory is rejected.
#[cfg(feature = "xz")]
const MEMORY_BYTES_MAX: u64 = 100 << 20;

/// Decompresses all streams of a file. A file may consist of several streams, one after another. All streams
/// must be read, so that no event is lost silently.
#[cfg(feature = "xz")]
pub(crate) fn unxz<R: Read>(path: &Path, source: R) -> Result<impl Read + use<R>, TraceError> {
    use liblzma::{
        read::XzDecoder,
        stream::{CONCATENATED, Stream},
    };
    let stream = Stream::new_stream_decoder(MEMORY_BYTES_MAX, CONCATENATED).map_err(|error| {
        TraceError::file(path, format!("the xz decoder cannot start ({error})"), "free some memory")
    })?;
    Ok(XzDecoder::new_stream(source, stream))
}

/// Returns an error that says how to read the file.
#[cfg(not(feature = "xz"))]
pub(crate) fn unxz<R: Read>(path: &Path, _: R) -> Result<R, TraceError> {
    let remedy = "unpack it with `xz -dk`, or build pageset with `--features xz`";
    Err(TraceError::file(path, "is packed by xz, which this build cannot read", remedy))
}

#[cfg(all(test, not(feature = "xz")))]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_xz_says_what_to_do() {
        let error = unxz(Path::new("t.xz"), MAGIC).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("`xz -dk`") && error.contains("--features xz"), "{error}");
    }
}
