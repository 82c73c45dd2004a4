//! Reads compressed files that end early or are damaged. The reader delivers all events before the damage,
//! and reports that events are lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::amount::Amount;
use crate::error::TraceError;
use crate::event::Event;
use crate::info::{LostEvents, TraceInfo};
use crate::reader::TraceReader;

/// A reader of a file that ends early or is damaged. After the reader has reached the damage, its losses
/// include a gap of unknown size.
pub(crate) struct CutReader {
    pub(crate) reader: Box<dyn TraceReader>,
    pub(crate) is_cut: Arc<AtomicBool>,
}

impl TraceReader for CutReader {
    fn info(&self) -> &TraceInfo {
        self.reader.info()
    }

    fn amount(&self) -> Amount {
        self.reader.amount()
    }

    fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError> {
        self.reader.read_block(events)
    }

    fn has_ticks(&mut self, progress: &mut dyn FnMut()) -> Result<bool, TraceError> {
        self.reader.has_ticks(progress)
    }

    fn lost(&self) -> LostEvents {
        let lost = self.reader.lost();
        let cuts = u64::from(self.is_cut.load(Ordering::Relaxed));
        LostEvents { gaps_of_unknown_size: lost.gaps_of_unknown_size.saturating_add(cuts), ..lost }
    }

    fn seek_ns(&mut self, ts_ns: u64) -> Result<(), TraceError> {
        self.reader.seek_ns(ts_ns)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::Path;

    use super::*;
    use crate::damage::Strictness;
    use crate::opening::OpenOptions;

    /// Makes a text of ftrace with this number of events.
    fn text(events: u32) -> Vec<u8> {
        let mut text = b"# tracer: nop\n#\n".to_vec();
        for number in 0..events {
            // Use different page numbers in all lines, so that compression does not shorten the text too
            // much.
            let pfn = number.wrapping_mul(2_654_435_761) >> 8;
            writeln!(
                text,
                "  load-7 [000] .... 1.{number:06}: mm_page_free: page=0x{pfn:x} pfn=0x{pfn:x} order=0"
            )
            .unwrap();
        }
        text
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn read(packed: Vec<u8>, strictness: Strictness) -> Result<(usize, LostEvents), TraceError> {
        let mut reader = OpenOptions::new().strictness(strictness).open_bytes(Path::new("t.txt"), packed)?;
        let (mut block, mut events) = (Vec::new(), 0);
        loop {
            match reader.read_block(&mut block)? {
                0 => return Ok((events, reader.lost())),
                count => events += count,
            }
        }
    }

    #[test]
    fn a_cut_packed_text_is_an_error_or_is_read_up_to_the_cut() {
        let text = text(20_000);
        for pack in [gzip, |bytes: &[u8]| zstd::stream::encode_all(bytes, 3).unwrap()] {
            let packed = pack(&text);
            let half = packed[..packed.len() / 2].to_vec();
            let error = read(half.clone(), Strictness::Strict).unwrap_err().to_string();
            assert!(error.contains("damaged, truncated") && error.contains("leniently"), "{error}");
            let (events, lost) = read(half, Strictness::Lenient).unwrap();
            assert!((1000..20_000).contains(&events), "{events} events");
            assert_eq!(lost.gaps_of_unknown_size, 1);
            let (events, lost) = read(packed, Strictness::Lenient).unwrap();
            assert_eq!((events, lost.gaps_of_unknown_size), (20_000, 0));
        }
    }

    #[test]
    fn what_is_cut_before_its_first_event_is_still_an_error() {
        let packed = gzip(&text(20_000));
        read(packed[..12].to_vec(), Strictness::Lenient).unwrap_err();
    }
}
