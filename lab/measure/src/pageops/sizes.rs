//! Measures the smallest and the largest page: 4 KiB, where the cost of the call itself matters, and 1 GiB,
//! where only the bandwidth matters.

use std::time::Instant;

use anyhow::Result;
use pageset_pageops::{BASE_PAGE_BYTES, Kernel, Method, Store, VisitOrder};

use super::clock::{median, tenth};
use super::measurement::Measurement;
use super::memory::{HUGE_PAGE_BYTES, HugeMemory};
use super::way::{Operation, Way};
use crate::host::Meminfo;

/// Number of huge pages in a gigantic page (1 GiB).
const GIGANTIC: usize = (1 << 30) / HUGE_PAGE_BYTES;
/// Number of huge pages that provide the base pages: 192 MiB.
const SMALL: usize = 96;

/// Makes a row for a measurement without a target.
fn row(operation: Operation, page_bytes: usize, names: [&'static str; 3], times_us: Vec<f64>) -> Measurement {
    let [order, kernel, memory] = names;
    let op_us = median(&times_us);
    Measurement {
        op: operation.name(),
        page_bytes,
        order,
        kernel,
        target: "none",
        touch_bytes: 0,
        load: "alone",
        memory,
        samples: times_us.len(),
        op_us,
        touch_ns: 0.0,
        total_us: op_us,
        total_us_low: tenth(&times_us, 1),
        total_us_high: tenth(&times_us, 9),
    }
}

/// Measures single base pages, hot and cold, in `rounds` rounds. Each round measures the library's choice,
/// libc, and string instructions if this machine has them.
pub(super) fn small(operation: Operation, rounds: usize) -> Result<Vec<Measurement>> {
    let mut pages = HugeMemory::new(SMALL)?;
    let sources = HugeMemory::new(SMALL)?;
    let chosen = Way::Method(Method::chosen());
    let rep = pageset_pageops::Isa::Rep;
    let rep = Kernel::new(rep).map(|kernel| Way::of(VisitOrder::Sequential, kernel));
    let ways: Vec<_> = [Some(chosen), Some(Way::Libc), rep].into_iter().flatten().collect();
    let mut rows = Vec::new();
    for memory in ["hot", "cold"] {
        let mut times_us = vec![Vec::new(); ways.len()];
        for round in 0..rounds {
            for turn in 0..ways.len() {
                // Rotate the ways, so that each way is equally often the first way.
                let which = (turn + round) % ways.len();
                let index = (round * ways.len() + turn) % SMALL;
                let time =
                    each_base_page(ways[which], operation, &mut pages, &sources, index, memory == "hot");
                times_us[which].push(time);
            }
        }
        for (way, times_us) in ways.iter().zip(times_us) {
            rows.push(row(operation, BASE_PAGE_BYTES, [way.order(), way.kernel(), memory], times_us));
        }
    }
    Ok(rows)
}

/// Returns the microseconds for a base page, as the average over the base pages of a huge page. If `is_hot`,
/// all operations use the first base page.
fn each_base_page(
    way: Way,
    operation: Operation,
    pages: &mut HugeMemory,
    sources: &HugeMemory,
    index: usize,
    is_hot: bool,
) -> f64 {
    let (page, source) = (pages.page_mut(index), sources.page(index));
    let count = HUGE_PAGE_BYTES / BASE_PAGE_BYTES;
    let start = Instant::now();
    for number in 0..count {
        let at = if is_hot { 0 } else { number * BASE_PAGE_BYTES };
        let bytes = at..at + BASE_PAGE_BYTES;
        // `black_box` keeps the compiler from merging the operations.
        let page = std::hint::black_box(&mut page[bytes.clone()]);
        way.run(operation, page, &source[bytes], 0);
    }
    start.elapsed().as_nanos() as f64 / 1e3 / count as f64
}

/// Measures a page of 1 GiB: a stream with each kind of instructions, the library's own method, and libc. The
/// library's method works part by part. Returns `None` if less than 3 GiB of memory are available.
pub(super) fn gigantic(operation: Operation, rounds: usize) -> Result<Option<Vec<Measurement>>> {
    if Meminfo::read().available_bytes.is_some_and(|bytes| bytes < 3 << 30) {
        return Ok(None);
    }
    let mut page = HugeMemory::new(GIGANTIC)?;
    let source = HugeMemory::new(if operation == Operation::Copy { GIGANTIC } else { 1 })?;
    let method = Method::chosen();
    let mut ways: Vec<_> = Kernel::available().map(Gigantic::Stream).collect();
    ways.extend([Gigantic::Parts(method), Gigantic::Libc]);
    let mut times_us = vec![Vec::new(); ways.len()];
    for _ in 0..rounds {
        for (way, times_us) in ways.iter().zip(&mut times_us) {
            let start = Instant::now();
            way.run(operation, page.all_mut(), source.all());
            times_us.push(start.elapsed().as_nanos() as f64 / 1e3);
        }
    }
    let rows = ways.iter().zip(times_us);
    Ok(Some(rows.map(|(way, times_us)| row(operation, 1 << 30, way.names(), times_us)).collect()))
}

/// A way to clear or copy a gigantic page.
#[derive(Clone, Copy)]
enum Gigantic {
    /// One stream over the whole page, which shows the bandwidth of the machine.
    Stream(Kernel),
    /// The library's method, part by part.
    Parts(Method),
    Libc,
}

impl Gigantic {
    fn names(self) -> [&'static str; 3] {
        match self {
            Self::Stream(kernel) => ["stream", kernel.isa().name(), "cold"],
            Self::Parts(method) => ["parts", method.kernel().isa().name(), "cold"],
            Self::Libc => ["sequential", "libc", "cold"],
        }
    }

    fn run(self, operation: Operation, page: &mut [u8], source: &[u8]) {
        match self {
            Self::Stream(kernel) => stream(operation, kernel, page, source),
            Self::Parts(method) => in_parts(operation, method, page, source),
            Self::Libc => Way::Libc.run(operation, page, source, 0),
        }
    }
}

/// Maximum length of a range in a stream that copies. Copies of longer ranges are slower, because the
/// instructions copy at two places of a long range at once.
const STREAM_BYTES: usize = 2 << 20;

fn stream(operation: Operation, kernel: Kernel, page: &mut [u8], source: &[u8]) {
    match operation {
        Operation::Clear => kernel.clear(page.into(), Store::Stream),
        Operation::Copy => {
            for (page, source) in page.chunks_mut(STREAM_BYTES).zip(source.chunks(STREAM_BYTES)) {
                kernel.copy(page.into(), source, Store::Stream);
            }
        }
    }
}

fn in_parts(operation: Operation, method: Method, page: &mut [u8], source: &[u8]) {
    let go_on = |_: &_| std::ops::ControlFlow::Continue(());
    let middle = Some(page.len() / 2);
    let flow = match operation {
        Operation::Clear => method.clearing(page, middle).expect("a page").run(go_on),
        Operation::Copy => method.copying(page, source, middle).expect("two pages").run(go_on),
    };
    assert!(flow.is_continue(), "nothing interrupts");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pages_are_measured_hot_and_cold() {
        let rows = small(Operation::Copy, 2).unwrap();
        assert!(rows.iter().all(|row| row.page_bytes == 4096 && row.op_us > 0.0 && row.samples == 2));
        assert_eq!(rows.iter().filter(|row| row.kernel == "libc").count(), 2);
    }

    #[test]
    fn parts_and_streams_do_the_whole_page() {
        let (mut page, source) = (HugeMemory::new(3).unwrap(), HugeMemory::new(3).unwrap());
        in_parts(Operation::Clear, Method::chosen(), page.all_mut(), source.all());
        assert!(page.all().iter().all(|byte| *byte == 0));
        stream(Operation::Copy, Method::chosen().kernel(), page.all_mut(), source.all());
        assert!(page.all() == source.all());
    }
}
