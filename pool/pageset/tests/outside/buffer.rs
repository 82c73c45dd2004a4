//! Tests `PageBuffer`: pages together with the number of their bytes in use.

use std::io::{ErrorKind, Read as _, Write as _};

use pageset::{Order, PAGE_BYTES, PageBuffer, Pool};

fn pool() -> Pool {
    Pool::builder().size(8 << 20).build().expect("8 MiB can be had")
}

#[test]
fn a_buffer_shows_the_bytes_in_use_and_takes_more_until_the_pages_end() {
    let pool = pool();
    let mut buffer = PageBuffer::new(pool.alloc_exact(3).expect("it is empty"), 0);
    assert_eq!((buffer.len(), buffer.capacity(), buffer.unused().len()), (0, 3 * PAGE_BYTES, 3 * PAGE_BYTES));
    buffer.write_all(b"head").expect("there is room");
    let count = (&[7_u8; 5000][..]).read(buffer.unused()).expect("a slice can be read");
    buffer.set_len(buffer.len() + count);
    assert_eq!((buffer.len(), &buffer[..4], buffer[4], buffer[5003]), (5004, &b"head"[..], 7, 7));
    assert_eq!(
        buffer.write_all(&[1; 3 * PAGE_BYTES]).map_err(|error| error.kind()),
        Err(ErrorKind::WriteZero)
    );
    assert_eq!((buffer.len(), buffer.unused().len()), (buffer.capacity(), 0));
    buffer.set_len(4);
    assert_eq!(buffer.as_ref(), b"head");
    let pages = buffer.into_pages();
    assert_eq!((pages.page_count(), pages[5004]), (3, 1), "the bytes stay");
    drop(pages);
    assert_eq!(pool.stats().nr_used, 0);
}

#[test]
#[should_panic(expected = "4097 bytes in pages of 4096")]
fn more_bytes_than_the_pages_have_are_refused() {
    let pool = pool();
    drop(PageBuffer::new(pool.alloc(Order::ZERO).expect("it is empty"), PAGE_BYTES + 1));
}
