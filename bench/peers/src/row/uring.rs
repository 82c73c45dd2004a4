//! Reads and writes of a file through io_uring, in a block of its own for each request.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::time::Instant;

use io_uring::{IoUring, opcode, squeue, types};

use super::{EXHAUSTED, NOT_HERE};
use crate::batches;
use crate::effort::Effort;
use crate::shuffle::Random;
use crate::target::{Held as _, Line, PAGE, Target};
use crate::team;

/// Bytes of the file.
const FILE: usize = 64 << 20;
/// Requests under way.
const DEPTH: usize = 16;
/// Requests are of 4 to 128 KiB: orders 0 to 5.
const ORDERS: u32 = 6;
/// Requests of each order in a pass.
const REQUESTS: usize = 160;

/// Whether requests read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    order: u32,
    /// The first page in the file.
    page: usize,
}

impl Request {
    const fn bytes(self) -> usize {
        PAGE << self.order
    }
}

/// A request that the kernel has not answered.
struct Live<B> {
    request: Request,
    block: B,
}

struct Client<'t, T: Target> {
    target: &'t T,
    cpu: usize,
    direction: Direction,
    file: File,
    ring: IoUring,
    /// Whether the target's memory is the ring's buffer number 0.
    is_registered: bool,
    /// The requests under way. After a panic, these requests keep their blocks, because the kernel may still
    /// use them.
    live: ManuallyDrop<[Option<Live<T::Block>>; DEPTH]>,
    /// Free places of `live`.
    idle: Vec<usize>,
}

/// Nanoseconds for each request.
pub(super) fn run<T: Target>(target: &T, direction: Direction, effort: &Effort) -> Result<Vec<f64>, String> {
    team::run(1, |member| {
        let (ring, is_registered) =
            ring(target).map_err(|error| format!("{NOT_HERE}: a ring with the target's memory: {error}"))?;
        let file = file().map_err(|error| format!("no file in the temporary directory: {error}"))?;
        target.attach(member.cpu);
        let mut client = Client {
            target,
            cpu: member.cpu,
            direction,
            file,
            ring,
            is_registered,
            live: ManuallyDrop::new([const { None }; DEPTH]),
            idle: (0..DEPTH).collect(),
        };
        let requests = requests(&mut Random::new(10 + effort.seed));
        let cost = batches::passes(effort.budget, effort.passes, || client.pass(&requests));
        if direction == Direction::Write {
            client.check_written(&requests);
        }
        target.detach(member.cpu);
        if is_registered {
            // After a ring is closed, its memory may count against `ulimit -l` for a while. So the ring lets
            // go of the memory here, before the next child registers its own.
            client.ring.submitter().unregister_buffers().expect("they are registered");
        }
        Ok(vec![cost])
    })
    .swap_remove(0)
}

/// A ring, and whether it knows the target's memory.
fn ring<T: Target>(target: &T) -> io::Result<(IoUring, bool)> {
    let ring = IoUring::new(DEPTH as u32)?;
    let Some(memory) = target.memory() else { return Ok((ring, false)) };
    let buffer = libc::iovec { iov_base: memory.cast(), iov_len: memory.len() };
    // SAFETY: the memory stays mapped until the process ends. The kernel uses the parts of it that requests
    // name, and no others.
    unsafe { ring.submitter().register_buffers(&[buffer]) }?;
    Ok((ring, true))
}

