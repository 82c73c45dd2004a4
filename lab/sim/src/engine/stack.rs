//! The coroutine of one virtual CPU, called a strand here: its stack, and the way back to the scheduler.
#![expect(
    unsafe_code,
    reason = "keeps a pointer to the coroutine's yielder, which only the coroutine's body could borrow"
)]

use std::cell::Cell;
use std::io;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

/// Bytes of stack of a virtual CPU. The system provides memory only for the touched pages of a stack. The
/// value is a guess, several times the need. The deepest path (a debug build's refill with fallback, under a
/// workload) needs about 20 KiB.
const STACK_BYTES: usize = 256 << 10;

/// One virtual CPU's coroutine.
pub(crate) struct Strand(Coroutine<(), (), ()>);

/// The handle through which a strand's code returns to the scheduler.
#[derive(Debug, Default)]
pub(crate) struct WayBack(Cell<Option<*const Yielder<(), ()>>>);

impl Strand {
    /// Makes a strand that will run `body`. `body` must pass its argument to [`WayBack::during`] of the same
    /// CPU.
    pub(crate) fn new(body: impl FnOnce(&Yielder<(), ()>) + 'static) -> io::Result<Self> {
        Ok(Self(Coroutine::with_stack(DefaultStack::new(STACK_BYTES)?, move |yielder, ()| body(yielder))))
    }

    /// Runs the strand until it suspends or ends. Returns whether the strand has ended.
    pub(crate) fn resume(&mut self) -> bool {
        matches!(self.0.resume(()), CoroutineResult::Return(()))
    }

    /// Whether the strand's code has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.done()
    }
}

impl WayBack {
    /// Runs `body` on the strand that `yielder` belongs to. Until `body` returns, [`suspend`](Self::suspend)
    /// can return to the scheduler.
    pub(crate) fn during<R>(&self, yielder: &Yielder<(), ()>, body: impl FnOnce() -> R) -> R {
        struct Forget<'a>(&'a WayBack);
        impl Drop for Forget<'_> {
            fn drop(&mut self) {
                self.0.0.set(None);
            }
        }
        self.0.set(Some(yielder));
        let _forget = Forget(self);
        body()
    }

    /// Suspends this strand: the scheduler runs until it resumes the strand.
    ///
    /// # Panics
    /// Panics if the strand is not inside [`during`](Self::during).
    #[inline]
    pub(crate) fn suspend(&self) {
        let yielder = self.0.get().expect("only a virtual CPU's own code suspends it");
        // SAFETY: `during` made the pointer from a borrow, and keeps the borrow until it has removed the
        // pointer. This code runs inside `during` on the same strand, so the borrow is still valid.
        unsafe { &*yielder }.suspend(());
    }
}
