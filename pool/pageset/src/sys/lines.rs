//! Reads a file line by line, without allocating on the heap.

use std::fs::File;
use std::io::{self, Read};

/// The most bytes of a line that `show` gets. Only lines with file names can be longer than 8192 bytes.
const LINE_BYTES: usize = 8192;

/// Passes the lines of a file to `show`. Cuts each line at its first byte that is not UTF-8, and after
/// [`LINE_BYTES`].
///
/// # Errors
/// The system's error.
pub(crate) fn for_each(path: &str, show: impl FnMut(&str)) -> io::Result<()> {
    for_each_of(File::open(path)?, show)
}

fn for_each_of(mut file: impl Read, mut show: impl FnMut(&str)) -> io::Result<()> {
    let mut buffer = [0; LINE_BYTES];
    let mut filled = 0;
    // Whether `show` already has the beginning of the current line. If `show` has it, the rest of the current
    // line is skipped.
    let mut is_rest = false;
    loop {
        let read = match file.read(&mut buffer[filled..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            outcome => outcome?,
        };
        filled += read;
        let mut start = 0;
        while let Some(length) = buffer[start..filled].iter().position(|byte| *byte == b'\n') {
            if !std::mem::take(&mut is_rest) {
                show(text_of(&buffer[start..start + length]));
            }
            start += length + 1;
        }
        buffer.copy_within(start..filled, 0);
        filled -= start;
        if filled == buffer.len() || read == 0 {
            if filled > 0 && !is_rest {
                show(text_of(&buffer[..filled]));
            }
            is_rest = true;
            filled = 0;
        }
        if read == 0 {
            return Ok(());
        }
    }
}

/// The UTF-8 text at the beginning of the bytes.
fn text_of(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns only a few bytes at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            // Miri takes a thousand times as long, so the reader returns more bytes at a time under miri.
            let count = to.len().min(if cfg!(miri) { 700 } else { 7 });
            (&mut self.0).read(&mut to[..count])
        }
    }

    #[test]
    fn every_line_is_shown_once_however_long_it_is() {
        let long = "x".repeat(LINE_BYTES * 2 + 5);
        let text = format!("first\n\n{long}\nlast but one\nlast");
        for file in [&mut Slow(text.as_bytes()) as &mut dyn Read, &mut text.as_bytes()] {
            let mut lines = Vec::new();
            for_each_of(file, |line| lines.push(line.to_owned())).unwrap();
            assert_eq!(lines, ["first", "", &long[..LINE_BYTES], "last but one", "last"]);
        }
        let mut lines = Vec::new();
        for_each_of(&b"/a\xffb\n"[..], |line| lines.push(line.to_owned())).unwrap();
        assert_eq!(lines, ["/a"]);
    }
}
