//! The fixed parts of the native file: their magic numbers, sizes, limits and byte layouts.

use crate::event::EventKind;

/// The bytes that every native file begins with. The first byte is not ASCII. As in PNG, the last three bytes
/// show whether a program copied the file as text and changed line ends.
pub(crate) const FILE_MAGIC: [u8; 8] = *b"\x89PGT\r\n\x1a\n";
/// The bytes that every block begins with.
pub(crate) const BLOCK_MAGIC: [u8; 4] = *b"PGBK";
/// The bytes that a description at the file's end (closing description) begins with.
pub(crate) const CLOSING_MAGIC: [u8; 4] = *b"PGDS";
/// The bytes that an index begins with.
pub(crate) const INDEX_MAGIC: [u8; 4] = *b"PGIX";
/// The bytes that every complete native file ends with.
pub(crate) const END_MAGIC: [u8; 8] = *b"PGTREND\n";
/// The major version. A reader rejects other major versions, but reads every minor version.
pub(crate) const VERSION_MAJOR: u16 = 1;
/// Minor version of a file without a closing description.
pub(crate) const VERSION_MINOR: u16 = 0;
/// Minor version of a file that may have a closing description.
pub(crate) const VERSION_MINOR_CLOSING: u16 = 1;

/// Bytes of the file header before the description.
pub(crate) const FILE_HEADER_BYTES: usize = 32;
/// Number of bytes of a block's header.
pub(crate) const BLOCK_HEADER_BYTES: usize = 40;
/// Number of bytes of a closing description before its compressed JSON.
pub(crate) const CLOSING_HEADER_BYTES: usize = 20;
/// Bytes of the index before its entries.
pub(crate) const INDEX_HEADER_BYTES: usize = 16;
/// Bytes of one block's entry in the index.
pub(crate) const INDEX_ENTRY_BYTES: usize = 32;
/// Bytes of the footer.
pub(crate) const FOOTER_BYTES: usize = 24;

/// Maximum bytes of the description, compressed or not. The limit suffices for a machine of 8192 CPUs, or for
/// an hour of samples of two CPUs.
pub(crate) const DESCRIPTION_BYTES_MAX: usize = 64 << 20;
/// Maximum bytes of a block's payload. 64 Ki events without any compression need about 2.2 MiB.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 4 << 20;
/// Maximum number of blocks. If all blocks are full, they have 2^36 events.
pub(crate) const BLOCKS_MAX: usize = 1 << 20;
/// Maximum number of CPUs in the index's counts.
pub(crate) const CPUS_MAX: usize = 1 << 16;

/// Whether `head` begins like a native file. Also returns true if line ends in `head` were changed, so that
/// the error can mention this damage.
pub(crate) fn looks_native(head: &[u8]) -> bool {
    head.starts_with(&FILE_MAGIC[..4])
}

/// The first 32 bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) version_major: u16,
    pub(crate) version_minor: u16,
    /// Number of bytes of the stored description, which is compressed with zstd.
    pub(crate) stored_bytes: u32,
    /// Bytes of the description's JSON.
    pub(crate) raw_bytes: u32,
    /// CRC-32 of the stored description.
    pub(crate) crc: u32,
}

impl FileHeader {
    pub(crate) fn to_bytes(self) -> [u8; FILE_HEADER_BYTES] {
        let mut bytes = [0; FILE_HEADER_BYTES];
        bytes[..8].copy_from_slice(&FILE_MAGIC);
        put_u16(&mut bytes, 8, self.version_major);
        put_u16(&mut bytes, 10, self.version_minor);
        put_u32(&mut bytes, 12, self.stored_bytes);
        put_u32(&mut bytes, 16, self.raw_bytes);
        put_u32(&mut bytes, 20, self.crc);
        let crc = crc32fast::hash(&bytes[..28]);
        put_u32(&mut bytes, 28, crc);
        bytes
    }

