//! Runs the page fault test on the operating system's own page faults.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use memmap2::{Advice, MmapMut};
use zerocopy::FromBytes as _;

use super::result::Run;
use super::shape::{Regions, Shape};
use super::threads::{self, Toucher, account};

/// Runs one repetition of the test.
///
/// # Errors
///
/// An error if the system gives no threads or no memory, or if the system's pages have another size than the
/// test's pages.
pub fn run(shape: &Shape) -> Result<Run> {
    let page_bytes = rustix::param::page_size() as u64;
    if page_bytes != shape.geometry.page_bytes() {
        bail!(
            "this machine's pages have {page_bytes} bytes: --peer kernel needs --page-shift {}",
            page_bytes.trailing_zeros()
        );
    }
    let began = Instant::now();
    let mut shared = if shape.regions.is_percore() { None } else { Some(map(shape)?) };
    let mapped_s = began.elapsed().as_secs_f64();
    let shared_bytes = shared.as_mut().map(bytes_of);
    let phases = threads::run(shape.threads, |thread| {
        let own = if shape.regions.is_percore() { Some(map(shape)?) } else { None };
        Ok(Touch { shape, thread, own, shared: shared_bytes })
    })?;
    let mut run = phases.run;
    run.start_s += mapped_s;
    // One thread gives all memory back to the system, as the last thread of a process does.
    let (before, began) = (account()?, Instant::now());
    drop(phases.left);
    drop(shared);
    run.teardown_s = began.elapsed().as_secs_f64();
    let after = account()?;
    run.system_s += (after.cpu - before.cpu).as_secs_f64();
    run.pages_computed = shape.pages();
    run.pages_counted = match shape.regions {
        // If several threads touch a page at once, each of these threads may count a fault, but the page is
        // there once.
        Regions::Same => phases.minor_faults.min(run.pages_computed),
        _ => phases.minor_faults,
    };
    Ok(run)
}

fn map(shape: &Shape) -> Result<MmapMut> {
    let bytes = usize::try_from(shape.region_pages() * shape.geometry.page_bytes())?;
    let map =
        MmapMut::map_anon(bytes).with_context(|| format!("cannot map {bytes} bytes; use a smaller --gib"))?;
    // Huge pages must be off, so that each page causes a fault. A kernel without huge pages refuses
    // `MADV_NOHUGEPAGE`, but then huge pages are off anyway.
    #[cfg(target_os = "linux")]
    let _ = map.advise(Advice::NoHugePage);
    Ok(map)
}

/// Bytes that several threads may write.
fn bytes_of(map: &mut MmapMut) -> &[AtomicU8] {
    <[AtomicU8]>::mut_from_bytes(map).expect("bytes have no alignment and no invalid values")
}

struct Touch<'a> {
    shape: &'a Shape,
    thread: u32,
    own: Option<MmapMut>,
    shared: Option<&'a [AtomicU8]>,
}

impl Toucher for Touch<'_> {
    type Left = Option<MmapMut>;

    fn touch(&mut self) -> Result<()> {
        let bytes = match (&mut self.own, self.shared) {
            (Some(own), _) => bytes_of(own),
            (None, shared) => shared.unwrap_or_default(),
        };
        let (page_bytes, line_bytes) = (self.shape.geometry.page_bytes(), self.shape.line_bytes());
        for step in 0..self.shape.thread_pages {
            let start = self.shape.page(self.thread, step) * page_bytes;
            for line in 0..u64::from(self.shape.lines) {
                bytes[(start + line * line_bytes) as usize].store(1, Relaxed);
            }
        }
        Ok(())
    }

    fn leave(self) -> Self::Left {
        self.own
    }
}

#[cfg(test)]
mod tests {
    use pageset_fault::Geometry;

    use super::*;

    #[test]
    fn the_kernel_counts_what_we_computed() {
        if rustix::param::page_size() != 4096 {
            return;
        }
        for regions in Regions::ALL {
            let shape = Shape {
                threads: 2,
                thread_pages: 300,
                regions,
                geometry: Geometry::PAGES_4K,
                lines: 2,
                magazine: 0,
                skipped: 0,
            };
            let run = run(&shape).unwrap();
            assert!(run.pages_counted >= run.pages_computed, "{regions:?}: {run:?}");
            assert!(run.pages_counted <= run.pages_computed + 16, "{regions:?}: {run:?}");
        }
    }

    #[test]
    fn another_page_size_is_refused() {
        let (regions, geometry) = (Regions::Percore, Geometry::PAGES_16K);
        let shape =
            Shape { threads: 1, thread_pages: 1, regions, geometry, lines: 1, magazine: 0, skipped: 0 };
        if rustix::param::page_size() == 4096 {
            assert!(super::run(&shape).unwrap_err().to_string().contains("--page-shift 12"));
        }
    }
}
