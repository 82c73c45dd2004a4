//! Tests gigantic pages in parts that are interrupted, continued or abandoned.

use std::ops::ControlFlow;

use crate::memory::Memory;
use pageset_pageops::{BASE_PAGE_BYTES, BadPage, Kernel, Method, Parts, VisitOrder};

/// Bytes of a page that has four parts and one shorter part.
const BYTES: usize = 4 * Parts::PART_BYTES + 3 * BASE_PAGE_BYTES;

fn methods() -> impl Iterator<Item = Method> {
    let kernels: Vec<_> = Kernel::available().collect();
    kernels.into_iter().flat_map(|kernel| VisitOrder::ALL.map(|order| Method::new(order, kernel, 64 << 10)))
}

#[test]
#[cfg_attr(miri, ignore = "megabytes take miri minutes")]
fn all_parts_are_the_whole_page() {
    let source = Memory::patterned(BYTES, 2);
    let mut page = Memory::patterned(BYTES, 1);
    for method in methods() {
        for hint in [None, Some(0), Some(Parts::PART_BYTES + 5), Some(BYTES - 1)] {
            assert!(
                method
                    .copying(&mut page[..], &source, hint)
                    .unwrap()
                    .run(|_| ControlFlow::Continue(()))
                    .is_continue()
            );
            assert!(*page == *source, "{method:?} {hint:?}");
            assert!(
                method
                    .clearing(&mut page[..], hint)
                    .unwrap()
                    .run(|_| ControlFlow::Continue(()))
                    .is_continue()
            );
            assert!(page.iter().all(|byte| *byte == 0), "{method:?} {hint:?}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "megabytes take miri minutes")]
fn an_interrupted_page_goes_on_where_it_was() {
    let mut page = Memory::patterned(BYTES, 1);
    let mut seen = Vec::new();
    let mut clearing = Method::detect().clearing(&mut page[..], Some(BYTES - 1)).unwrap();
    let mut between = |parts: &Parts| {
        seen.push((parts.done(), parts.total()));
        if parts.done() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    assert!(clearing.run(&mut between).is_break());
    assert!(clearing.run(&mut between).is_continue());
    assert_eq!(seen, [(1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]);
    assert!(clearing.part().is_none());
    assert!(page.iter().all(|byte| *byte == 0));
}

#[test]
#[cfg_attr(miri, ignore = "megabytes take miri minutes")]
fn a_page_that_is_left_has_only_the_parts_that_were_done() {
    let source = Memory::patterned(BYTES, 2);
    let mut page = Memory::patterned(BYTES, 1);
    let before = page.to_vec();
    let mut copying = Method::detect().copying(&mut page[..], &source, Some(0)).unwrap();
    let part = copying.part().unwrap();
    assert_eq!(copying.parts().done(), 1);
    assert_eq!((part.bytes.clone(), part.hint), (Parts::PART_BYTES..2 * Parts::PART_BYTES, None));
    assert!(page[part.bytes.clone()] == source[part.bytes.clone()]);
    assert!(page[..part.bytes.start] == before[..part.bytes.start]);
    assert!(page[part.bytes.end..] == before[part.bytes.end..]);
}

#[test]
fn what_is_not_a_page_is_refused() {
    let mut page = Memory::new(2 * BASE_PAGE_BYTES);
    let method = Method::new(VisitOrder::StreamTargetLast, Kernel::PORTABLE, 0);
    assert_eq!(method.clearing(&mut page[..100], None).unwrap_err(), BadPage::Length { bytes: 100 });
    assert_eq!(
        method.copying(&mut page[..], &[0; 3], None).unwrap_err(),
        BadPage::Lengths { bytes: 2 * BASE_PAGE_BYTES, source_bytes: 3 }
    );
}
