//! Makes pages Python objects. The buffer protocol gives access to their bytes without a copy.

use std::ffi::c_int;
use std::os::fd::RawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pageset::{AllocError, OwnedPages, PAGE_BYTES};
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::error::{bad_number, refused};
use crate::number::Whole;
use crate::pool::file_of;

/// Pages of a pool. `memoryview(pages)` and `numpy.frombuffer(pages, ...)` show their bytes without a copy.
/// `free()` and the end of a `with` block free the pages. Otherwise the pool gets the pages when neither the
/// object nor a view of the object exists any more.
#[pyclass(frozen, module = "pageset")]
pub(crate) struct Pages {
    state: Mutex<State>,
    page_count: usize,
    offset: usize,
}

/// # Invariants
/// If `views` is not 0, `pages` is not `None`.
struct State {
    pages: Option<OwnedPages>,
    views: usize,
    /// Whether a `with` block of the pages has ended. If views exist when the `with` block ends, the end of
    /// the last view frees the pages. After the end of the `with` block, no new view of the pages can be
    /// made.
    is_left: bool,
}

impl Pages {
    pub(crate) fn new(pages: OwnedPages) -> Self {
        let (page_count, offset) = (pages.page_count(), pages.offset());
        Self { state: Mutex::new(State { pages: Some(pages), views: 0, is_left: false }), page_count, offset }
    }

    /// Takes the pages out of this Python object. Returns `None` if the pages are free already.
    fn take(&self) -> PyResult<Option<OwnedPages>> {
        let mut state = self.state();
        if state.pages.as_ref().is_some_and(|pages| pages.pool().is_in_child()) {
            return Err(refused(AllocError::Forked));
        }
        if state.views > 0 {
            let views = state.views;
            let text = format!("the pages have {views} views: release memoryviews and arrays of them first");
            return Err(PyBufferError::new_err(text));
        }
        Ok(state.pages.take())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Pages {
    /// The number of pages of 4 KiB.
    #[getter]
    fn page_count(&self) -> usize {
        self.page_count
    }

    /// Bytes of all pages.
    #[getter]
    fn nbytes(&self) -> usize {
        self.page_count * PAGE_BYTES
    }

    /// The number of bytes from the pool's start to these pages.
    #[getter]
    fn offset(&self) -> usize {
        self.offset
    }

    /// Whether this object has no pages any more, because the program freed, discarded or split them.
    #[getter]
    fn is_free(&self) -> bool {
        self.state().pages.is_none()
    }

    /// Frees the pages now. Raises `BufferError` if there are views of the pages' bytes. Does nothing if the
    /// pages are free already.
    fn free(&self) -> PyResult<()> {
        self.take().map(drop)
    }

    /// Frees the pages now, and gives their memory back to the system at once. The pool knows that pages that
    /// went back are zero. Returns the number of bytes that the call gave back.
    fn discard(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.take()?.map_or(0, |pages| py.detach(|| pages.discard())))
    }

    /// Gives the memory of `count` of these pages back to the system, from page `first` on. This object keeps
    /// the pages. The pages that went back read as zeros, also through views of their bytes. Returns the
    /// number of bytes that the call gave back.
    fn give_back(&self, first: Whole<usize>, count: Whole<usize>) -> PyResult<usize> {
        let (Whole(first), Whole(count), all) = (first, count, self.page_count);
        let end = first.checked_add(count).filter(|end| *end <= all);
        let end = end.ok_or_else(|| {
            bad_number(format!("{count} pages from page {first} on reach beyond these {all} pages"))
        })?;
        let mut state = self.state();
        let pages = state.pages.as_mut().ok_or_else(|| PyValueError::new_err("the pages are free"))?;
        if pages.pool().is_in_child() {
            return Err(refused(AllocError::Forked));
        }
        Ok(pages.give_back(first..end))
    }

    /// Splits these pages into two objects: the first `count` pages and the other pages. Each part is freed
    /// separately. After the call, this object has no pages.
    fn split(&self, count: Whole<usize>) -> PyResult<(Self, Self)> {
        let Whole(count) = count;
        if count == 0 || count >= self.page_count {
            let all = self.page_count;
            return Err(bad_number(format!(
                "{count} of {all} pages are no part: each has one page at least"
            )));
        }
        let mut first = self.take()?.ok_or_else(|| PyValueError::new_err("the pages are free"))?;
        let rest = first.split_off(count);
        Ok((Self::new(first), Self::new(rest)))
    }

    /// Joins these pages with the pages `next`, which must begin where these pages end, as the opposite of
    /// `split`. Returns all pages as one object. After the call, the two joined objects have no pages.
    fn join(&self, next: &Self) -> PyResult<Self> {
        let free = || PyValueError::new_err("the pages are free");
        let mut first = self.take()?.ok_or_else(free)?;
        let others = next.take().and_then(|pages| pages.ok_or_else(free));
        let outcome = others.and_then(|pages| {
            first.join(pages).map_err(|pages| {
                next.state().pages = Some(pages);
                bad_number("the other pages do not begin where these end")
            })
        });
        match outcome {
            Ok(()) => Ok(Self::new(first)),
            Err(error) => {
                self.state().pages = Some(first);
                Err(error)
            }
        }
    }

    /// The descriptor of the pool's file, if the pool's backing is `memfd` or hugetlb. Another process finds
    /// the pages in the file by their `offset`.
    fn fileno(&self) -> PyResult<RawFd> {
        let state = self.state();
        let file = state.pages.as_ref().and_then(|pages| file_of(pages.pool()));
        file.ok_or_else(|| {
            refused("only pages of a pool whose backing is memfd or hugetlb have a file, until they are free")
        })
    }

    fn __len__(&self) -> usize {
        self.nbytes()
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Frees the pages now, or when the last view of the pages ends. Never raises an exception, because a new
    /// exception would hide an exception of the `with` block.
    fn __exit__(&self, _type: &Bound<'_, PyAny>, _value: &Bound<'_, PyAny>, _traceback: &Bound<'_, PyAny>) {
        let mut state = self.state();
        state.is_left = true;
        state.free_if_left();
    }

    fn __repr__(&self) -> String {
        let free = if self.is_free() { ", free" } else { "" };
        format!("<pageset.Pages: {} bytes at {:#x}{free}>", self.nbytes(), self.offset)
    }

    /// Makes a view of the bytes. The view keeps this object alive.
    ///
    /// # Safety
    /// `view` points to a buffer structure that this call may fill.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let pages = slf.get();
        let mut state = pages.state();
        let start = state.pages.as_ref().filter(|_| !state.is_left).map(OwnedPages::as_ptr);
        let start = start.ok_or_else(|| PyValueError::new_err("the pages are free"))?;
        let bytes = pages.nbytes() as ffi::Py_ssize_t;
        // SAFETY: Python passes a structure to fill. The bytes are mapped and initialised. The bytes stay
        // mapped, because the view keeps this object alive, and the pages are not freed while there are
        // views.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start.cast(), bytes, 0, flags) };
        if filled != 0 {
            return Err(PyErr::fetch(slf.py()));
        }
        state.views += 1;
        Ok(())
    }

    /// Releases a view.
    ///
    /// # Safety
    /// `__getbuffer__` of this object filled `view`, and the caller releases `view` once.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        let mut state = self.state();
        state.views = state.views.saturating_sub(1);
        state.free_if_left();
    }
}

impl State {
    fn free_if_left(&mut self) {
        if self.is_left && self.views == 0 {
            self.pages = None;
        }
    }
}
