//! Decompresses files while they are read. The first bytes of a file show its compression format.

use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::error::TraceError;
use crate::xz::{self, unxz};

/// Number of first bytes that show the compression format of a file.
pub(crate) const MAGIC_BYTES: usize = 6;

/// Window of the zstd decoder, as a power of two: 128 MiB, which `zstd --long` needs. A header that asks for
/// a larger window is rejected.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// A source of bytes that can be handed to another thread.
pub(crate) trait ByteStream: Read + Send {}
impl<T: Read + Send> ByteStream for T {}

/// A compression format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Xz,
    Gzip,
    Zstd,
}

impl Packing {
    /// Finds the compression format of a file that begins with `head`. `None` if the file is not compressed.
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        if head.starts_with(xz::MAGIC) {
            Some(Self::Xz)
        } else if head.starts_with(b"\x1f\x8b") {
            // Source: RFC 1952, section 2.3.1.
            Some(Self::Gzip)
        } else if head.starts_with(b"\x28\xb5\x2f\xfd") {
            // Source: RFC 8878, section 3.1.1.
            Some(Self::Zstd)
        } else {
            None
        }
    }

    /// Decompresses all members of a file. A file may consist of several compressed members, one after
    /// another. All members must be read, so that no event is lost silently.
    pub(crate) fn unpack(
        self,
        path: &Path,
        source: impl Read + Send + 'static,
    ) -> Result<Box<dyn ByteStream>, TraceError> {
        match self {
            Self::Xz => Ok(Box::new(unxz(path, source)?)),
            Self::Gzip => Ok(Box::new(MultiGzDecoder::new(source))),
            Self::Zstd => {
                let started = zstd::Decoder::new(source)
                    .and_then(|mut decoder| decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map(|()| decoder));
                let decoder = started.map_err(|error| {
                    TraceError::file(
                        path,
                        format!("the zstd decoder cannot start ({error})"),
                        "free some memory",
                    )
                })?;
                Ok(Box::new(decoder))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::damage::Strictness;
    use crate::input::{HEAD_BYTES, Input};

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::stream::encode_all(bytes, 3).unwrap()
    }

    #[cfg(feature = "xz")]
    fn xz(bytes: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        liblzma::read::XzEncoder::new(bytes, 6).read_to_end(&mut packed).unwrap();
        packed
    }

    type Packer = fn(&[u8]) -> Vec<u8>;
    const PACKERS: &[Packer] = &[
        gzip,
        zstd,
        #[cfg(feature = "xz")]
        xz,
    ];

    fn unpacked(name: &str, stored: Vec<u8>, bytes_max: u64) -> Result<Vec<u8>, String> {
        let path = Path::new(name);
        let seekable = Input::from_bytes(path, stored, Strictness::Strict)
            .and_then(|input| input.into_seekable(path, bytes_max));
        let mut bytes = Vec::new();
        seekable.map_err(|error| error.to_string())?.read_to_end(&mut bytes).unwrap();
        Ok(bytes)
    }

    #[test]
    fn what_was_packed_comes_out_in_order_and_from_anywhere() {
        let long: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        for pack in PACKERS {
            for bytes in [b"".as_slice(), b"abc", &long] {
                let input = Input::from_bytes(Path::new("x"), pack(bytes), Strictness::Strict).unwrap();
                assert_eq!(input.head, bytes[..bytes.len().min(HEAD_BYTES)]);
                let mut stream = Vec::new();
                input.into_stream().read_to_end(&mut stream).unwrap();
                assert_eq!(stream, bytes);
                assert_eq!(unpacked("x", pack(bytes), 1 << 20).unwrap(), bytes);
            }
        }
    }

    #[test]
    fn joined_files_are_read_to_the_end_and_garbage_is_not_ignored() {
        for pack in PACKERS {
            let mut stored = [pack(b"one "), pack(b"two")].concat();
            assert_eq!(unpacked("j", stored.clone(), 100).unwrap(), b"one two");
            stored.extend(b"garbage");
            let error = unpacked("j", stored, 100).unwrap_err();
            assert!(error.starts_with("j: ") && error.contains("damaged"), "{error}");
        }
    }

    #[test]
    fn bombs_and_truncated_files_are_errors() {
        for pack in PACKERS {
            let error = unpacked("bomb", pack(&vec![0; 1 << 20]), 1000).unwrap_err();
            assert!(error.contains("1000 bytes"), "{error}");
            let noise: Vec<u8> =
                (0..100_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
            let mut stored = pack(&noise);
            stored.truncate(stored.len() - 20);
            let error = unpacked("t", stored, 1 << 20).unwrap_err();
            assert!(error.contains("truncated"), "{error}");
        }
    }
}
