//! Tests that every kernel (set of loops) and visit order writes the same bytes as `memset` and `memcpy`, and
//! nothing outside the page.

use std::io::Write as _;
use std::mem::MaybeUninit;

use crate::memory::Memory;
use pageset_pageops::{BASE_PAGE_BYTES, BadPage, Isa, Kernel, Method, Store, VisitOrder};
use proptest::prelude::*;

/// The largest page of the random tests, in base pages: 2 MiB.
const PAGES_MAX: usize = if cfg!(miri) { 6 } else { 512 };

/// The kernel (set of loops) of instruction set `isa`. If the CPU does not support this instruction set,
/// prints a message that the test harness does not hide.
fn kernel(isa: Isa) -> Option<Kernel> {
    let kernel = Kernel::new(isa);
    if kernel.is_none() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: this CPU has no {}", isa.name());
    }
    kernel
}

/// A page inside a larger piece of memory: `before` base pages, then the page, then the rest.
#[derive(Clone, Copy, Debug)]
struct Place {
    before: usize,
    pages: usize,
    after: usize,
    hint: Option<usize>,
    order: VisitOrder,
    neighbourhood_bytes: usize,
}

impl Place {
    fn bytes(self) -> std::ops::Range<usize> {
        self.before * BASE_PAGE_BYTES..(self.before + self.pages) * BASE_PAGE_BYTES
    }

    fn memory(self, seed: u8) -> Memory {
        Memory::patterned((self.before + self.pages + self.after) * BASE_PAGE_BYTES, seed)
    }

    fn method(self, kernel: Kernel) -> Method {
        Method::new(self.order, kernel, self.neighbourhood_bytes)
    }
}

fn places() -> impl Strategy<Value = Place> {
    // Draw numbers of pages that are powers of two, as in folios, and other numbers.
    let pages = prop_oneof![(0..=PAGES_MAX.ilog2()).prop_map(|order| 1 << order), 1..=PAGES_MAX];
    (
        pages,
        0..3_usize,
        0..3_usize,
        any::<bool>(),
        any::<prop::sample::Index>(),
        0..VisitOrder::ALL.len(),
        0..300_000_usize,
    )
        .prop_map(|(pages, before, after, is_hinted, hint, order, neighbourhood_bytes)| {
            let hint = is_hinted.then(|| hint.index(pages * BASE_PAGE_BYTES));
            Place { before, pages, after, hint, order: VisitOrder::ALL[order], neighbourhood_bytes }
        })
}

fn clears(kernel: Kernel, place: Place) {
    let mut memory = place.memory(1);
    let mut expected = memory.to_vec();
    expected[place.bytes()].fill(0);
    place.method(kernel).clear(&mut memory[place.bytes()], place.hint).unwrap();
    assert!(*memory == expected[..], "{kernel:?} {place:?}");
}

fn copies(kernel: Kernel, place: Place) {
    let mut memory = place.memory(1);
    let source = Memory::patterned(place.bytes().len(), 2);
    let mut expected = memory.to_vec();
    expected[place.bytes()].copy_from_slice(&source);
    place.method(kernel).copy(&mut memory[place.bytes()], &source, place.hint).unwrap();
    assert!(*memory == expected[..], "{kernel:?} {place:?}");
}

