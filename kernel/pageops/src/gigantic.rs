//! Clears or copies a gigantic page in parts. Between parts the caller can do other work, or stop and
//! continue later.

use core::iter::FusedIterator;
use core::ops::{ControlFlow, Range};

use crate::{BASE_PAGE_BYTES, BadPage, Method, Page, VisitOrder};

/// One part of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The range of the page's bytes in this part.
    pub bytes: Range<usize>,
    /// The offset of the hint from the start of this part. `None` if the hint is not in this part, or if the
    /// visit order is not [`VisitOrder::StreamTargetLast`].
    pub hint: Option<usize>,
}

/// The parts of a page, in ascending order. With [`VisitOrder::StreamTargetLast`] and a hint, the part with
/// the hint comes last. `Parts` is a pure iterator, so a caller can keep a `Parts` value and continue later.
#[derive(Clone, Debug)]
pub struct Parts {
    page_bytes: usize,
    part_bytes: usize,
    /// The number of the part that comes last, and the hint's offset in that part.
    last: Option<(usize, usize)>,
    done: usize,
}

impl Parts {
    /// The size of a part: 2 MiB. Chosen: a caller can stop only after a part, and clearing a part takes
    /// about 25 us. The fence after each part takes less than 1 % of the time to clear the part.
    pub const PART_BYTES: usize = 2 << 20;

    fn new(order: VisitOrder, page_bytes: usize, hint: Option<usize>) -> Self {
        let part_bytes = Self::PART_BYTES;
        let hint = hint.filter(|_| order == VisitOrder::StreamTargetLast);
        let last = hint.map(|hint| (hint / part_bytes, hint % part_bytes));
        Self { page_bytes, part_bytes, last, done: 0 }
    }

    /// The number of all parts.
    #[must_use]
    pub const fn total(&self) -> usize {
        self.page_bytes.div_ceil(self.part_bytes)
    }

    /// The number of finished parts.
    #[must_use]
    pub const fn done(&self) -> usize {
        self.done
    }
}

impl Iterator for Parts {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        let (total, nth) = (self.total(), self.done);
        if nth == total {
            return None;
        }
        self.done += 1;
        let (number, hint) = match self.last {
            Some((last, hint)) if nth + 1 == total => (last, Some(hint)),
            Some((last, _)) if nth >= last => (nth + 1, None),
            _ => (nth, None),
        };
        let start = number * self.part_bytes;
        Some(Part { bytes: start..(start + self.part_bytes).min(self.page_bytes), hint })
    }
}

impl FusedIterator for Parts {}

/// Clears a page in parts. Keep the `Clearing` value to continue the work. If you drop the `Clearing` value,
/// the unfinished parts of the page stay unchanged.
///
/// ```
/// # use pageset_pageops::{BASE_PAGE_BYTES, Method};
/// # use core::ops::ControlFlow;
/// # let mut memory = vec![1_u8; (9 << 20) + BASE_PAGE_BYTES];
/// # let start = memory.as_ptr().align_offset(BASE_PAGE_BYTES);
/// # let page = &mut memory[start..start + (9 << 20)];
/// # let mut is_interrupted = { let mut once = true; move || core::mem::take(&mut once) };
/// let mut clearing = Method::chosen().clearing(&mut *page, None)?;
/// while clearing.run(|_| if is_interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }).is_break() {
///     // Something else has to be done first.
/// }
/// # assert!(page.iter().all(|byte| *byte == 0));
/// # Ok::<(), pageset_pageops::BadPage>(())
/// ```
#[derive(Debug)]
pub struct Clearing<'p> {
    method: Method,
    page: Page<'p>,
    parts: Parts,
}

/// Copies a page in parts. See [`Clearing`].
#[derive(Debug)]
pub struct Copying<'p, 's> {
    method: Method,
    page: Page<'p>,
    source: &'s [u8],
    parts: Parts,
}

