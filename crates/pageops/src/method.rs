//! How pages are cleared and copied: an order, a kernel, and how much of a page is kept in the cache.

use crate::arch::{Cell, Fence};
use crate::{
    BASE_PAGE_BYTES, BadPage, Caches, CopyError, Isa, Kernel, Page, Source, Store, Target, VisitOrder,
};

/// The neighbourhood is this part of the second-level cache, so that it is there whatever else the program uses, and
/// costs little: 64 KiB of 1 MiB. What it buys and costs is measured by `pageset bench pages --choose`.
const L2_SHARE: usize = 16;

/// Longest range that a kernel copies in one go. A streamed copy goes on in two places of its range at once; with them
/// 512 MiB apart, 1 GiB took 48 ms, with 1 MiB 36 ms (EPYC of family 26).
const COPY_RANGE_BYTES: usize = 2 << 20;

/// Most base pages of a radius: as many as fit beside the order where the choice is kept.
const RADIUS_PAGES_MAX: usize = (1 << 21) - 1;

static CHOSEN: Cell = Cell::new();

/// How pages are cleared and copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    order: VisitOrder,
    kernel: Kernel,
    radius_pages: usize,
}

impl Method {
    /// A method of these parts. `neighbourhood_bytes` is about what stays in the cache around a hint; only [`VisitOrder::StreamTargetLast`] uses it.
    #[must_use]
    pub const fn new(order: VisitOrder, kernel: Kernel, neighbourhood_bytes: usize) -> Self {
        let radius_pages = neighbourhood_bytes / 2 / BASE_PAGE_BYTES;
        let radius_pages = if radius_pages < RADIUS_PAGES_MAX { radius_pages } else { RADIUS_PAGES_MAX };
        Self { order, kernel, radius_pages }
    }

    /// The best for this CPU, as far as its features tell.
    ///
    /// Asks the CPU each time, which takes microseconds in a virtual machine; [`Method::chosen`] remembers.
    #[must_use]
    pub fn detect() -> Self {
        let preferred = [Isa::Avx512, Isa::Avx2, Isa::Zva, Isa::Rep];
        let kernel = preferred.into_iter().find_map(Kernel::new);
        Self::of_kernel(kernel.unwrap_or(Kernel::PORTABLE))
    }

    /// As [`Method::detect`], but with loops over general registers only, since kernels of operating systems do not save
    /// the others. On other architectures than x86-64 and aarch64 it is [`Kernel::PORTABLE`]:
    /// [`Isa::uses_vector_registers`] tells what that means there.
    #[must_use]
    pub fn without_vectors() -> Self {
        let preferred = [Isa::Clzero, Isa::Zva, Isa::Rep];
        let kernel = preferred.into_iter().find_map(Kernel::new);
        Self::of_kernel(kernel.unwrap_or(Kernel::PORTABLE))
    }

    fn of_kernel(kernel: Kernel) -> Self {
        Self::new(VisitOrder::StreamTargetLast, kernel, Caches::detect().l2_bytes / L2_SHARE)
    }

    /// The method of [`clear`](crate::clear) and [`copy`](crate::copy): what [`Method::choose`] was given, else
    /// [`Method::detect`], asked once. One load from memory.
    #[inline]
    #[must_use]
    pub fn chosen() -> Self {
        match CHOSEN.get() {
            Some((kernel, number)) => Self::unpacked(kernel, number),
            None => Self::choose_detected(),
        }
    }

    #[cold]
    fn choose_detected() -> Self {
        let method = Self::detect();
        method.choose();
        method
    }

    /// Makes it the method of [`clear`](crate::clear) and [`copy`](crate::copy), for all threads.
    pub fn choose(self) {
        CHOSEN.set(self.kernel, (self.radius_pages as u32) << 3 | self.order as u32);
    }

    fn unpacked(kernel: Kernel, number: u32) -> Self {
        Self { order: VisitOrder::ALL[(number & 7) as usize], kernel, radius_pages: (number >> 3) as usize }
    }

    /// The order.
    #[must_use]
    pub const fn order(self) -> VisitOrder {
        self.order
    }

    /// The kernel.
    #[must_use]
    pub const fn kernel(self) -> Kernel {
        self.kernel
    }

    /// Half the base pages that stay in the cache around a hint, the hint's own not counted.
    #[must_use]
    pub const fn radius_pages(self) -> usize {
        self.radius_pages
    }

