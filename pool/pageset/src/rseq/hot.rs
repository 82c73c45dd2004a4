//! Keeps the facts that a sequence needs to find its array, on a page that children of `fork` see as zero.

use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicU32,
    Ordering::{Relaxed, SeqCst},
};

#[cfg(not(sequences))]
use super::absent::forget;
#[cfg(sequences)]
use super::first::forget;
use crate::Backing;
use crate::arrays::{ArraySet, CpuArrays};
use crate::sys::{MapError, MapStep, Mapping, PAGE_BYTES, advice};

/// The facts that a restartable sequence needs to find its array. In a child of `fork`, all fields of `Hot`
/// are zero, so every operation takes the slow path.
///
/// # Invariants
/// `arrays` points to at least `cpus` arrays, which live as long as this value.
#[repr(C)]
pub(crate) struct Hot {
    /// The set of arrays in use.
    arrays: AtomicPtr<CpuArrays>,
    /// The number of CPUs that have arrays.
    cpus: AtomicU32,
}

/// The page with [`Hot`] on it, and the two sets of arrays. One set is in use.
pub(crate) struct HotPage {
    page: Mapping,
    sets: [ArraySet; 2],
}

impl HotPage {
    pub(crate) fn new(sets: [ArraySet; 2]) -> Result<Self, MapError> {
        let page = Mapping::new(PAGE_BYTES, Backing::Plain)?;
        advice::wipe_in_children(&page).map_err(|error| MapStep::Wipe.refused(error))?;
        let this = Self { page, sets };
        this.begin();
        Ok(this)
    }

    /// The content of the page.
    #[inline(always)]
    pub(crate) fn hot(&self) -> &Hot {
        // SAFETY: the page is mapped as long as this value lives, and is aligned. Its bytes are either zero
        // or a `Hot` that `begin` stored, and both are valid values.
        unsafe { self.page.start().cast::<Hot>().as_ref() }
    }

    /// Whether this process is a child of the process that owns the pool.
    #[inline]
    pub(crate) fn is_in_child(&self) -> bool {
        self.hot().cpus.load(Relaxed) == 0
    }

    /// Fills the page again in a child of `fork` that takes the pool over. Forgets all blocks in the arrays.
    pub(crate) fn take_over(&self) {
        self.all().for_each(CpuArrays::forget);
        self.begin();
    }

    /// Puts the first set into use.
    fn begin(&self) {
        // INVARIANT: the first set has this many arrays, and lives as long as this value.
        self.hot().arrays.store(ptr::from_ref(self.sets[0].cpus()).cast::<CpuArrays>().cast_mut(), SeqCst);
        self.hot().cpus.store(u32::try_from(self.sets[0].cpus().len()).unwrap_or(0), SeqCst);
    }

    /// Returns the arrays of each CPU, out of the set that threads use now.
    pub(crate) fn current(&self) -> &[CpuArrays] {
        self.sets[self.current_index()].cpus()
    }

    /// The arrays of both sets.
    pub(crate) fn all(&self) -> impl Iterator<Item = &CpuArrays> {
        self.sets.iter().flat_map(ArraySet::cpus)
    }

    /// Makes threads use the set of arrays that is not in use. Returns the arrays that were in use before.
    pub(crate) fn swap(&self) -> &[CpuArrays] {
        let old = self.current_index();
        // INVARIANT: both sets have the same length.
        let new = ptr::from_ref(self.sets[1 - old].cpus()).cast::<CpuArrays>().cast_mut();
        self.hot().arrays.store(new, SeqCst);
        self.sets[old].cpus()
    }

    fn current_index(&self) -> usize {
        let first = ptr::from_ref(self.sets[0].cpus()).cast::<CpuArrays>();
        usize::from(!ptr::eq(first, self.hot().arrays.load(SeqCst)))
    }
}

impl Drop for HotPage {
    fn drop(&mut self) {
        // Forget the pool before other memory can be mapped at the address of the pool's `Hot`.
        forget(self.hot());
    }
}
