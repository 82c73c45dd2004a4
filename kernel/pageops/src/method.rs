//! A method to clear and copy pages. A method has a visit order, a kernel (a set of loops), and the size of
//! the part that stays in the cache.

use crate::arch::{Cell, Fence};
use crate::{
    BASE_PAGE_BYTES, BadPage, Caches, CopyError, Isa, Kernel, Page, Source, Store, Target, VisitOrder,
};

/// The size of a hint's neighbourhood is the size of the second-level cache divided by `L2_SHARE`: 64 KiB for
/// a cache of 1 MiB. Chosen: a part of this size stays in the cache although the program uses other memory.
/// `pageset bench pages --choose` measures the gain and the cost.
const L2_SHARE: usize = 16;

/// The length of the longest range that a kernel copies in one call. A streamed copy reads two places in
/// turn, which lie half a range apart. Measured on an EPYC of family 26: a copy of 1 GiB took 36 ms with
/// places 1 MiB apart, and 48 ms with places 512 MiB apart.
const COPY_RANGE_BYTES: usize = 2 << 20;

/// The largest radius in base pages. A larger number would not fit into the word that stores the chosen
/// method.
const RADIUS_PAGES_MAX: usize = (1 << 21) - 1;

static CHOSEN: Cell = Cell::new();

/// A method to clear and copy pages. See [`Method::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    order: VisitOrder,
    kernel: Kernel,
    radius_pages: usize,
}

impl Method {
    /// Makes a method from its parts. With [`VisitOrder::StreamTargetLast`], about `neighbourhood_bytes`
    /// bytes around a hint stay in the cache. The other visit orders ignore `neighbourhood_bytes`.
    #[must_use]
    pub const fn new(order: VisitOrder, kernel: Kernel, neighbourhood_bytes: usize) -> Self {
        let radius_pages = neighbourhood_bytes / 2 / BASE_PAGE_BYTES;
        let radius_pages = if radius_pages < RADIUS_PAGES_MAX { radius_pages } else { RADIUS_PAGES_MAX };
        Self { order, kernel, radius_pages }
    }

    /// The method that this crate prefers for the features of this CPU.
    ///
    /// Each call asks the CPU for its features, which takes microseconds in a virtual machine.
    /// [`Method::chosen`] keeps the answer.
    #[must_use]
    pub fn detect() -> Self {
        let preferred = [Isa::Avx512, Isa::Avx2, Isa::Zva, Isa::Rep];
        let kernel = preferred.into_iter().find_map(Kernel::new);
        Self::of_kernel(kernel.unwrap_or(Kernel::PORTABLE))
    }

    /// The method that this crate prefers among the methods whose loops use only general registers.
    /// Operating-system kernels do not save vector registers on entry. On architectures other than x86-64 and
    /// aarch64, the method uses [`Kernel::PORTABLE`], which may use vector registers (see
    /// [`Isa::uses_vector_registers`]).
    #[must_use]
    pub fn without_vectors() -> Self {
        let preferred = [Isa::Clzero, Isa::Zva, Isa::Rep];
        let kernel = preferred.into_iter().find_map(Kernel::new);
        Self::of_kernel(kernel.unwrap_or(Kernel::PORTABLE))
    }

    fn of_kernel(kernel: Kernel) -> Self {
        Self::new(VisitOrder::StreamTargetLast, kernel, Caches::detect().l2_bytes / L2_SHARE)
    }

    /// The method that [`clear`](crate::clear) and [`copy`](crate::copy) use. A program can set this method
    /// by [`Method::choose`]. If the program has not set a method, the first call sets the result of
    /// [`Method::detect`]. Later calls cost one load from memory.
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

    /// Makes `self` the method of [`clear`](crate::clear) and [`copy`](crate::copy) for all threads.
    pub fn choose(self) {
        CHOSEN.set(self.kernel, (self.radius_pages as u32) << 3 | self.order as u32);
    }

    fn unpacked(kernel: Kernel, number: u32) -> Self {
        Self { order: VisitOrder::ALL[(number & 7) as usize], kernel, radius_pages: (number >> 3) as usize }
    }

    /// The order of visits to base pages.
    #[must_use]
    pub const fn order(self) -> VisitOrder {
        self.order
    }

    /// The kernel whose loops clear and copy.
    #[must_use]
    pub const fn kernel(self) -> Kernel {
        self.kernel
    }

    /// The radius: the number of base pages on each side of the hint's base page that stay in the cache, with
    /// [`VisitOrder::StreamTargetLast`].
    #[must_use]
    pub const fn radius_pages(self) -> usize {
        self.radius_pages
    }

    /// Clears a page in the method's visit order. `hint` is the offset in bytes that the program will touch
    /// next.
    ///
    /// The page's address and length must be multiples of [`BASE_PAGE_BYTES`]. The [`VisitOrder`] decides
    /// which part of the page stays in the cache. Takes O(bytes) time.
    ///
    /// # Errors
    ///
    /// An error if the memory is not a page, or if the hint is not in the page. A call that returns an error
    /// has written nothing.
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

    /// Copies a page in the method's visit order. `hint` is the offset in bytes that the program will touch
    /// next. Addresses and lengths of page and source must be multiples of [`BASE_PAGE_BYTES`]. Takes
    /// O(bytes) time.
    ///
    /// # Errors
    ///
    /// An error if page and source are not two pages of one size, or if the hint is not inside the pages. A
    /// call that returns an error has written nothing.
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

    /// Copies a page from a source that may fail half way. Reads one base page at a time, in the method's
    /// visit order, and stops after the first failure.
    ///
    /// # Errors
    ///
    /// [`CopyError::Poisoned`] says how many bytes this call copied. A call that returns
    /// [`CopyError::BadPage`] has written nothing.
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

    /// Calls `step` with the byte range of each step, and orders streamed stores before all later stores.
    fn each_step(self, bytes: usize, hint: Option<usize>, mut step: impl FnMut(usize, usize, Store)) {
        let target = hint.map(|offset| offset / BASE_PAGE_BYTES);
        let mut fence = None;
        for next in self.order.steps(bytes / BASE_PAGE_BYTES, target, self.radius_pages) {
            // One fence suffices for consecutive streamed steps. Execute the fence before the next cached
            // step, or at the end.
            if fence.is_none() || next.store == Store::Cached {
                fence = Fence::of(self.kernel, next.store);
            }
            step(next.pages.start * BASE_PAGE_BYTES, next.pages.end * BASE_PAGE_BYTES, next.store);
        }
    }
}
