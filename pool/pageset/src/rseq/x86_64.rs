//! The sequences for x86-64: pop and push, for one entry and for many entries.
//!
//! Each sequence first stores the address of its descriptor in the thread's area. Before the sequence's end,
//! the kernel may preempt the thread, move the thread to another CPU, or run a signal handler on the thread.
//! After an interruption, the kernel resumes the thread at the abort handler. The abort handler counts the
//! restart and begins the sequence again. The signature 0x53053053, which glibc registered, lies in front of
//! the abort handler. Only the last instruction, a store to the head word, changes what other code can read.

use std::arch::asm;
use std::num::NonZeroIsize;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Hot;
use super::first::{FIRST, First};
use crate::arrays::{Batch, Class, CpuArrays, Entry, StackAt};

/// The number of restarted sequences in all pools of the process.
static RESTARTS: AtomicU64 = AtomicU64::new(0);

/// The number of restarted sequences in all pools of the process.
pub(crate) fn restarts() -> u64 {
    RESTARTS.load(Relaxed)
}

const CPU_SHIFT: u32 = size_of::<CpuArrays>().trailing_zeros();
const _: () = assert!(size_of::<CpuArrays>() == 1 << CPU_SHIFT);

/// A registered area of 20 bytes has all fields that this module uses. Source: the size of `struct rseq` in
/// Linux 4.18.
const AREA_BYTES_MIN: u32 = 20;

/// The distance in bytes from each thread's thread pointer to its registered area. The function [`area`]
/// finds the distance of the area.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Area(NonZeroIsize);

impl Area {
    /// The distance, in bytes.
    pub(super) const fn distance(self) -> isize {
        self.0.get()
    }
}

/// Finds the place of each thread's area. Returns `None` if the C library registered no area: the library is
/// an old glibc or not glibc, or the tunable `glibc.pthread.rseq=0` is set.
pub(crate) fn area() -> Option<Area> {
    let size = symbol::<u32>(c"__rseq_size")?;
    let offset = symbol::<isize>(c"__rseq_offset")?;
    // At distance 0 lies the C library's own data of the thread. So an offset of 0 means that the C library
    // registered no rseq area.
    NonZeroIsize::new(offset).filter(|_| size >= AREA_BYTES_MIN).map(Area)
}

/// Reads a variable of the C library, if the library has a variable with this name.
fn symbol<T: Copy>(name: &std::ffi::CStr) -> Option<T> {
    // SAFETY: the name is a C string; looking a symbol up has no other effect.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if address.is_null() {
        return None;
    }
    // SAFETY: glibc documents these variables with these types, as constant after start-up.
    Some(unsafe { address.cast::<T>().read() })
}

/// Reads the number of the CPU that runs this thread from the thread's area. The kernel writes the number to
/// the area. Returns a number beyond all CPUs if the thread is not registered.
pub(crate) fn cpu(area: Area) -> usize {
    let cpu: u32;
    // SAFETY: an `Area` gives the place of this thread's registered area; the instruction only reads.
    unsafe {
        asm!(
            "mov {cpu:e}, dword ptr fs:[{area} + 4]",
            cpu = out(reg) cpu,
            area = in(reg) area.0.get(),
            options(nostack, readonly, preserves_flags),
        );
    }
    cpu as usize
}

/// Makes a sequence with its descriptor and its abort handler. The sequence begins at label 2, and the kernel
/// can restart the sequence between labels 4 and 5. The sequence executes the line `first`. After `first`,
/// the sequence finds this CPU's stack, or jumps to `without_arrays` if the CPU has no arrays. The caller's
/// lines change a copy of the stack's head word. The store of the changed copy ends the sequence.
///
/// The sequence is one line of assembly, because the compiler counts lines as instructions when the compiler
/// decides what to inline. Measured: a pop and a push together take 1.7 ns if the compiler inlines both, and
/// 3.0 ns as calls.
macro_rules! sequence {
    (first $first:literal, without_arrays $otherwise:literal, $($line:literal)*) => {
        concat!(
            "2: lea {at}, [rip + 3f];",
            "mov qword ptr fs:[{area} + 8], {at};",
            "4: mov {at:e}, dword ptr fs:[{area} + 4];",
            $first, ";",
            "cmp {at:e}, dword ptr [{hot} + 8];",
            "jae ", $otherwise, ";",
            "shl {at}, {shift};",
            "add {at}, qword ptr [{hot}];",
            "add {at}, {offset};",
            "mov {head}, qword ptr [{at}];",
            $($line, ";",)*
            "mov qword ptr [{at}], {head};",
            "5: .pushsection __rseq_cs, \"aw\"; .balign 32; 3: .long 0, 0; .quad 4b, 5b - 4b, 6f; .popsection;",
            ".pushsection __rseq_failure, \"ax\"; .byte 0x0f, 0xb9, 0x3d; .long 0x53053053;",
            "6: lock inc qword ptr [rip + {restarts}]; jmp 2b; .popsection",
        )
    };
}

