//! The coroutine of one virtual CPU: its stack, and the way back to the scheduler.
#![expect(
    unsafe_code,
    reason = "keeps a pointer to the coroutine's yielder, which only the coroutine's body could borrow"
)]

use std::cell::Cell;
use std::io;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

/// Size of the stack of a virtual CPU, in bytes. The operating system provides memory only for the touched
/// pages of a stack. The deepest path, a refill with fallback in a debug build, needs about 20 KiB. The stack
/// was chosen much larger.
const STACK_BYTES: usize = 256 << 10;

/// One virtual CPU's coroutine.
pub(crate) struct CpuCoroutine(Coroutine<(), (), ()>);

/// The handle through which a coroutine returns to the scheduler.
#[derive(Debug, Default)]
pub(crate) struct WayBack(Cell<Option<*const Yielder<(), ()>>>);

impl CpuCoroutine {
    /// Makes a coroutine that will run `body`. `body` must pass its argument to [`WayBack::during`] of the
    /// same CPU.
    pub(crate) fn new(body: impl FnOnce(&Yielder<(), ()>) + 'static) -> io::Result<Self> {
        Ok(Self(Coroutine::with_stack(DefaultStack::new(STACK_BYTES)?, move |yielder, ()| body(yielder))))
    }

    /// Runs the coroutine until it suspends or ends. Returns whether it has ended.
    pub(crate) fn resume(&mut self) -> bool {
        matches!(self.0.resume(()), CoroutineResult::Return(()))
    }

    /// Whether the coroutine has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.done()
    }
}

impl WayBack {
    /// Runs `body` on the coroutine that `yielder` belongs to. Until `body` returns,
    /// [`suspend`](Self::suspend) can return to the scheduler.
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

    /// Suspends this coroutine until the scheduler resumes it.
    ///
    /// # Panics
    /// Panics if the coroutine is not inside [`during`](Self::during).
    #[inline]
    pub(crate) fn suspend(&self) {
        let yielder = self.0.get().expect("only a virtual CPU's own code suspends it");
        // SAFETY: `during` made the pointer from a borrow, and keeps the borrow until it has removed the
        // pointer. This code runs inside `during` on the same coroutine, so the borrow is still valid.
        unsafe { &*yielder }.suspend(());
    }
}
