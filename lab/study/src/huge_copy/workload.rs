//! The benchmark anon-cow-seq of vm-scalability: a parent has memory, and each child writes all of this
//! memory. So each child copies the parent's memory page by page.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result};
use pageset_measure::host::pin;
use pageset_measure::pageops::{HUGE_PAGE_BYTES, HugeMemory};
use pageset_pageops::Method;

use super::counters::Counters;

/// Number of huge pages of the parent. 128 huge pages are 256 MiB, more than a cache holds.
const PAGES: usize = if cfg!(test) { 2 } else { 128 };

/// The memory of the parent and of its children.
#[derive(Debug)]
pub struct AnonCow {
    parent: HugeMemory,
    children: Vec<Child>,
}

#[derive(Debug)]
struct Child {
    cpu: usize,
    memory: HugeMemory,
}

/// The result of one run of all children.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Number of bytes per second that all children together copy.
    pub bytes_per_s: f64,
    /// Mean time of copying one huge page.
    pub copy_us: f64,
    /// Mean time that a child takes to write one huge page.
    pub write_us: f64,
    /// Instructions per cycle of all children, or the reason why the instructions were not counted.
    pub ipc: Result<f64, String>,
}

/// The work of one child.
struct Passed {
    seconds: f64,
    copy_seconds: f64,
    /// Numbers of instructions and cycles.
    counts: Result<(u64, u64), String>,
}

impl AnonCow {
    /// Makes the memory of the parent, and of one child for each CPU.
    ///
    /// # Errors
    ///
    /// Fails if the system has too little memory.
    pub fn new(cpus: &[usize]) -> Result<Self> {
        let child = |cpu: &usize| Ok(Child { cpu: *cpu, memory: HugeMemory::new(PAGES)? });
        Ok(Self { parent: HugeMemory::new(PAGES)?, children: cpus.iter().map(child).collect::<Result<_>>()? })
    }

    /// Runs all children at once.
    ///
    /// # Errors
    ///
    /// Fails if a child panics.
    pub fn run(&mut self, method: Method) -> Result<Measured> {
        let barrier = Barrier::new(self.children.len());
        let parent = &self.parent;
        let passed = thread::scope(|scope| {
            let start = |child| scope.spawn(|| pass(child, parent, method, &barrier));
            let threads: Vec<_> = self.children.iter_mut().map(start).collect();
            threads.into_iter().map(|thread| thread.join().ok()).collect::<Option<Vec<_>>>()
        });
        let passed = passed.context("a child has panicked")?;
        let pages = (PAGES * passed.len()) as f64;
        let copy_seconds: f64 = passed.iter().map(|passed| passed.copy_seconds).sum();
        let seconds: f64 = passed.iter().map(|passed| passed.seconds).sum();
        let child_bytes = (PAGES * HUGE_PAGE_BYTES) as f64;
        Ok(Measured {
            bytes_per_s: passed.iter().map(|passed| child_bytes / passed.seconds).sum(),
            copy_us: copy_seconds / pages * 1e6,
            write_us: (seconds - copy_seconds) / pages * 1e6,
            ipc: ipc(&passed),
        })
    }
}

fn ipc(passed: &[Passed]) -> Result<f64, String> {
    let mut sums = (0, 0);
    for passed in passed {
        let (instructions, cycles) = passed.counts.as_ref().map_err(Clone::clone)?;
        sums = (sums.0 + instructions, sums.1 + cycles);
    }
    if sums.1 == 0 { Err("no cycles were counted".to_owned()) } else { Ok(sums.0 as f64 / sums.1 as f64) }
}

/// Does the work of a child: copies each huge page, as a fault at the page's first word does, and then writes
/// all words of the page.
fn pass(child: &mut Child, parent: &HugeMemory, method: Method, barrier: &Barrier) -> Passed {
    pin(child.cpu);
    let counters = Counters::of_this_thread();
    barrier.wait();
    let mut copy_seconds = 0.0;
    let started = Instant::now();
    for index in 0..PAGES {
        let page = child.memory.page_mut(index);
        let copying = Instant::now();
        method.copy(&mut *page, parent.page(index), Some(0)).expect("these are huge pages");
        copy_seconds += copying.elapsed().as_secs_f64();
        write_words(page);
    }
    let seconds = started.elapsed().as_secs_f64();
    Passed { seconds, copy_seconds, counts: counters.and_then(|counters| counters.read()) }
}

/// Writes one word after another, as the benchmark does. `black_box` prevents the compiler from combining
/// stores.
fn write_words(page: &mut [u8]) {
    for (index, word) in page.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        *black_box(word) = index.to_ne_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_write_all_of_a_copy_and_leave_the_parent_alone() {
        let mut load = AnonCow::new(&[0, 0]).unwrap();
        let measured = load.run(Method::chosen()).unwrap();
        assert!(measured.bytes_per_s > 0.0 && measured.copy_us > 0.0 && measured.write_us > 0.0);
        assert!(load.parent.all().iter().all(|byte| *byte == 1));
        for child in &load.children {
            let words = child.memory.page(1).as_chunks::<8>().0;
            assert!(words.iter().enumerate().all(|(index, word)| *word == index.to_ne_bytes()));
        }
    }

    #[test]
    fn instructions_per_cycle_are_over_all_children() {
        let passed = |counts| Passed { seconds: 1.0, copy_seconds: 0.5, counts };
        assert_eq!(ipc(&[passed(Ok((100, 100))), passed(Ok((50, 100)))]), Ok(0.75));
        assert_eq!(ipc(&[passed(Ok((1, 1))), passed(Err("none".to_owned()))]), Err("none".to_owned()));
    }
}
