//! Parses lines of a text on several threads and delivers them in order.
//!
//! One thread reads and decompresses, and cuts the bytes into chunks of whole lines. Several other threads
//! parse chunks, each chunk independently of the other chunks. The caller receives the chunks in order, and
//! handles all lines whose meaning depends on earlier lines. Only a few chunks exist at a time, so memory is
//! bounded.

use std::io::{self, Read as _};
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::flags::Legend;
use super::lines::LINE_BYTES_MAX;
use crate::packing::ByteStream;
use crate::workers;

/// Number of bytes that one read of the text asks for.
const CHUNK_BYTES: usize = 256 << 10;
/// Maximum number of parsing threads. More threads would not help, because reading and the caller's work
/// limit the speed.
const PARSERS_MAX: usize = 8;

/// The bytes of whole lines of a text, before they are parsed.
#[derive(Debug, Default)]
pub(super) struct Raw {
    pub(super) bytes: Vec<u8>,
    /// Whether the last line has no line end, so that the file may be cut off.
    pub(super) is_unfinished: bool,
    /// Whether a line was longer than the limit, and was skipped. A chunk for a line that was too long is
    /// empty.
    pub(super) is_too_long: bool,
}

/// Lines, the legend for their flag columns, and the result of parsing the lines under this legend.
pub(super) struct Chunk<T> {
    pub(super) raw: Raw,
    pub(super) legend: Legend,
    pub(super) parsed: T,
}

type Place<T> = io::Result<Receiver<Chunk<T>>>;

/// Chunks in the order of the text.
pub(super) struct Chunks<T> {
    places: Receiver<Place<T>>,
    legend: Arc<Mutex<Legend>>,
}

impl<T: Send + 'static> Chunks<T> {
    /// Starts the threads. `parser` makes the parser of each thread.
    ///
    /// # Errors
    /// An error if the system cannot start threads.
    pub(super) fn begin<P: FnMut(&Raw, &Legend) -> T + Send + 'static>(
        stream: Box<dyn ByteStream>,
        legend: Legend,
        parser: impl Fn() -> P,
    ) -> io::Result<Self> {
        let parsers = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(PARSERS_MAX);
        let (to_parse, queue) = sync_channel::<(Raw, SyncSender<Chunk<T>>)>(parsers);
        let (place, places) = sync_channel(2 * parsers);
        let queue = Arc::new(Mutex::new(queue));
        let legend = Arc::new(Mutex::new(legend));
        for _ in 0..parsers {
            let (legend, mut parse) = (Arc::clone(&legend), parser());
            workers::start("parse", &queue, move |raw| {
                let legend = *legend.lock().unwrap_or_else(PoisonError::into_inner);
                let parsed = parse(&raw, &legend);
                Chunk { raw, legend, parsed }
            })?;
        }
        thread::Builder::new().name("read".to_owned()).spawn(move || {
            let ended = cut(stream, |raw| {
                let (sender, receiver) = sync_channel(1);
                place.send(Ok(receiver)).is_ok() && to_parse.send((raw, sender)).is_ok()
            });
            if let Err(error) = ended {
                drop(place.send(Err(error)));
            }
        })?;
        Ok(Self { places, legend })
    }

    /// The next chunk; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Chunk<T>>> {
        let Ok(place) = self.places.recv() else { return Ok(None) };
        // If a parser's thread has ended here, the thread has panicked and printed a message.
        place?.recv().map(Some).map_err(|_| io::Error::other("a thread that parses lines has ended"))
    }

    /// Sets the legend for chunks that are parsed from now on. Chunks that were parsed before this call may
    /// have been parsed under another legend.
    pub(super) fn note(&self, legend: Legend) {
        *self.legend.lock().unwrap_or_else(PoisonError::into_inner) = legend;
    }
}

