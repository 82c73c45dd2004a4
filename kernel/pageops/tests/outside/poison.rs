//! Tests a source that fails half way.

use crate::memory::Memory;
use pageset_pageops::{
    BASE_PAGE_BYTES, BadPage, CopyError, Kernel, Method, Poisoned, Source, Target, VisitOrder,
};

const PAGES: usize = 16;

/// A source with one unreadable byte.
struct Broken<'s> {
    bytes: &'s [u8],
    poison: Option<usize>,
    reads: usize,
}

impl Source for Broken<'_> {
    fn read(&mut self, offset: usize, target: Target<'_>) -> Result<(), Poisoned> {
        self.reads += 1;
        let bytes = offset..offset + BASE_PAGE_BYTES;
        match self.poison {
            Some(poison) if bytes.contains(&poison) => {
                // Copy the whole cache lines before the damaged byte, as a machine-check-safe copy does.
                let good = (poison - offset) & !(64 - 1);
                let start = target.into_page().part(0..good).start();
                // SAFETY: the part is inside the page, and the source has at least as many bytes.
                unsafe { start.as_ptr().copy_from_nonoverlapping(self.bytes[offset..].as_ptr(), good) };
                Err(Poisoned { copied_bytes: good })
            }
            _ => {
                target.copy(&self.bytes[bytes]);
                Ok(())
            }
        }
    }
}

fn methods() -> impl Iterator<Item = Method> {
    let kernels: Vec<_> = Kernel::available().collect();
    kernels.into_iter().flat_map(|kernel| VisitOrder::ALL.map(|order| Method::new(order, kernel, 16 << 10)))
}

#[test]
fn a_good_source_is_copied() {
    let bytes = Memory::patterned(PAGES * BASE_PAGE_BYTES, 2);
    for method in methods() {
        let mut page = Memory::new(PAGES * BASE_PAGE_BYTES);
        let mut source = Broken { bytes: &bytes, poison: None, reads: 0 };
        method.copy_from(&mut page[..], &mut source, Some(5 * BASE_PAGE_BYTES)).unwrap();
        assert!(*page == *bytes, "{method:?}");
        assert_eq!(source.reads, PAGES);
    }
}

#[test]
fn a_copy_that_meets_poison_tells_how_far_it_came() {
    let bytes = Memory::patterned(PAGES * BASE_PAGE_BYTES, 2);
    let untouched = Memory::patterned(PAGES * BASE_PAGE_BYTES, 1);
    let target = 5;
    for method in methods() {
        let visits: Vec<_> = method
            .order()
            .steps(PAGES, Some(target), method.radius_pages())
            .flat_map(|step| step.pages)
            .collect();
        for (before, poisoned) in visits.iter().copied().enumerate() {
            let mut page = Memory::patterned(PAGES * BASE_PAGE_BYTES, 1);
            let mut source =
                Broken { bytes: &bytes, poison: Some(poisoned * BASE_PAGE_BYTES + 200), reads: 0 };
            let outcome = method.copy_from(&mut page[..], &mut source, Some(target * BASE_PAGE_BYTES));
            let (offset, copied_bytes) = (poisoned * BASE_PAGE_BYTES + 192, before * BASE_PAGE_BYTES + 192);
            assert_eq!(outcome, Err(CopyError::Poisoned { offset, copied_bytes }), "{method:?}");
            assert_eq!(source.reads, before + 1, "the source is not asked again");
            for index in 0..PAGES {
                let at = index * BASE_PAGE_BYTES..(index + 1) * BASE_PAGE_BYTES;
                if visits[..before].contains(&index) {
                    assert!(page[at.clone()] == bytes[at], "{method:?}: base page {index} is copied");
                } else if index != poisoned {
                    assert!(page[at.clone()] == untouched[at], "{method:?}: base page {index} is untouched");
                }
            }
            assert!(page[poisoned * BASE_PAGE_BYTES..offset] == bytes[poisoned * BASE_PAGE_BYTES..offset]);
        }
    }
}

#[test]
fn errors_say_what_to_do() {
    let mut page = Memory::new(BASE_PAGE_BYTES);
    let mut source = Broken { bytes: &[], poison: None, reads: 0 };
    let error = Method::detect().copy_from(&mut page[..], &mut source, Some(BASE_PAGE_BYTES)).unwrap_err();
    assert_eq!(error, CopyError::BadPage(BadPage::Hint { offset: BASE_PAGE_BYTES, bytes: BASE_PAGE_BYTES }));
    assert_eq!(
        error.to_string(),
        "the hint 4096 is outside a page of 4096 bytes: pass an offset in it, or none"
    );
    let error = CopyError::Poisoned { offset: 8192, copied_bytes: 4096 };
    assert_eq!(error.to_string(), "the source is poisoned at 8192; 4096 bytes were copied before");
}
