//! One column of a block. The bytes of a column are stored as one repeated value, plainly, or compressed.
//!
//! Numbers are split into byte planes: all lowest bytes, then all second bytes, and so on. Usually all bytes
//! of a high plane are equal, so the plane takes almost no bytes. In the planes of lower bytes, similar bytes
//! are together, which helps the compressor. The book's chapter on the file has sizes and speeds.

use zstd::bulk::{Compressor, Decompressor};

/// The code of a column whose bytes are stored plainly.
const CODEC_PLAIN: u8 = 0;
const CODEC_CONSTANT: u8 = 1;
const CODEC_ZSTD: u8 = 2;

/// Appends `raw` to `out`: codec, stored length, stored bytes. The reader knows the raw length, so it is not
/// stored.
pub(super) fn write(out: &mut Vec<u8>, raw: &[u8], compressor: &mut Compressor<'_>) -> std::io::Result<()> {
    if let Some(first) = raw.first()
        && raw.iter().all(|byte| byte == first)
    {
        out.push(CODEC_CONSTANT);
        out.extend(1_u32.to_le_bytes());
        out.push(*first);
        return Ok(());
    }
    let packed = compressor.compress(raw)?;
    let (codec, stored) =
        if packed.len() < raw.len() { (CODEC_ZSTD, &packed[..]) } else { (CODEC_PLAIN, raw) };
    out.push(codec);
    out.extend((stored.len() as u32).to_le_bytes());
    out.extend(stored);
    Ok(())
}

/// Takes columns from the front of a payload.
pub(super) struct Columns<'payload> {
    pub(super) rest: &'payload [u8],
}

/// A column: one byte that is repeated, or a slice of all bytes.
pub(super) enum Column<'a> {
    /// All bytes of the column have this value.
    Constant(u8),
    /// The bytes.
    Bytes(&'a [u8]),
}

impl Columns<'_> {
    /// Returns the next column, which has `raw_bytes` bytes. A compressed column is decompressed into
    /// `scratch`.
    pub(super) fn next<'s>(
        &mut self,
        raw_bytes: usize,
        scratch: &'s mut Vec<u8>,
        decompressor: &mut Decompressor<'_>,
    ) -> Result<Column<'s>, &'static str>
    where
        Self: 's,
    {
        let Some((&[codec, a, b, c, d], rest)) = self.rest.split_first_chunk() else {
            return Err("a column's header is cut off");
        };
        let stored_bytes = u32::from_le_bytes([a, b, c, d]) as usize;
        if stored_bytes > rest.len() {
            return Err("a column is cut off");
        }
        let (stored, rest) = rest.split_at(stored_bytes);
        self.rest = rest;
        match codec {
            CODEC_CONSTANT => match stored {
                [byte] => Ok(Column::Constant(*byte)),
                _ => Err("a constant column does not have one byte"),
            },
            CODEC_PLAIN if stored_bytes == raw_bytes => {
                scratch.clear();
                scratch.extend(stored);
                Ok(Column::Bytes(scratch))
            }
            CODEC_PLAIN => Err("a plain column has the wrong length"),
            CODEC_ZSTD => {
                scratch.resize(raw_bytes, 0);
                match decompressor.decompress_to_buffer(stored, &mut scratch[..]) {
                    Ok(count) if count == raw_bytes => Ok(Column::Bytes(scratch)),
                    Ok(_) => Err("a compressed column has the wrong length"),
                    Err(_) => Err("a compressed column cannot be unpacked"),
                }
            }
            _ => Err("a column has an unknown codec"),
        }
    }
}

/// Writes `values` as eight byte planes.
pub(super) fn write_planes(
    out: &mut Vec<u8>,
    values: &[u64],
    compressor: &mut Compressor<'_>,
) -> std::io::Result<()> {
    let mut plane = Vec::with_capacity(values.len());
    for shift in (0..64).step_by(8) {
        plane.clear();
        plane.extend(values.iter().map(|value| (value >> shift) as u8));
        write(out, &plane, compressor)?;
    }
    Ok(())
}

/// Reads eight byte planes into `values`. The length of `values` is the length of the column.
pub(super) fn read_planes(
    columns: &mut Columns<'_>,
    values: &mut [u64],
    scratch: &mut Vec<u8>,
    decompressor: &mut Decompressor<'_>,
) -> Result<(), &'static str> {
    values.fill(0);
    for shift in (0..64).step_by(8) {
        match columns.next(values.len(), scratch, decompressor)? {
            Column::Constant(0) => {}
            Column::Constant(byte) => {
                let bits = u64::from(byte) << shift;
                values.iter_mut().for_each(|value| *value |= bits);
            }
            Column::Bytes(bytes) => {
                for (value, byte) in values.iter_mut().zip(bytes) {
                    *value |= u64::from(*byte) << shift;
                }
            }
        }
    }
    Ok(())
}

/// Maps a signed difference to an unsigned number. A difference near 0, positive or negative, becomes a small
/// number.
pub(super) const fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ ((difference as i64 >> 63) as u64)
}

/// Undoes [`zigzag`].
pub(super) const fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> (Compressor<'static>, Decompressor<'static>) {
        (Compressor::new(3).unwrap(), Decompressor::new().unwrap())
    }

    #[test]
    fn planes_survive() {
        let (mut compressor, mut decompressor) = tools();
        for values in [
            vec![],
            vec![0],
            vec![u64::MAX, 0, 1],
            vec![5; 1000],
            (0..5000_u64).map(|value| value.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect(),
        ] {
            let mut out = Vec::new();
            write_planes(&mut out, &values, &mut compressor).unwrap();
            let mut back = vec![1; values.len()];
            let mut columns = Columns { rest: &out };
            read_planes(&mut columns, &mut back, &mut Vec::new(), &mut decompressor).unwrap();
            assert_eq!(back, values);
            assert!(columns.rest.is_empty());
        }
    }

    #[test]
    fn damaged_columns_are_errors() {
        let (mut compressor, mut decompressor) = tools();
        let raw: Vec<u8> = (0..200_u8).chain(0..200).collect();
        let mut out = Vec::new();
        write(&mut out, &raw, &mut compressor).unwrap();
        let mut scratch = Vec::new();
        for cut in 0..out.len() {
            let mut columns = Columns { rest: &out[..cut] };
            assert!(columns.next(raw.len(), &mut scratch, &mut decompressor).is_err(), "cut at {cut}");
        }
        for wrong in [0, 1, raw.len() - 1, raw.len() + 1] {
            let mut columns = Columns { rest: &out };
            assert!(columns.next(wrong, &mut scratch, &mut decompressor).is_err(), "{wrong} bytes");
        }
    }

    #[test]
    fn zigzag_is_undone() {
        for value in [0, 1, 2, u64::MAX, 1 << 63, (1 << 63) - 1, 12345] {
            assert_eq!(unzigzag(zigzag(value)), value);
        }
        assert_eq!(zigzag(u64::MAX), 1);
    }
}
