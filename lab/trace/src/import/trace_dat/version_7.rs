//! Reads version 7. Options give the places of sections. Sections and rings may be compressed.

use std::{
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    path::Path,
};

use flate2::read::ZlibDecoder;

use super::{
    CPUS_MAX, Contents, REMEDY, only_filled,
    options::{Options, id},
};
use crate::{
    error::TraceError,
    import::{
        bytes::{Bytes, quoted},
        rings::Place,
        tracing_data::TracingData,
    },
    input::Seekable,
};

/// Largest number of bytes of all options together. A file has some hundred bytes of options per CPU.
const OPTIONS_BYTES_MAX: u64 = 16 << 20;
/// Window of the zstd decoder, as a power of two. trace-cmd uses far smaller windows.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;
/// Flag of a section that is compressed.
const IS_PACKED: u16 = 1;

/// Ids of options that give the place of a section, and ids of these sections.
mod section {
    pub(super) const OPTIONS: u16 = 0;
    pub(super) const BUFFER: u16 = 3;
    pub(super) const HEADER_INFO: u16 = 16;
    pub(super) const EVENT_FORMATS: u16 = 18;
    pub(super) const KALLSYMS: u16 = 19;
}

type File = BufReader<Box<dyn Seekable>>;

/// The program that compressed sections and rings.
#[derive(Clone, Copy)]
enum Packer {
    Zlib,
    Zstd,
}

/// An instance and its clock.
struct Buffer {
    offset: u64,
    clock: String,
    places: Vec<Place>,
}

pub(super) fn read(
    path: &Path,
    mut bytes: Bytes<File>,
    spool_bytes_max: u64,
) -> Result<Contents, TraceError> {
    let packer = match bytes.name()?.as_str() {
        "none" => None,
        "zlib" => Some(Packer::Zlib),
        "zstd" => Some(Packer::Zstd),
        name => {
            return Err(TraceError::file(path, format!("is packed by {}", quoted(name)), REMEDY));
        }
    };
    bytes.name()?;
    let first_options = bytes.u64()?;
    let mut sections = Sections { path, file: bytes.into_source(), packer };

    let (mut options, mut described, mut buffers) = (Options::default(), TracingData::default(), vec![]);
    let mut sections_read = Vec::new();
    for (option, data) in sections.options(first_options)? {
        let mut bytes = Bytes::new(path, first_options, data.as_slice());
        if option >= section::HEADER_INFO {
            if sections_read.contains(&option) {
                return Err(bytes.error(format!("there are two sections {option}")));
            }
            sections_read.push(option);
        }
        match option {
            section::HEADER_INFO => described.read_header(&mut sections.at(bytes.u64()?, option)?.0)?,
            section::EVENT_FORMATS => described.read_events(&mut sections.at(bytes.u64()?, option)?.0)?,
            section::KALLSYMS => described.read_symbols(&mut sections.at(bytes.u64()?, option)?.0)?,
            section::BUFFER => buffers.push(buffer(&mut bytes)?),
            _ => options.note(option, &data),
        }
    }
    let filled: Vec<_> = buffers.into_iter().filter(|buffer| !buffer.places.is_empty()).collect();
    filled.iter().try_for_each(|buffer| options.check_clock(path, Some(&buffer.clock)))?;
    let offset = filled.first().map(|buffer| buffer.offset);
    let places = only_filled(path, filled.into_iter().map(|buffer| buffer.places).collect())?;
    let is_packed = match offset {
        Some(offset) => sections.at(offset, section::BUFFER)?.1,
        None => false,
    };
    if !is_packed {
        return Ok(Contents { described, options, places, file: sections.file.into_inner() });
    }
    let (places, file) = sections.unpack_rings(&places, spool_bytes_max)?;
    Ok(Contents { described, options, places, file })
}

/// Parses the option that describes an instance.
fn buffer(bytes: &mut Bytes<&[u8]>) -> Result<Buffer, TraceError> {
    let offset = bytes.u64()?;
    bytes.name()?;
    let clock = bytes.name()?;
    let _page_bytes = bytes.u32()?;
    let cpus = bytes.u32()?;
    if cpus > CPUS_MAX {
        return Err(bytes.error("there are too many CPUs"));
    }
    let mut places = Vec::new();
    for _ in 0..cpus {
        let cpu = bytes.u32()?;
        let cpu = u16::try_from(cpu).map_err(|_| bytes.error(format!("there is no CPU {cpu}")))?;
        let place = Place { cpu, offset: bytes.u64()?, bytes: bytes.u64()? };
        places.extend((place.bytes > 0).then_some(place));
    }
    Ok(Buffer { offset, clock, places })
}

/// Finds the sections of a file, and decompresses compressed sections.
struct Sections<'path> {
    path: &'path Path,
    file: File,
    packer: Option<Packer>,
}

