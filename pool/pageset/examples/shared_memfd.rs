//! Shares a pool between two processes. The parent allocates and fills pages. The child (this program again)
//! finds the pages by their offset in the pool's file. `cargo run --release -p pageset --example
//! shared_memfd`

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::process::Command;

use pageset::{Backing, Order, Pool};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let [path, offset] = &arguments[..] {
        return child(path, offset.parse()?);
    }
    let pool = Pool::builder().size(16 << 20).backing(Backing::Memfd).build()?;
    let mut pages = pool.alloc(Order::new(4).ok_or("an order")?)?;
    pages[..5].copy_from_slice(b"hello");

    // A daemon would pass the descriptor over a socket. In this example, the child opens the file through
    // /proc. SAFETY: the child writes only while this process waits for it, with no reference to the pages.
    let fd = unsafe { pool.memfd() }.ok_or("a memfd")?.as_raw_fd();
    let path = format!("/proc/{}/fd/{fd}", std::process::id());
    let this = std::env::current_exe()?;
    let status = Command::new(this).arg(path).arg(pages.offset().to_string()).status()?;
    assert!(status.success());
    println!("parent reads: {}", String::from_utf8_lossy(&pages[..7]));
    Ok(())
}

fn child(path: &str, offset: u64) -> Result<(), Box<dyn std::error::Error>> {
    let file = File::options().read(true).write(true).open(path)?;
    let mut bytes = [0; 5];
    file.read_exact_at(&mut bytes, offset)?;
    println!("child reads: {}", String::from_utf8_lossy(&bytes));
    file.write_all_at(b"goodbye", offset)?;
    Ok(())
}
