//! Shows a database's page cache. A pool holds the cached pages of a file. The cache has a vector with one
//! header for each page of the pool. When no page is free, the clock algorithm evicts a page.
//!
//! The load is like YCSB's workload A. Records have 1000 bytes. Half of the operations read a record, and the
//! other half update one field of a record. A few records get most of the operations.
//!
//! `cargo run --release -p pageset --example page_cache`

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use pageset::{AllocError, Backing, Order, PAGE_BYTES, Pages, Pool};

const POOL_BYTES: usize = 4 << 20;
const RECORDS: usize = 16_384;
const RECORD_BYTES: usize = 1000;
const RECORDS_OF_PAGE: usize = PAGE_BYTES / RECORD_BYTES;
const FIELD_BYTES: usize = 100;
const FIELDS: usize = RECORD_BYTES / FIELD_BYTES;
const OPERATIONS: usize = 200_000;

// ANCHOR: cache
/// A page of the pool, as the cache knows it.
#[derive(Clone, Copy, Default)]
struct Header {
    /// The number of the file's page that lies in this page of the pool. `None` for a free page.
    file_page: Option<usize>,
    /// Whether the page was changed and not yet written to the file.
    is_dirty: bool,
    /// Whether the page was used since the clock's hand passed it.
    is_recent: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

struct Cache<'p> {
    pool: &'p Pool,
    file: File,
    /// One header for each page of the pool.
    headers: Vec<Header>,
    /// The pages of the file that are in memory.
    pages: HashMap<usize, Pages<'p>>,
    /// The clock's hand: the index of the header that the clock looks at next.
    hand: usize,
    misses: usize,
    writes: usize,
}

impl<'p> Cache<'p> {
    fn new(pool: &'p Pool, file: File) -> Self {
        let headers = vec![Header::default(); pool.page_count()];
        Self { pool, file, headers, pages: HashMap::new(), hand: 0, misses: 0, writes: 0 }
    }

    /// The contents of a page of the file.
    fn page(&mut self, file_page: usize, access: Access) -> io::Result<&mut [u8]> {
        if !self.pages.contains_key(&file_page) {
            self.load(file_page)?;
        }
        let page = self.pages.get_mut(&file_page).expect("it was there, or was loaded");
        let header = &mut self.headers[page.pfn().0 as usize];
        header.is_recent = true;
        header.is_dirty |= access == Access::Write;
        Ok(page)
    }

    fn load(&mut self, file_page: usize) -> io::Result<()> {
        self.misses += 1;
        let mut page = loop {
            match self.pool.alloc(Order::ZERO) {
                Err(AllocError::OutOfMemory { .. }) => self.evict()?,
                outcome => break outcome.map_err(io::Error::other)?,
            }
        };
        self.file.read_exact_at(&mut page, (file_page * PAGE_BYTES) as u64)?;
        self.headers[page.pfn().0 as usize] = Header { file_page: Some(file_page), ..Header::default() };
        self.pages.insert(file_page, page);
        Ok(())
    }

    /// Frees the next page that was not used since the clock's hand passed it.
    fn evict(&mut self) -> io::Result<()> {
        loop {
            let at = self.hand;
            self.hand = (at + 1) % self.headers.len();
            let header = &mut self.headers[at];
            let Some(file_page) = header.file_page else { continue };
            if std::mem::take(&mut header.is_recent) {
                continue;
            }
            self.write_back(at)?;
            self.headers[at] = Header::default();
            self.pages.remove(&file_page);
            return Ok(());
        }
    }

    /// Writes a page of the pool to the file if the program has changed the page.
    fn write_back(&mut self, at: usize) -> io::Result<()> {
        let Header { file_page: Some(file_page), is_dirty: true, .. } = self.headers[at] else {
            return Ok(());
        };
        self.file.write_all_at(&self.pages[&file_page], (file_page * PAGE_BYTES) as u64)?;
        self.headers[at].is_dirty = false;
        self.writes += 1;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        (0..self.headers.len()).try_for_each(|at| self.write_back(at))
    }
}
// ANCHOR_END: cache

/// The place of a record: the page of the file, and the bytes in this page.
fn place(record: usize) -> (usize, std::ops::Range<usize>) {
    let start = record % RECORDS_OF_PAGE * RECORD_BYTES;
    (record / RECORDS_OF_PAGE, start..start + RECORD_BYTES)
}

/// Draws records with YCSB's distribution: the n-th most frequent record has a share in proportion to 1 /
/// n^0.99. The most frequent records are spread over the file.
struct Draw {
    /// For each rank, the sum of the shares of this record and of all more frequent records.
    sums: Vec<f64>,
    state: u64,
}

impl Draw {
    fn new() -> Self {
        let share = |rank: usize| (rank as f64).powf(-0.99);
        let sums = (1..=RECORDS).scan(0.0, |sum, rank| {
            *sum += share(rank);
            Some(*sum)
        });
        Self { sums: sums.collect(), state: 1 }
    }

    /// Source: Vigna, "An experimental exploration of Marsaglia's xorshift generators", xorshift64*.
    fn number(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn record(&mut self) -> usize {
        let part = (self.number() >> 11) as f64 / (1_u64 << 53) as f64;
        let wanted = part * self.sums[RECORDS - 1];
        let rank = self.sums.partition_point(|sum| *sum <= wanted).min(RECORDS - 1);
        // The factor is odd, so each rank gets a different record.
        rank.wrapping_mul(0x9E37_79B1) % RECORDS
    }
}

/// # Errors
/// If no pool can be built, or the file cannot be made, read or written.
pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join(format!("pageset-page-cache-{}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?; // the file goes with its last descriptor
    file.set_len((RECORDS / RECORDS_OF_PAGE * PAGE_BYTES) as u64)?;

    let pool = Pool::builder().size(POOL_BYTES).backing(Backing::Plain).build()?;
    let mut cache = Cache::new(&pool, file.try_clone()?);
    let mut draw = Draw::new();
    // The value that the program last wrote to each field of each record.
    let mut expected = vec![[0_u8; FIELDS]; RECORDS];
    for _ in 0..OPERATIONS {
        let (record, random) = (draw.record(), draw.number());
        let (file_page, bytes) = place(record);
        let field = (random >> 32) as usize % FIELDS;
        if random.is_multiple_of(2) {
            let record_bytes = &cache.page(file_page, Access::Read)?[bytes];
            let first_bytes = record_bytes.iter().step_by(FIELD_BYTES);
            assert!(first_bytes.eq(&expected[record]), "record {record}");
        } else {
            let record_bytes = &mut cache.page(file_page, Access::Write)?[bytes];
            let value = (random >> 40) as u8;
            record_bytes[field * FIELD_BYTES..][..FIELD_BYTES].fill(value);
            expected[record][field] = value;
        }
    }
    cache.flush()?;
    let (misses, writes) = (cache.misses, cache.writes);
    drop(cache);
    assert_eq!(pool.stats().nr_used, 0);

    let mut page = [0; PAGE_BYTES];
    for (record, fields) in expected.iter().enumerate() {
        let (file_page, bytes) = place(record);
        file.read_exact_at(&mut page, (file_page * PAGE_BYTES) as u64)?;
        assert!(page[bytes].iter().step_by(FIELD_BYTES).eq(fields), "record {record} of the file");
    }
    let hits = 100.0 * (OPERATIONS - misses) as f64 / OPERATIONS as f64;
    println!("{hits:.1} % found in memory, {misses} pages read, {writes} pages written");
    Ok(())
}