/// Reads a stream and passes on chunks of whole lines, until `give` returns false.
fn cut(mut stream: Box<dyn ByteStream>, mut give: impl FnMut(Raw) -> bool) -> io::Result<()> {
    let (mut tail, mut is_passing_over) = (Vec::new(), false);
    loop {
        // Reserve memory without clearing it, because `read_to_end` needs no cleared memory.
        let mut bytes = Vec::with_capacity(tail.len() + CHUNK_BYTES);
        bytes.append(&mut tail);
        let before = bytes.len();
        let read = stream.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut bytes);
        if read.is_ok() && bytes.len() == before {
            if is_passing_over {
                give(Raw { is_too_long: true, ..Raw::default() });
            } else if !bytes.is_empty() {
                give(Raw { bytes, is_unfinished: true, ..Raw::default() });
            }
            return Ok(());
        }
        if is_passing_over {
            let Some(end) = memchr::memchr(b'\n', &bytes) else {
                read?;
                continue;
            };
            bytes.drain(..=end);
            is_passing_over = false;
            if !give(Raw { is_too_long: true, ..Raw::default() }) {
                return Ok(());
            }
        }
        let end = memchr::memrchr(b'\n', &bytes).map_or(0, |end| end + 1);
        tail.extend(&bytes[end..]);
        bytes.truncate(end);
        if !bytes.is_empty() && !give(Raw { bytes, ..Raw::default() }) {
            return Ok(());
        }
        read?;
        if tail.len() > LINE_BYTES_MAX {
            tail.clear();
            is_passing_over = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, ErrorKind, Read};

    use super::*;

    /// A stream that returns at most a given number of bytes per read. After its last byte, the stream
    /// returns an error if one is given.
    struct Drip(Cursor<Vec<u8>>, usize, Option<ErrorKind>);

    impl Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = buffer.len().min(self.1);
            match self.0.read(&mut buffer[..length])? {
                0 => self.2.map_or(Ok(0), |kind| Err(kind.into())),
                count => Ok(count),
            }
        }
    }

    fn lines(stream: impl ByteStream + 'static) -> (Vec<u8>, usize, bool, Option<ErrorKind>) {
        let parse = || |raw: &Raw, _: &Legend| raw.bytes.clone();
        let mut chunks = Chunks::begin(Box::new(stream), Legend::default(), parse).unwrap();
        let (mut all, mut too_long, mut is_unfinished) = (Vec::new(), 0, false);
        loop {
            match chunks.next() {
                Ok(Some(Chunk { raw, parsed, .. })) => {
                    assert_eq!(raw.bytes, parsed);
                    all.extend(parsed);
                    too_long += usize::from(raw.is_too_long);
                    is_unfinished = raw.is_unfinished;
                }
                Ok(None) => return (all, too_long, is_unfinished, None),
                Err(error) => return (all, too_long, is_unfinished, Some(error.kind())),
            }
        }
    }

    #[test]
    fn lines_keep_their_order_however_they_are_read() {
        let text: Vec<u8> = (0..200_000).flat_map(|at| format!("{at}\n").into_bytes()).collect();
        for piece in [4096, CHUNK_BYTES + 1] {
            assert_eq!(lines(Drip(Cursor::new(text.clone()), piece, None)), (text.clone(), 0, false, None));
        }
        assert_eq!(lines(Drip(Cursor::new(text[..100].to_vec()), 1, None)).0, text[..100]);
        assert_eq!(lines(Cursor::new(text.clone())), (text, 0, false, None));
        assert_eq!(lines(Cursor::new(b"a\nb".to_vec())), (b"a\nb".to_vec(), 0, true, None));
        assert_eq!(lines(Cursor::new(Vec::new())), (Vec::new(), 0, false, None), "no chunk");
    }

    /// Tests lines that lie across the border of two chunks, and lines that end at this border.
    #[test]
    fn lines_at_the_border_of_chunks_are_whole() {
        for before in [CHUNK_BYTES - 9, CHUNK_BYTES - 2, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1] {
            for end in ["\n", "\r\n", ""] {
                let text = format!("{}\nline{end}", "short\n".repeat(CHUNK_BYTES)[..before].to_owned());
                let expected = (text.clone().into_bytes(), 0, end.is_empty(), None);
                assert_eq!(lines(Cursor::new(text.into_bytes())), expected);
            }
        }
    }

    #[test]
    fn what_stands_before_an_error_is_read() {
        let read = lines(Drip(Cursor::new(b"a\nb\nc".to_vec()), 2, Some(ErrorKind::UnexpectedEof)));
        assert_eq!(read, (b"a\nb\n".to_vec(), 0, false, Some(ErrorKind::UnexpectedEof)));
    }

    #[test]
    fn lines_above_the_limit_are_passed_over_in_bounded_memory() {
        let long = vec![b'x'; 2 << 20];
        let text = [b"a\n", long.as_slice(), b"\nb\n"].concat();
        assert_eq!(lines(Cursor::new(text)), (b"a\nb\n".to_vec(), 1, false, None));
        assert_eq!(lines(Cursor::new(long)).1, 1, "expected the last line to end where the text ends");
    }

    #[test]
    fn dropping_the_reader_ends_the_threads() {
        struct Endless;
        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                buffer.fill(b'\n');
                Ok(buffer.len())
            }
        }
        struct Alive(Arc<()>);
        let alive = Arc::new(());
        let parse = || {
            let alive = Alive(Arc::clone(&alive));
            move |_: &Raw, _: &Legend| drop(Arc::clone(&alive.0))
        };
        let mut chunks = Chunks::begin(Box::new(Endless), Legend::default(), parse).unwrap();
        chunks.next().unwrap().unwrap();
        drop(chunks);
        while Arc::strong_count(&alive) > 1 {
            thread::yield_now();
        }
    }
}