    /// Parses the header. The error is a sentence about the problem.
    pub(crate) fn from_bytes(bytes: &[u8; FILE_HEADER_BYTES]) -> Result<Self, &'static str> {
        if bytes[..8] != FILE_MAGIC {
            return Err("the magic number is damaged, as by a copy in text mode");
        }
        let header = Self {
            version_major: get_u16(bytes, 8),
            version_minor: get_u16(bytes, 10),
            stored_bytes: get_u32(bytes, 12),
            raw_bytes: get_u32(bytes, 16),
            crc: get_u32(bytes, 20),
        };
        if header.version_major != VERSION_MAJOR {
            return Err("the major version is not 1");
        }
        if get_u32(bytes, 28) != crc32fast::hash(&bytes[..28]) {
            return Err("the header's checksum is wrong");
        }
        Ok(header)
    }
}

/// The header of a compressed description. At a file's end, these 20 bytes stand before the description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DescriptionHeader {
    /// Number of bytes of the stored description, which is compressed with zstd.
    pub(crate) stored_bytes: u32,
    /// Bytes of the description's JSON.
    pub(crate) raw_bytes: u32,
    /// CRC-32 of the stored description.
    pub(crate) crc: u32,
}

impl DescriptionHeader {
    pub(crate) fn to_bytes(self) -> [u8; CLOSING_HEADER_BYTES] {
        let mut bytes = [0; CLOSING_HEADER_BYTES];
        bytes[..4].copy_from_slice(&CLOSING_MAGIC);
        put_u32(&mut bytes, 4, self.stored_bytes);
        put_u32(&mut bytes, 8, self.raw_bytes);
        put_u32(&mut bytes, 12, self.crc);
        let crc = crc32fast::hash(&bytes[..16]);
        put_u32(&mut bytes, 16, crc);
        bytes
    }

    /// Parses the header. The error is a sentence about the problem.
    pub(crate) fn from_bytes(bytes: &[u8; CLOSING_HEADER_BYTES]) -> Result<Self, &'static str> {
        if bytes[..4] != CLOSING_MAGIC {
            return Err("no closing description starts here");
        }
        if get_u32(bytes, 16) != crc32fast::hash(&bytes[..16]) {
            return Err("the checksum of the closing description's header is wrong");
        }
        Ok(Self { stored_bytes: get_u32(bytes, 4), raw_bytes: get_u32(bytes, 8), crc: get_u32(bytes, 12) })
    }
}

/// The first 40 bytes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    /// Bytes of the payload that follows.
    pub(crate) payload_bytes: u32,
    /// Number of events in the block, 1 to 65 536.
    pub(crate) events: u32,
    /// CRC-32 of the payload.
    pub(crate) crc: u32,
    /// Time of the first event.
    pub(crate) first_ts_ns: u64,
    /// Latest time in the block.
    pub(crate) last_ts_ns: u64,
    /// Kinds of the block's events, as bits. Bit `k` stands for the kind with code `k`.
    pub(crate) kinds: u32,
}

impl BlockHeader {
    pub(crate) fn to_bytes(self) -> [u8; BLOCK_HEADER_BYTES] {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        bytes[..4].copy_from_slice(&BLOCK_MAGIC);
        put_u32(&mut bytes, 4, self.payload_bytes);
        put_u32(&mut bytes, 8, self.events);
        put_u32(&mut bytes, 12, self.crc);
        put_u64(&mut bytes, 16, self.first_ts_ns);
        put_u64(&mut bytes, 24, self.last_ts_ns);
        put_u32(&mut bytes, 32, self.kinds);
        let crc = crc32fast::hash(&bytes[..36]);
        put_u32(&mut bytes, 36, crc);
        bytes
    }

    /// Parses the header. The error is a sentence about the problem.
    pub(crate) fn from_bytes(bytes: &[u8; BLOCK_HEADER_BYTES]) -> Result<Self, &'static str> {
        if bytes[..4] != BLOCK_MAGIC {
            return Err("no block starts here");
        }
        if get_u32(bytes, 36) != crc32fast::hash(&bytes[..36]) {
            return Err("the block header's checksum is wrong");
        }
        let header = Self {
            payload_bytes: get_u32(bytes, 4),
            events: get_u32(bytes, 8),
            crc: get_u32(bytes, 12),
            first_ts_ns: get_u64(bytes, 16),
            last_ts_ns: get_u64(bytes, 24),
            kinds: get_u32(bytes, 32),
        };
        if header.payload_bytes as usize > PAYLOAD_BYTES_MAX {
            return Err("the block is larger than 4 MiB");
        }
        if header.events == 0 || header.events as usize > crate::reader::BLOCK_EVENTS_MAX {
            return Err("the block does not hold 1 to 65536 events");
        }
        Ok(header)
    }
}