impl Method {
    /// Prepares to clear a page in parts of [`Parts::PART_BYTES`]. `clearing` itself writes nothing.
    ///
    /// Under [`VisitOrder::StreamTargetLast`], the part with the hint comes last. The other visit orders
    /// ignore the hint.
    ///
    /// # Errors
    ///
    /// The errors of [`Method::clear`].
    pub fn clearing<'p>(
        self,
        page: impl Into<Page<'p>>,
        hint: Option<usize>,
    ) -> Result<Clearing<'p>, BadPage> {
        let page = page.into();
        BadPage::check(page.start().addr().get(), page.bytes(), hint)?;
        let parts = Parts::new(self.order(), page.bytes(), hint);
        Ok(Clearing { method: self.for_parts(), page, parts })
    }

    /// Prepares to copy a page in parts of [`Parts::PART_BYTES`]. `copying` itself writes nothing.
    ///
    /// # Errors
    ///
    /// The errors of [`Method::copy`].
    pub fn copying<'p, 's>(
        self,
        page: impl Into<Page<'p>>,
        source: &'s [u8],
        hint: Option<usize>,
    ) -> Result<Copying<'p, 's>, BadPage> {
        let page = page.into();
        BadPage::check(page.start().addr().get(), page.bytes(), hint)?;
        BadPage::check_source(source, page.bytes())?;
        let parts = Parts::new(self.order(), page.bytes(), hint);
        Ok(Copying { method: self.for_parts(), page, source, parts })
    }

    /// The method for the parts of a page. Only [`VisitOrder::StreamTargetLast`] has a target within a part.
    /// All other visit orders visit the base pages of each part in ascending order.
    fn for_parts(self) -> Self {
        match self.order() {
            VisitOrder::PageByPage | VisitOrder::StreamTargetLast => self,
            _ => Self::new(VisitOrder::Sequential, self.kernel(), self.radius_pages() * 2 * BASE_PAGE_BYTES),
        }
    }
}

impl Clearing<'_> {
    /// Clears the next part of the page, and returns the part. Returns `None` if all parts are finished.
    pub fn part(&mut self) -> Option<Part> {
        let part = self.parts.next()?;
        self.method.clear_ordered(&mut self.page.part(part.bytes.clone()), part.hint);
        Some(part)
    }

    /// Clears parts until all parts are finished, or until `between` returns `Break`. Calls `between` with
    /// the progress after each part.
    pub fn run(&mut self, mut between: impl FnMut(&Parts) -> ControlFlow<()>) -> ControlFlow<()> {
        while self.part().is_some() {
            between(&self.parts)?;
        }
        ControlFlow::Continue(())
    }

    /// The page's parts, with the number of finished parts.
    #[must_use]
    pub const fn parts(&self) -> &Parts {
        &self.parts
    }
}

impl Copying<'_, '_> {
    /// Copies the next part of the page, and returns the part. Returns `None` if all parts are finished.
    pub fn part(&mut self) -> Option<Part> {
        let part = self.parts.next()?;
        let source = &self.source[part.bytes.clone()];
        self.method.copy_ordered(&mut self.page.part(part.bytes.clone()), source, part.hint);
        Some(part)
    }

    /// Copies parts until all parts are finished, or until `between` returns `Break`. Calls `between` with
    /// the progress after each part.
    pub fn run(&mut self, mut between: impl FnMut(&Parts) -> ControlFlow<()>) -> ControlFlow<()> {
        while self.part().is_some() {
            between(&self.parts)?;
        }
        ControlFlow::Continue(())
    }

    /// The page's parts, with the number of finished parts.
    #[must_use]
    pub const fn parts(&self) -> &Parts {
        &self.parts
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    const PART: usize = Parts::PART_BYTES;

    fn starts(order: VisitOrder, bytes: usize, hint: Option<usize>) -> Vec<usize> {
        Parts::new(order, bytes, hint).map(|part| part.bytes.start / PART).collect()
    }

    #[test]
    fn the_part_with_the_hint_is_last() {
        assert_eq!(starts(VisitOrder::StreamTargetLast, 4 * PART, Some(2 * PART + 5)), [0, 1, 3, 2]);
        assert_eq!(starts(VisitOrder::StreamTargetLast, 4 * PART, Some(0)), [1, 2, 3, 0]);
        assert_eq!(starts(VisitOrder::StreamTargetLast, 4 * PART, Some(4 * PART - 1)), [0, 1, 2, 3]);
        assert_eq!(starts(VisitOrder::StreamTargetLast, 4 * PART, None), [0, 1, 2, 3]);
        let last = Parts::new(VisitOrder::StreamTargetLast, 4 * PART, Some(2 * PART + 5)).last().unwrap();
        assert_eq!(last, Part { bytes: 2 * PART..3 * PART, hint: Some(5) });
    }

    #[test]
    fn other_orders_ascend() {
        for order in VisitOrder::ALL.into_iter().filter(|order| *order != VisitOrder::StreamTargetLast) {
            assert_eq!(starts(order, 4 * PART, Some(PART)), [0, 1, 2, 3]);
        }
    }

    #[test]
    fn the_end_of_a_page_may_be_less_than_a_part() {
        let parts: Vec<_> = Parts::new(VisitOrder::StreamTargetLast, PART + 4096, Some(0)).collect();
        assert_eq!(
            parts,
            [Part { bytes: PART..PART + 4096, hint: None }, Part { bytes: 0..PART, hint: Some(0) },]
        );
    }
}