/// Makes the sequence that puts an entry on a stack, or jumps to `full`.
macro_rules! push_sequence {
    () => {
        sequence!(
            first "", without_arrays "{full}",
            "movzx {count:e}, {head:x}"
            "cmp {count:e}, dword ptr [{at} + 8]"
            "jae {full}"
            "mov dword ptr [{at} + {count} * 4 + 16], {entry:e}"
            "add {head}, 1"
        )
    };
}

/// Takes the last entry of this CPU's stack. `None` if the stack is empty, or the CPU has no arrays.
#[inline(always)]
pub(crate) fn pop(hot: &Hot, area: Area, stack: StackAt) -> Option<Entry> {
    let entry: u32;
    // SAFETY: an `Area` gives the place of this thread's registered area. `Hot`'s invariant makes `arrays`
    // valid for every CPU below `cpus`. The entries below the count lie inside the stack. All instructions
    // before the last store only read.
    unsafe {
        asm!(
            sequence!(
                first "mov {entry:e}, -1", without_arrays "5f",
                "movzx {count:e}, {head:x}"
                "test {count:e}, {count:e}"
                "je 5f"
                "mov {entry:e}, dword ptr [{at} + {count} * 4 + 12]"
                "add {head}, 0xffff"
            ),
            hot = in(reg) std::ptr::from_ref(hot),
            area = in(reg) area.0.get(),
            count = out(reg) _,
            at = out(reg) _,
            head = out(reg) _,
            entry = out(reg) entry,
            offset = in(reg) stack.bytes(),
            shift = const CPU_SHIFT,
            restarts = sym RESTARTS,
            options(nostack),
        );
    }
    Entry::from_raw(entry)
}

/// Puts an entry on this CPU's stack. Returns `false` if the stack has no room, or the CPU has no arrays.
#[inline(always)]
pub(crate) fn push(hot: &Hot, area: Area, stack: StackAt, entry: Entry) -> bool {
    // SAFETY: as for `pop`. The entry is written to a slot behind the entries in use and below the capacity,
    // and no code reads slots behind the entries in use.
    unsafe {
        asm!(
            push_sequence!(),
            hot = in(reg) std::ptr::from_ref(hot),
            entry = in(reg) entry.raw(),
            area = in(reg) area.0.get(),
            count = out(reg) _,
            at = out(reg) _,
            head = out(reg) _,
            full = label { return false },
            offset = in(reg) stack.bytes(),
            shift = const CPU_SHIFT,
            restarts = sym RESTARTS,
            options(nostack),
        );
    }
    true
}

/// Puts a single page on this CPU's stack if `hot` is the process's [first pool](FIRST). Returns
/// `Some(false)` if the stack has no room, or if the CPU has no arrays. Returns `None` if `hot` belongs to
/// another pool.
#[inline(always)]
pub(crate) fn push_first(hot: &Hot, entry: Entry) -> Option<bool> {
    // SAFETY: as for `push`. If the addresses are equal, `hot` belongs to the first pool. `hot` is borrowed,
    // so the first pool is not dropped meanwhile.
    unsafe {
        asm!(
            concat!(
                "cmp {hot}, qword ptr [rip + {first} + {at_pool}];",
                "jne {other};",
                "mov {area}, qword ptr [rip + {first} + {at_area}];",
                "mov {hot}, qword ptr [rip + {first} + {at_hot}];",
                push_sequence!(),
            ),
            hot = inout(reg) std::ptr::from_ref(hot) => _,
            entry = in(reg) entry.raw(),
            area = out(reg) _,
            count = out(reg) _,
            at = out(reg) _,
            head = out(reg) _,
            full = label { return Some(false) },
            other = label { return None },
            first = sym FIRST,
            at_pool = const First::POOL,
            at_hot = const First::HOT,
            at_area = const First::AREA,
            offset = const StackAt::of_class(Class::Order0).bytes(),
            shift = const CPU_SHIFT,
            restarts = sym RESTARTS,
            options(nostack),
        );
    }
    Some(true)
}

