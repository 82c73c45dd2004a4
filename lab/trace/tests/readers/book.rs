//! Tests the worked example in the book's chapter on the file. The dump in the example must be readable, and
//! must equal the file that this crate writes.

use pageset_trace::{Event, EventKind, LostEvents, NativeWriter, OpenOptions, TraceInfo, WriteOptions};

use crate::bundled::all;

/// The two events of the example.
fn events() -> [Event; 2] {
    let alloc = Event {
        pfn: 0x12_1c27,
        gfp: 0x14_0cca,
        pid: 1458,
        migratetype: 1,
        ..Event::new(EventKind::MmPageAlloc, 5_000, 1)
    };
    let free = Event { pfn: 0x12_1c27, pid: 1458, preempt: 1, ..Event::new(EventKind::MmPageFree, 5_900, 1) };
    [alloc, free]
}

fn written() -> Vec<u8> {
    let info = TraceInfo { name: Some("example".into()), ..TraceInfo::default() };
    let mut writer = NativeWriter::new(Vec::new(), &info, WriteOptions::new()).expect("memory");
    writer.write(&events()).expect("memory");
    writer.finish(LostEvents::default()).expect("memory").0
}

/// Makes a dump as `xxd -g1` prints it, without the column of text.
fn dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (row, bytes) in bytes.chunks(16).enumerate() {
        text.push_str(&format!("{:08x}:", row * 16));
        for byte in bytes {
            text.push_str(&format!(" {byte:02x}"));
        }
        text.push('\n');
    }
    text
}

#[test]
fn the_dump_in_the_book_is_the_file() {
    let chapter = std::fs::read_to_string(crate::bundled::path("../docs/book/src/trace-format.md"))
        .expect("the chapter");
    let in_book: Vec<u8> = chapter
        .lines()
        .filter_map(|line| line.split_once(": ").filter(|(offset, _)| offset.len() == 8))
        .filter(|(offset, _)| u32::from_str_radix(offset, 16).is_ok())
        .flat_map(|(_, bytes)| {
            bytes.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("hex"))
        })
        .collect();
    let written = written();
    let mut reader = OpenOptions::new()
        .open_bytes("book.pgtrace".as_ref(), in_book.clone())
        .unwrap_or_else(|error| panic!("{error}; the dump should be\n{}", dump(&written)));
    assert_eq!(all(reader.as_mut()), events());
    assert_eq!(reader.info().name.as_deref(), Some("example"));
    // Do not compare the bytes of the description and the offsets, because another version of the compressor
    // may change these bytes and offsets. The block is too small to be compressed, so its bytes must not
    // change.
    let block = |bytes: &[u8]| {
        let start = bytes.windows(4).position(|window| window == b"PGBK").expect("a block");
        let end = bytes.windows(4).position(|window| window == b"PGIX").expect("an index");
        bytes[start..end].to_vec()
    };
    assert_eq!(dump(&block(&in_book)), dump(&block(&written)));
}