impl Sections<'_> {
    fn go_to(&mut self, offset: u64) -> Result<(), TraceError> {
        let gone = self.file.seek(SeekFrom::Start(offset));
        gone.map(drop).map_err(|error| TraceError::io(self.path, "seek in", error))
    }

    /// Returns the section at `offset`, which must have id `number`, and whether the section is compressed.
    /// The section of a buffer is not decompressed.
    fn at(&mut self, offset: u64, number: u16) -> Result<(Bytes<Box<dyn BufRead + '_>>, bool), TraceError> {
        self.go_to(offset)?;
        let mut bytes = Bytes::new(self.path, offset, &mut self.file);
        let (found, flags, _name, section_bytes) = (bytes.u16()?, bytes.u16()?, bytes.u32()?, bytes.u64()?);
        if found != number {
            return Err(bytes.error(format!("expected section {number}, found {found}")));
        }
        let is_packed = flags & IS_PACKED != 0;
        if !is_packed || number == section::BUFFER {
            let part: Box<dyn BufRead> = Box::new(bytes.into_source().take(section_bytes));
            return Ok((Bytes::new(self.path, offset, part), is_packed));
        }
        let (packed_bytes, unpacked_bytes) = (bytes.u32()?, bytes.u32()?);
        let Some(packer) = self.packer else {
            return Err(bytes.error("the section is marked as compressed, but the file names no compressor"));
        };
        let unpacked = packer.unpack(bytes.into_source().take(packed_bytes.into()));
        let unpacked = unpacked.map_err(|error| TraceError::io(self.path, "unpack", error))?;
        let part: Box<dyn BufRead> = Box::new(BufReader::new(unpacked.take(unpacked_bytes.into())));
        Ok((Bytes::unpacked(self.path, offset, part), true))
    }

    /// Reads all options. The first section of options is at `offset`.
    fn options(&mut self, offset: u64) -> Result<Vec<(u16, Vec<u8>)>, TraceError> {
        let (mut options, mut next, mut all_bytes) = (Vec::new(), offset, 0_u64);
        while next != 0 {
            let (mut bytes, _) = self.at(next, section::OPTIONS)?;
            next = loop {
                let (option, option_bytes) = (bytes.u16()?, bytes.u32()?);
                if option == id::DONE {
                    let later = bytes.u64()?;
                    if later != 0 && later <= next {
                        return Err(bytes.error("a section of options refers back to itself"));
                    }
                    break later;
                }
                // Count the header of each option too.
                all_bytes = all_bytes.saturating_add(6 + u64::from(option_bytes));
                if all_bytes > OPTIONS_BYTES_MAX {
                    return Err(bytes.error("there are too many options"));
                }
                if is_of_interest(option) {
                    options.push((option, bytes.blob(option_bytes.into())?));
                } else {
                    bytes.skip(option_bytes.into())?;
                }
            };
        }
        Ok(options)
    }

    /// Decompresses rings into an unlinked temporary file of at most `bytes_max` bytes.
    fn unpack_rings(
        &mut self,
        places: &[Place],
        bytes_max: u64,
    ) -> Result<(Vec<Place>, Box<dyn Seekable>), TraceError> {
        let temporary = std::env::temp_dir();
        let refused = |error| TraceError::io(&temporary, "write a file in", error);
        let mut spool = tempfile::tempfile().map_err(refused)?;
        let (mut unpacked, mut offset) = (Vec::new(), 0_u64);
        for place in places {
            let end = self.unpack_ring(place, &mut spool, offset, bytes_max)?;
            unpacked.push(Place { offset, bytes: end - offset, ..*place });
            offset = end;
        }
        spool.flush().map_err(refused)?;
        Ok((unpacked, Box::new(spool)))
    }

    /// Decompresses the chunks of a ring, and appends them to `spool`, which has `spooled` bytes. Returns the
    /// new length of `spool`.
    fn unpack_ring(
        &mut self,
        place: &Place,
        spool: &mut impl Write,
        mut spooled: u64,
        bytes_max: u64,
    ) -> Result<u64, TraceError> {
        self.go_to(place.offset)?;
        // The ring's length does not include the field with the number of chunks, as files of trace-cmd 3.1.6
        // show.
        let ring_bytes = place.bytes.saturating_add(4);
        let mut bytes = Bytes::new(self.path, place.offset, (&mut self.file).take(ring_bytes));
        let Some(packer) = self.packer else {
            return Err(bytes.error("the ring is marked as compressed, but the file names no compressor"));
        };
        for _ in 0..bytes.u32()? {
            let (packed_bytes, unpacked_bytes) = (bytes.u32()?, bytes.u32()?);
            if spooled + u64::from(unpacked_bytes) > bytes_max {
                let problem = format!("unpacks to more than {bytes_max} bytes");
                return Err(TraceError::file(self.path, problem, "raise the limit of the spool"));
            }
            let copied = bytes.part(packed_bytes.into(), |part| {
                let mut chunk = packer.unpack(part)?.take(unpacked_bytes.into());
                io::copy(&mut chunk, spool)
            })?;
            if copied != u64::from(unpacked_bytes) {
                return Err(bytes.error("a part of a ring unpacks to less than it should"));
            }
            spooled += copied;
        }
        Ok(spooled)
    }
}

impl Packer {
    fn unpack<'source>(self, source: impl BufRead + 'source) -> io::Result<Box<dyn Read + 'source>> {
        Ok(match self {
            Self::Zlib => Box::new(ZlibDecoder::new(source)),
            Self::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(source)?.single_frame();
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
                Box::new(decoder)
            }
        })
    }
}

/// Whether this crate uses an option. The reader skips all other options, because they may be large.
const fn is_of_interest(option: u16) -> bool {
    matches!(
        option,
        id::CPU_STATS
            | id::BUFFER
            | id::CLOCK
            | id::UNAME
            | id::CPU_COUNT
            | section::HEADER_INFO
            | section::EVENT_FORMATS
            | section::KALLSYMS
    )
}
