//! Bytes in `.xz` files, if the crate is built with the feature `xz`.

use std::io::Read;
use std::path::Path;

use crate::error::TraceError;

/// What `.xz` files start with. Source: the .xz file format 1.2.1, section 2.1.1.1.
pub(crate) const MAGIC: &[u8] = b"\xfd7zXZ\0";

/// Bytes the decoder may use. `xz -9` needs 65 MiB; a header that asks for more is refused.
#[cfg(feature = "xz")]
const MEMORY_BYTES_MAX: u64 = 100 << 20;

/// Unpacks all streams of a file: `xz` files may be joined end to end, and none may be dropped silently.
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

/// Says what to do instead.
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

#[cfg(all(test, feature = "xz"))]
mod tests {
    use super::*;
    use crate::input::{HEAD_BYTES, Input};

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        liblzma::read::XzEncoder::new(bytes, 6).read_to_end(&mut packed).unwrap();
        packed
    }

    fn unpacked(name: &str, stored: Vec<u8>, bytes_max: u64) -> Result<Vec<u8>, String> {
        let path = Path::new(name);
        let seekable = Input::from_bytes(path, stored).and_then(|input| input.into_seekable(path, bytes_max));
        let mut bytes = Vec::new();
        seekable.map_err(|error| error.to_string())?.read_to_end(&mut bytes).unwrap();
        Ok(bytes)
    }

    #[test]
    fn what_was_packed_comes_out_in_order_and_from_anywhere() {
        let long: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        for bytes in [b"".as_slice(), b"abc", &long] {
            let input = Input::from_bytes(Path::new("x"), packed(bytes)).unwrap();
            assert_eq!(input.head, bytes[..bytes.len().min(HEAD_BYTES)]);
            let mut stream = Vec::new();
            input.into_stream().read_to_end(&mut stream).unwrap();
            assert_eq!(stream, bytes);
            assert_eq!(unpacked("x", packed(bytes), 1 << 20).unwrap(), bytes);
        }
    }

    #[test]
    fn joined_files_are_read_to_the_end_and_garbage_is_not_ignored() {
        let mut stored = [packed(b"one "), packed(b"two")].concat();
        assert_eq!(unpacked("j.xz", stored.clone(), 100).unwrap(), b"one two");
        stored.extend(b"garbage");
        let error = unpacked("j.xz", stored, 100).unwrap_err();
        assert!(error.starts_with("j.xz: "), "{error}");
    }

    #[test]
    fn a_bomb_is_stopped_at_the_limit() {
        let error = unpacked("bomb.xz", packed(&vec![0; 1 << 20]), 1000).unwrap_err();
        assert!(error.contains("1000 bytes"), "{error}");
    }

    #[test]
    fn a_truncated_stream_is_an_error() {
        let mut stored = packed(&vec![7; 300_000]);
        stored.truncate(stored.len() - 20);
        let error = unpacked("t.xz", stored, 1 << 20).unwrap_err();
        assert!(error.contains("xz -t"), "{error}");
    }
}