    /// Writes zeros to a page, and leaves what is around `hint`, an offset in bytes, in the cache.
    ///
    /// The page is any multiple of [`BASE_PAGE_BYTES`] at a multiple of it. What is left in the cache without a hint is
    /// told by the [`VisitOrder`]. O(bytes).
    ///
    /// # Errors
    ///
    /// If the memory is not a page, or the hint is not in it. Nothing is written then.
    #[inline]
    pub fn clear<'p>(self, page: impl Into<Page<'p>>, hint: Option<usize>) -> Result<(), BadPage> {
        let mut page = page.into();
        BadPage::check(page.start().addr().get(), page.bytes(), hint)?;
        if page.bytes() == BASE_PAGE_BYTES {
            self.kernel.clear(page, Store::Cached);
            return Ok(());
        }
        self.clear_ordered(&mut page, hint);
        Ok(())
    }

    /// Copies a page, and leaves what is around `hint`, an offset in bytes, in the cache. Sizes as for
    /// [`Method::clear`]. O(bytes).
    ///
    /// # Errors
    ///
    /// If the memory is not two pages of one size, or the hint is not in them. Nothing is written then.
    #[inline]
    pub fn copy<'p>(
        self,
        page: impl Into<Page<'p>>,
        source: &[u8],
        hint: Option<usize>,
    ) -> Result<(), BadPage> {
        let mut page = page.into();
        BadPage::check(page.start().addr().get(), page.bytes(), hint)?;
        BadPage::check_source(source, page.bytes())?;
        if page.bytes() == BASE_PAGE_BYTES {
            self.kernel.copy(page, source, Store::Cached);
            return Ok(());
        }
        self.copy_ordered(&mut page, source, hint);
        Ok(())
    }

    /// Copies a page from a source that may fail half way. It is asked for one base page at a time, in the order of the
    /// method, and not again after a failure.
    ///
    /// # Errors
    ///
    /// [`CopyError::Poisoned`] with how far the copy came; [`CopyError::BadPage`] if nothing was written.
    pub fn copy_from<'p>(
        self,
        page: impl Into<Page<'p>>,
        source: &mut impl Source,
        hint: Option<usize>,
    ) -> Result<(), CopyError> {
        let mut page = page.into();
        BadPage::check(page.start().addr().get(), page.bytes(), hint)?;
        let mut copied_bytes = 0;
        let mut outcome = Ok(());
        self.each_step(page.bytes(), hint, |start, end, store| {
            for offset in (start..end).step_by(BASE_PAGE_BYTES) {
                if outcome.is_err() {
                    return;
                }
                let base_page = page.part(offset..offset + BASE_PAGE_BYTES);
                match source.read(offset, Target::new(base_page, self.kernel, store)) {
                    Ok(()) => copied_bytes += BASE_PAGE_BYTES,
                    Err(poisoned) => {
                        let done = poisoned.copied_bytes.min(BASE_PAGE_BYTES);
                        copied_bytes += done;
                        outcome = Err(CopyError::Poisoned { offset: offset + done, copied_bytes });
                    }
                }
            }
        });
        outcome
    }

    pub(crate) fn clear_ordered(self, page: &mut Page<'_>, hint: Option<usize>) {
        self.each_step(page.bytes(), hint, |start, end, store| {
            self.kernel.clear_unfenced(page.part(start..end), store)
        });
    }

    pub(crate) fn copy_ordered(self, page: &mut Page<'_>, source: &[u8], hint: Option<usize>) {
        self.each_step(page.bytes(), hint, |start, end, store| {
            for from in (start..end).step_by(COPY_RANGE_BYTES) {
                let range = from..end.min(from + COPY_RANGE_BYTES);
                self.kernel.copy_unfenced(page.part(range.clone()), &source[range], store);
            }
        });
    }

    /// Calls `step` with the bytes of each step, and orders what was streamed before what comes after it.
    fn each_step(self, bytes: usize, hint: Option<usize>, mut step: impl FnMut(usize, usize, Store)) {
        let target = hint.map(|offset| offset / BASE_PAGE_BYTES);
        let mut fence = None;
        for next in self.order.steps(bytes / BASE_PAGE_BYTES, target, self.radius_pages) {
            // One fence for a run of streamed steps: when a cached one follows, or at the end.
            if fence.is_none() || next.store == Store::Cached {
                fence = Fence::of(self.kernel, next.store);
            }
            step(next.pages.start * BASE_PAGE_BYTES, next.pages.end * BASE_PAGE_BYTES, next.store);
        }
    }
}
