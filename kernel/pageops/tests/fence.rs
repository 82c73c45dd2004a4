//! Tests functions of `Kernel` and `Method` that stream. Each function must execute a fence after its
//! streamed stores, before the function returns or panics. A missing fence seldom changes a result. So a
//! child process runs the function one instruction at a time, and its parent reads each instruction.
#![cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use memory::Memory;
use pageset_pageops::{BASE_PAGE_BYTES, Isa, Kernel, Method, Poisoned, Source, Store, Target, VisitOrder};

#[path = "outside/memory.rs"]
mod memory;

/// The exit status of a child that its parent is not allowed to trace.
const UNTRACEABLE: i32 = 77;

/// The numbers of streamed stores that a child executed.
#[derive(Debug, Default)]
struct Streams {
    stores: usize,
    /// The number of streamed stores since the last fence.
    unfenced: usize,
}

impl Streams {
    /// Counts an instruction that is about to run.
    fn note(&mut self, code: [u8; 8]) {
        // `movnti` may have a REX prefix.
        let plain = if code[0] & 0xF0 == 0x40 { &code[1..] } else { &code[..] };
        let is_store = match code {
            // These bytes are `vmovntdq` in its three encodings, and `clzero`.
            [0xC5, _, 0xE7, ..] | [0xC4, _, _, 0xE7, ..] | [0x62, _, _, _, 0xE7, ..] => true,
            [0x0F, 0x01, 0xFC, ..] => true,
            _ => plain.starts_with(&[0x0F, 0xC3]),
        };
        if is_store {
            self.stores += 1;
            self.unfenced += 1;
        } else if code.starts_with(&[0x0F, 0xAE, 0xF8]) {
            self.unfenced = 0;
        }
    }
}

/// Runs `function` in a child, one instruction at a time. Returns `None` if the system does not let a process
/// trace its child.
fn trace(function: impl FnOnce()) -> Option<Streams> {
    // SAFETY: the child runs code that takes no lock, and ends with `_exit`.
    let child = unsafe { libc::fork() };
    assert_ne!(child, -1, "{}", std::io::Error::last_os_error());
    if child == 0 {
        // SAFETY: the call asks that the parent trace this process, which changes no memory.
        if unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) } != 0 {
            // SAFETY: the call ends this process.
            unsafe { libc::_exit(UNTRACEABLE) };
        }
        // SAFETY: the signal stops this process until its parent continues it.
        unsafe { libc::raise(libc::SIGSTOP) };
        function();
        // SAFETY: the call ends this process.
        unsafe { libc::_exit(0) };
    }
    let mut streams = Streams::default();
    loop {
        let mut status = 0;
        // SAFETY: this function made the child, and `status` outlives the call.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        if libc::WIFEXITED(status) {
            let code = libc::WEXITSTATUS(status);
            assert!(code == 0 || code == UNTRACEABLE, "the child ended with {code}");
            return (code == 0).then_some(streams);
        }
        assert!(libc::WIFSTOPPED(status), "the child ended with status {status:#x}");
        streams.note(next_instruction(child));
        // SAFETY: the child is stopped, and this call makes the child run one instruction.
        assert_eq!(unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, child, 0, 0) }, 0);
    }
}

/// The first bytes of the next instruction of a stopped child.
fn next_instruction(child: libc::pid_t) -> [u8; 8] {
    let offset = std::mem::offset_of!(libc::user, regs) + std::mem::offset_of!(libc::user_regs_struct, rip);
    // SAFETY: the child is stopped, and the offset is the offset of a register.
    let at = unsafe { libc::ptrace(libc::PTRACE_PEEKUSER, child, offset, 0) };
    // SAFETY: the call reads the child's memory, or fails.
    unsafe { libc::ptrace(libc::PTRACE_PEEKTEXT, child, at, 0) }.to_ne_bytes()
}

/// Checks that a fence follows each kernel's streamed stores in `function`.
fn check(function: impl Fn(Kernel)) {
    check_of(Kernel::available(), function);
}

fn check_of(kernels: impl Iterator<Item = Kernel>, function: impl Fn(Kernel)) {
    for kernel in kernels {
        let Some(streams) = trace(|| function(kernel)) else {
            let _ =
                writeln!(std::io::stderr(), "SKIPPED: this system does not let a process trace its child");
            return;
        };
        assert_eq!(streams.stores > 0, kernel != Kernel::PORTABLE, "{kernel:?}: {streams:?}");
        assert_eq!(streams.unfenced, 0, "{kernel:?}: {streams:?}");
    }
}

/// A method and a hint for a page of three base pages. The method streams all base pages but the last.
fn method(kernel: Kernel) -> (Method, Option<usize>) {
    (Method::new(VisitOrder::StreamTargetLast, kernel, 0), Some(2 * BASE_PAGE_BYTES))
}

#[test]
fn a_kernel_fences_what_it_streams() {
    let source = Memory::patterned(BASE_PAGE_BYTES, 2);
    check(|kernel| {
        let mut page = Memory::new(BASE_PAGE_BYTES);
        kernel.clear((&mut page[..]).into(), Store::Stream);
    });
    check(|kernel| {
        let mut page = Memory::new(BASE_PAGE_BYTES);
        kernel.copy((&mut page[..]).into(), &source, Store::Stream);
    });
}

#[test]
fn a_method_fences_what_it_streams() {
    let source = Memory::patterned(3 * BASE_PAGE_BYTES, 2);
    for hint in [None, Some(2 * BASE_PAGE_BYTES)] {
        check(|kernel| {
            let mut page = Memory::new(3 * BASE_PAGE_BYTES);
            method(kernel).0.clear(&mut page[..], hint).expect("a page");
        });
        check(|kernel| {
            let mut page = Memory::new(3 * BASE_PAGE_BYTES);
            method(kernel).0.copy(&mut page[..], &source, hint).expect("two pages");
        });
    }
}

/// A source that panics after the first base page. At the moment of the panic, no fence has followed the
/// streamed stores.
struct Panics<'s>(&'s [u8]);

impl Source for Panics<'_> {
    fn read(&mut self, offset: usize, target: Target<'_>) -> Result<(), Poisoned> {
        if offset > 0 {
            resume_unwind(Box::new(()));
        }
        target.copy(&self.0[..BASE_PAGE_BYTES]);
        Ok(())
    }
}

#[test]
fn a_copy_whose_source_panics_is_fenced() {
    let source = Memory::patterned(BASE_PAGE_BYTES, 2);
    // Test only one set of loops. Unwinding takes a hundred thousand instructions, and the parent process
    // single-steps the child through each instruction.
    check_of(Kernel::new(Isa::Rep).into_iter(), |kernel| {
        let mut page = Memory::new(3 * BASE_PAGE_BYTES);
        let (method, hint) = method(kernel);
        let copy = || method.copy_from(&mut page[..], &mut Panics(&source), hint);
        assert!(catch_unwind(AssertUnwindSafe(copy)).is_err());
    });
}
