//! The loops of the instruction sets, with one file for each instruction set. All unsafe code of the crate is
//! in this folder.
//!
//! The file of an instruction set has one [`Primitives`]: four loops that get only addresses and lengths.
//! [`Isa`] lists the instruction sets. A [`Kernel`] is an instruction set that this CPU supports, with its
//! loops.

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod aarch64;
mod isa;
mod page;
mod portable;
mod prefetch;
#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
mod vector_state;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64;

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

pub use isa::Isa;
pub use page::Page;
pub use prefetch::prefetch;
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) use x86_64::cpuid::cache_bytes;

use isa::Primitives;

use crate::BASE_PAGE_BYTES;
use crate::visit_order::Store;

/// The loops of an instruction set. `None` if this build does not contain loops of this set.
fn primitives_of(isa: Isa) -> Option<&'static Primitives> {
    match isa {
        Isa::Portable => Some(&portable::PRIMITIVES),
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        _ => x86_64::primitives(isa),
        #[cfg(all(target_arch = "aarch64", not(miri)))]
        Isa::Zva => Some(&aarch64::PRIMITIVES),
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        _ => None,
    }
}

/// An instruction set that this CPU supports, with its loops.
///
/// # Invariants
///
/// The CPU supports the instruction set, and the operating system saves the registers of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    isa: Isa,
}

impl Kernel {
    /// A kernel that works on every CPU.
    // INVARIANT: the portable loops use only the language's own operations.
    pub const PORTABLE: Self = Self { isa: Isa::Portable };

    /// The kernel with this instruction set, if the CPU supports the set.
    ///
    /// Each call asks the CPU for its features, which takes microseconds in a virtual machine. So keep the
    /// returned kernel.
    #[must_use]
    pub fn new(isa: Isa) -> Option<Self> {
        let is_present = match isa {
            Isa::Portable => true,
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            _ => x86_64::has(isa),
            #[cfg(all(target_arch = "aarch64", not(miri)))]
            Isa::Zva => true,
            #[cfg(not(all(target_arch = "x86_64", not(miri))))]
            _ => false,
        };
        // INVARIANT: the check above has found that the CPU supports the set.
        (is_present && primitives_of(isa).is_some()).then_some(Self { isa })
    }

    /// Lists the kernels (sets of loops) whose instruction set this CPU supports.
    pub fn available() -> impl Iterator<Item = Self> {
        Isa::ALL.into_iter().filter_map(Self::new)
    }

    /// The kernel's instruction set.
    #[must_use]
    pub const fn isa(self) -> Isa {
        self.isa
    }

    /// Clears a page. When the call returns, its streamed stores are ordered before every later store of this
    /// CPU.
    ///
    /// # Panics
    ///
    /// Panics if address or length is not a multiple of [`BASE_PAGE_BYTES`].
    #[inline]
    pub fn clear(self, page: Page<'_>, store: Store) {
        let _fence = Fence::of(self, store);
        self.clear_unfenced(page, store);
    }

    /// Copies a page. When the call returns, its streamed stores are ordered before every later store of this
    /// CPU.
    ///
    /// # Panics
    ///
    /// Panics if an address or the length is not a multiple of [`BASE_PAGE_BYTES`], or if the lengths differ.
    #[inline]
    pub fn copy(self, page: Page<'_>, source: &[u8], store: Store) {
        let _fence = Fence::of(self, store);
        self.copy_unfenced(page, source, store);
    }

    /// Clears a page as [`clear`](Self::clear) does, but executes no fence. After streamed stores, the caller
    /// needs a [`Fence`] before any other access to the page.
    #[inline]
    pub(crate) fn clear_unfenced(self, page: Page<'_>, store: Store) {
        assert_base_pages(page.start().addr().get(), page.bytes());
        let primitives = self.primitives();
        let clear = match store {
            Store::Cached => primitives.clear,
            Store::Stream => primitives.clear_stream,
        };
        // SAFETY: by the invariants of `self` and `page`, the CPU supports the set and the page may be
        // written. The check above has confirmed that the page consists of base pages.
        unsafe { clear(page.start().as_ptr(), page.bytes()) }
    }

    /// Copies a page as [`copy`](Self::copy) does, but executes no fence. After streamed stores, the caller
    /// needs a [`Fence`] before any other access to the page.
    #[inline]
    pub(crate) fn copy_unfenced(self, page: Page<'_>, source: &[u8], store: Store) {
        assert_base_pages(page.start().addr().get(), page.bytes());
        assert_base_pages(source.as_ptr().addr(), page.bytes());
        assert_eq!(page.bytes(), source.len(), "source and destination have the same length");
        let primitives = self.primitives();
        let copy = match store {
            Store::Cached => primitives.copy,
            Store::Stream => primitives.copy_stream,
        };
        // SAFETY: by the invariants of `self` and `page`, the CPU supports the set and the page may be
        // written. Nothing else refers to the page, so the source does not overlap the page. The checks above
        // have confirmed that page and source consist of base pages.
        unsafe { copy(page.start().as_ptr(), source.as_ptr(), page.bytes()) }
    }

    fn primitives(self) -> &'static Primitives {
        primitives_of(self.isa).expect("a kernel is made only of sets that are compiled in")
    }
}

/// A value whose drop orders streamed stores before all later stores of this CPU. A panic of a caller's code
/// between the stores also drops the `Fence`.
pub(crate) struct Fence(Kernel);

impl Fence {
    /// Makes the fence that stores of this kind need, or returns `None` for cached stores.
    #[inline]
    pub(crate) fn of(kernel: Kernel, store: Store) -> Option<Self> {
        (store == Store::Stream).then_some(Self(kernel))
    }
}

impl Drop for Fence {
    #[inline]
    fn drop(&mut self) {
        (self.0.primitives().fence)();
    }
}

fn assert_base_pages(address: usize, bytes: usize) {
    assert!(
        (address | bytes).is_multiple_of(BASE_PAGE_BYTES),
        "{bytes} bytes at {address:#x} are not base pages"
    );
}

/// A [`Kernel`] (a set of loops) and a number, in one atomic word that all threads use. A new cell is empty.
///
/// # Invariants
///
/// The word's low byte is 0, or the number of an instruction set plus 1. If the low byte is not 0,
/// [`Cell::set`] stored the byte for a [`Kernel`] with that instruction set. So the CPU supports the
/// instruction set. Only [`Cell::set`] writes the word.
pub(crate) struct Cell(AtomicU32);

impl Cell {
    pub(crate) const fn new() -> Self {
        // INVARIANT: the low byte is 0.
        Self(AtomicU32::new(0))
    }

    /// Stores a kernel, and the low 24 bits of `number`.
    pub(crate) fn set(&self, kernel: Kernel, number: u32) {
        // INVARIANT: a `Kernel` value exists, so the CPU supports the kernel's instruction set.
        self.0.store(number << 8 | (kernel.isa as u32 + 1), Relaxed);
    }

    pub(crate) fn get(&self) -> Option<(Kernel, u32)> {
        let bits = self.0.load(Relaxed);
        let isa = *Isa::ALL.get(((bits & 0xFF) as usize).checked_sub(1)?)?;
        // INVARIANT: by the cell's invariant, the CPU supports the instruction set `isa`.
        Some((Kernel { isa }, bits >> 8))
    }
}