/// Moves up to `limit` entries of this CPU's stack into an empty batch. Takes the entries that were put last.
/// Moved entries are not counted as pops.
#[inline(never)]
pub(crate) fn pop_many(hot: &Hot, area: Area, stack: StackAt, limit: usize, batch: &mut Batch) {
    let taken: usize;
    // SAFETY: as for `pop`. The copy may read up to three entries beyond the count. The entries beyond the
    // count lie in the stack, and the batch has room for them. Entries that were written to the batch before
    // a restart are written again.
    unsafe {
        asm!(
            sequence!(
                first "xor {taken:e}, {taken:e}", without_arrays "5f",
                "movzx {from:e}, {head:x}"
                "cmp {from}, {limit}"
                "mov {taken}, {limit}"
                "cmovb {taken}, {from}"
                "sub {from}, {taken}"
                "lea {from}, [{at} + {from} * 4 + 16]"
                "sub {head}, {taken}"
                "xor {index:e}, {index:e}"
                "7:"
                "movups {copy}, xmmword ptr [{from} + {index} * 4]"
                "movups xmmword ptr [{to} + {index} * 4], {copy}"
                "add {index}, 4"
                "cmp {index}, {taken}"
                "jb 7b"
            ),
            hot = in(reg) std::ptr::from_ref(hot),
            area = in(reg) area.0.get(),
            limit = in(reg) limit.min(batch.capacity()),
            to = in(reg) batch.room(),
            at = out(reg) _,
            head = out(reg) _,
            from = out(reg) _,
            index = out(reg) _,
            taken = out(reg) taken,
            copy = out(xmm_reg) _,
            offset = in(reg) stack.bytes(),
            shift = const CPU_SHIFT,
            restarts = sym RESTARTS,
            options(nostack),
        );
    }
    batch.note_filled(taken);
}

/// Puts entries of a batch on this CPU's stack, up to the stack's capacity. The other entries stay in the
/// batch. If the stack holds more than its capacity, because the capacity has shrunk, all entries stay in the
/// batch.
#[inline(never)]
pub(crate) fn push_many(hot: &Hot, area: Area, stack: StackAt, batch: &mut Batch) {
    let pushed: usize;
    // SAFETY: as for `push`. The copy may read up to three entries beyond the batch's last entry. The entries
    // beyond the last entry lie in the batch's memory, and the stack has room for them behind its capacity.
    unsafe {
        asm!(
            sequence!(
                first "xor {pushed:e}, {pushed:e}", without_arrays "5f",
                "movzx {to:e}, {head:x}"
                "mov {pushed:e}, dword ptr [{at} + 8]"
                "sub {pushed}, {to}"
                "jae 9f"
                "xor {pushed:e}, {pushed:e}"
                "9:"
                "lea {to}, [{at} + {to} * 4 + 16]"
                "cmp {pushed}, {len}"
                "cmova {pushed}, {len}"
                "add {head}, {pushed}"
                "xor {index:e}, {index:e}"
                "7:"
                "cmp {index}, {pushed}"
                "jae 8f"
                "movups {copy}, xmmword ptr [{from} + {index} * 4]"
                "movups xmmword ptr [{to} + {index} * 4], {copy}"
                "add {index}, 4"
                "jmp 7b"
                "8:"
            ),
            hot = in(reg) std::ptr::from_ref(hot),
            area = in(reg) area.0.get(),
            len = in(reg) batch.len(),
            from = in(reg) batch.front(),
            at = out(reg) _,
            head = out(reg) _,
            to = out(reg) _,
            index = out(reg) _,
            pushed = out(reg) pushed,
            copy = out(xmm_reg) _,
            offset = in(reg) stack.bytes(),
            shift = const CPU_SHIFT,
            restarts = sym RESTARTS,
            options(nostack),
        );
    }
    batch.forget_front(pushed);
}