/// The last 24 bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    /// Offset of the index.
    pub(crate) index_offset: u64,
    /// Bytes of the index.
    pub(crate) index_bytes: u32,
}

impl Footer {
    pub(crate) fn to_bytes(self) -> [u8; FOOTER_BYTES] {
        let mut bytes = [0; FOOTER_BYTES];
        put_u64(&mut bytes, 0, self.index_offset);
        put_u32(&mut bytes, 8, self.index_bytes);
        let crc = crc32fast::hash(&bytes[..12]);
        put_u32(&mut bytes, 12, crc);
        bytes[16..].copy_from_slice(&END_MAGIC);
        bytes
    }

    /// Parses the footer. `None` if the bytes are not a footer.
    pub(crate) fn from_bytes(bytes: &[u8; FOOTER_BYTES]) -> Option<Self> {
        if bytes[16..] != END_MAGIC || get_u32(bytes, 12) != crc32fast::hash(&bytes[..12]) {
            return None;
        }
        Some(Self { index_offset: get_u64(bytes, 0), index_bytes: get_u32(bytes, 8) })
    }
}

/// Numbers of events by the code of their kind. Entry 0 is not used.
pub(crate) type KindCounts = [u64; EventKind::COUNT + 1];

#[inline]
pub(crate) fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

#[inline]
pub(crate) fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

#[inline]
pub(crate) fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Reads two bytes at `at`. The caller has checked that the bytes exist.
pub(crate) fn get_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// Reads four bytes at `at`. The caller has checked that the bytes exist.
pub(crate) fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Reads eight bytes at `at`. The caller has checked that the bytes exist.
pub(crate) fn get_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from(get_u32(bytes, at)) | u64::from(get_u32(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_parts_survive_and_notice_damage() {
        let header = FileHeader {
            version_major: VERSION_MAJOR,
            version_minor: 7,
            stored_bytes: 1,
            raw_bytes: 2,
            crc: 3,
        };
        assert_eq!(FileHeader::from_bytes(&header.to_bytes()), Ok(header));
        let block = BlockHeader {
            payload_bytes: 1,
            events: 2,
            crc: 3,
            first_ts_ns: 4,
            last_ts_ns: u64::MAX,
            kinds: 6,
        };
        assert_eq!(BlockHeader::from_bytes(&block.to_bytes()), Ok(block));
        let closing = DescriptionHeader { stored_bytes: 1, raw_bytes: 2, crc: 3 };
        assert_eq!(DescriptionHeader::from_bytes(&closing.to_bytes()), Ok(closing));
        for at in 0..CLOSING_HEADER_BYTES {
            let mut bytes = closing.to_bytes();
            bytes[at] ^= 1;
            assert!(DescriptionHeader::from_bytes(&bytes).is_err(), "byte {at}");
        }
        let footer = Footer { index_offset: 1 << 40, index_bytes: 2 };
        assert_eq!(Footer::from_bytes(&footer.to_bytes()), Some(footer));
        for at in 0..BLOCK_HEADER_BYTES {
            let mut bytes = block.to_bytes();
            bytes[at] ^= 1;
            assert!(BlockHeader::from_bytes(&bytes).is_err(), "byte {at}");
        }
        for at in 0..FILE_HEADER_BYTES {
            let mut bytes = header.to_bytes();
            bytes[at] ^= 1;
            assert!(FileHeader::from_bytes(&bytes).is_err(), "byte {at}");
        }
        for at in 0..FOOTER_BYTES {
            let mut bytes = footer.to_bytes();
            bytes[at] ^= 1;
            assert!(Footer::from_bytes(&bytes).is_none(), "byte {at}");
        }
    }
}