/// A file without a name, whose pages are in the page cache. Each begins with a byte of its own.
fn file() -> io::Result<File> {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("pageset-peers-{}-{count}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    let mut content = vec![0; FILE];
    content.chunks_exact_mut(PAGE).enumerate().for_each(|(page, bytes)| bytes[0] = mark(page));
    file.write_all_at(&content, 0)?;
    Ok(file)
}

/// The first byte of this page of the file. No page begins with 1, which `touch` writes.
const fn mark(page: usize) -> u8 {
    (page % 251) as u8 + 2
}

/// Equally many requests of each order in random order, each at a multiple of its size.
fn requests(random: &mut Random) -> Vec<Request> {
    let mut requests: Vec<_> = (0..ORDERS)
        .flat_map(|order| (0..REQUESTS).map(move |_| order))
        .map(|order| Request { order, page: random.below((FILE / PAGE) >> order) << order })
        .collect();
    random.shuffle(&mut requests);
    requests
}

impl<T: Target> Client<'_, T> {
    /// Makes all requests, and returns the nanoseconds for each.
    fn pass(&mut self, requests: &[Request]) -> f64 {
        let start = Instant::now();
        let mut waiting = requests.iter();
        loop {
            for request in waiting.by_ref().take(self.idle.len()) {
                self.begin(*request);
            }
            if self.idle.len() == DEPTH {
                return start.elapsed().as_nanos() as f64 / requests.len() as f64;
            }
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => drop(outcome.expect("the ring takes requests")),
            }
            self.finish();
        }
    }

    /// Allocates a block and queues a request with it. Before a write, each page of the block is touched.
    fn begin(&mut self, request: Request) {
        let place = self.idle.pop().expect("no more requests than places");
        let mut block = self.target.alloc(self.cpu, request.order).expect(EXHAUSTED);
        if self.direction == Direction::Write {
            block.touch(request.order, Line::First);
        }
        let entry = self.entry(request, block.start()).user_data(place as u64);
        self.live[place] = Some(Live { request, block });
        // SAFETY: the block has the request's length, and stays in `live` until the kernel has answered.
        unsafe { self.ring.submission().push(&entry) }.expect("there is an entry for each place");
    }

    fn entry(&self, request: Request, start: *mut u8) -> squeue::Entry {
        let file = types::Fd(self.file.as_raw_fd());
        let (bytes, offset) = (request.bytes() as u32, (request.page * PAGE) as u64);
        match (self.direction, self.is_registered) {
            (Direction::Read, true) => opcode::ReadFixed::new(file, start, bytes, 0).offset(offset).build(),
            (Direction::Read, false) => opcode::Read::new(file, start, bytes).offset(offset).build(),
            (Direction::Write, true) => opcode::WriteFixed::new(file, start, bytes, 0).offset(offset).build(),
            (Direction::Write, false) => opcode::Write::new(file, start, bytes).offset(offset).build(),
        }
    }

    /// Takes all answers, and frees their blocks.
    ///
    /// # Panics
    /// If a request failed, or a read did not bring the file's content.
    fn finish(&mut self) {
        for answer in self.ring.completion() {
            let place = answer.user_data() as usize;
            let Live { request, block } =
                self.live[place].take().expect("the kernel answers what is under way");
            assert_eq!(answer.result(), request.bytes() as i32, "bytes of a request, or an error number");
            if self.direction == Direction::Read {
                // SAFETY: the block is allocated, and the kernel has written all of it.
                let first = unsafe { block.start().read_volatile() };
                assert_eq!(first, mark(request.page), "the first byte of a read");
            }
            self.target.free(self.cpu, block, request.order);
            self.idle.push(place);
        }
    }

    /// # Panics
    /// If a page of the file has another first byte than after all writes.
    fn check_written(&self, requests: &[Request]) {
        let mut expected: Vec<_> = (0..FILE / PAGE).map(mark).collect();
        requests.iter().for_each(|request| expected[request.page..][..1 << request.order].fill(1));
        let mut content = vec![0; FILE];
        self.file.read_exact_at(&mut content, 0).expect("the file is readable");
        assert!(content.chunks_exact(PAGE).map(|page| page[0]).eq(expected), "the file after all writes");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_has_equally_many_requests_of_each_order_inside_the_file() {
        let requests = requests(&mut Random::new(1));
        for order in 0..ORDERS {
            let of_order = requests.iter().filter(|request| request.order == order);
            assert_eq!(of_order.count(), REQUESTS, "order {order}");
        }
        let fits = |request: &Request| {
            request.page.is_multiple_of(1 << request.order) && request.page * PAGE + request.bytes() <= FILE
        };
        assert!(requests.iter().all(fits), "{requests:?}");
    }
}