/// Tests each function of one kernel (set of loops), and each visit order, on pages between inaccessible
/// pages.
fn check(isa: Isa) {
    let Some(kernel) = kernel(isa) else { return };
    for store in [Store::Cached, Store::Stream] {
        for pages in [1, 2, 3, PAGES_MAX] {
            let source = Memory::patterned(pages * BASE_PAGE_BYTES, 2);
            let mut page = Memory::patterned(pages * BASE_PAGE_BYTES, 1);
            kernel.copy((&mut page[..]).into(), &source, store);
            assert!(*page == *source, "{isa:?} copies {pages} base pages, {store:?}");
            kernel.clear((&mut page[..]).into(), store);
            assert!(page.iter().all(|byte| *byte == 0), "{isa:?} clears {pages} base pages, {store:?}");
        }
        let mut untouched = Memory::patterned(BASE_PAGE_BYTES, 1);
        let before = Memory::patterned(BASE_PAGE_BYTES, 1);
        kernel.clear((&mut untouched[..0]).into(), store);
        kernel.copy((&mut untouched[..0]).into(), &before[..0], store);
        assert!(*untouched == before[..], "{isa:?} leaves alone what has no length, {store:?}");
    }
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: if cfg!(miri) { 8 } else { 200 },
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let outcome = runner.run(&places(), |place| {
        clears(kernel, place);
        copies(kernel, place);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn portable() {
    check(Isa::Portable);
}

#[test]
fn rep() {
    check(Isa::Rep);
}

#[test]
fn clzero() {
    check(Isa::Clzero);
}

#[test]
fn avx2() {
    check(Isa::Avx2);
}

#[test]
fn avx512() {
    check(Isa::Avx512);
}

#[test]
fn zva() {
    check(Isa::Zva);
}

#[test]
fn the_chosen_method_does_both_at_every_target() {
    let pages = if cfg!(miri) { 4 } else { 64 };
    let source = Memory::patterned(pages * BASE_PAGE_BYTES, 2);
    let mut page = Memory::patterned(pages * BASE_PAGE_BYTES, 1);
    for hint in (0..pages).map(|target| Some(target * BASE_PAGE_BYTES + 17)).chain([None]) {
        pageset_pageops::copy(&mut page[..], &source, hint).unwrap();
        assert!(*page == *source, "{hint:?}");
        pageset_pageops::clear(&mut page[..], hint).unwrap();
        assert!(page.iter().all(|byte| *byte == 0), "{hint:?}");
    }
}

#[test]
fn memory_without_contents_is_filled() {
    let mut memory = vec![MaybeUninit::<u8>::uninit(); 3 * BASE_PAGE_BYTES];
    let start = memory.as_ptr().align_offset(BASE_PAGE_BYTES);
    let page = &mut memory[start..start + 2 * BASE_PAGE_BYTES];
    pageset_pageops::clear(&mut *page, Some(0)).unwrap();
    // SAFETY: the whole page was just cleared.
    assert!(page.iter().all(|byte| unsafe { byte.assume_init() } == 0));
}

#[test]
fn what_is_not_a_page_is_refused_and_not_touched() {
    let mut memory = Memory::patterned(2 * BASE_PAGE_BYTES, 1);
    let source = Memory::new(BASE_PAGE_BYTES);
    let before = memory.to_vec();
    let address = memory.as_ptr().addr();
    assert_eq!(pageset_pageops::clear(&mut memory[..0], None), Err(BadPage::Length { bytes: 0 }));
    assert_eq!(pageset_pageops::clear(&mut memory[..100], None), Err(BadPage::Length { bytes: 100 }));
    assert_eq!(
        pageset_pageops::clear(&mut memory[64..64 + BASE_PAGE_BYTES], None),
        Err(BadPage::Address { address: address + 64 })
    );
    assert_eq!(
        pageset_pageops::clear(&mut memory[..], Some(2 * BASE_PAGE_BYTES)),
        Err(BadPage::Hint { offset: 2 * BASE_PAGE_BYTES, bytes: 2 * BASE_PAGE_BYTES })
    );
    assert_eq!(
        pageset_pageops::copy(&mut memory[..], &source, None),
        Err(BadPage::Lengths { bytes: 2 * BASE_PAGE_BYTES, source_bytes: BASE_PAGE_BYTES })
    );
    assert!(*memory == before[..]);
}

#[test]
#[should_panic(expected = "are not base pages")]
fn a_kernel_refuses_what_is_not_base_pages() {
    Kernel::PORTABLE.clear((&mut [0_u8; 100][..]).into(), Store::Cached);
}

#[test]
fn a_choice_is_kept() {
    let method = Method::new(VisitOrder::RangesTargetLast, Kernel::PORTABLE, 40 * BASE_PAGE_BYTES);
    let detected = Method::chosen();
    method.choose();
    assert_eq!(Method::chosen(), method);
    assert_eq!(method.radius_pages(), 20);
    detected.choose();
    assert_eq!(Method::chosen(), detected);
}

#[test]
fn every_machine_has_a_kernel_and_its_name() {
    assert!(Kernel::available().any(|kernel| kernel == Kernel::PORTABLE));
    for isa in Isa::ALL {
        assert_eq!(Isa::named(isa.name()), Some(isa));
    }
    // Miri cannot execute assembly, so the crate has only the portable kernel under miri.
    let has_own = cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) && !cfg!(miri);
    assert_eq!(Method::without_vectors().kernel().isa().uses_vector_registers(), !has_own);
}
