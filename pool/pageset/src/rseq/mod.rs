//! Restartable sequences: short pieces of code that end with one store. If the thread is preempted, moved to
//! another CPU or interrupted by a signal before the last store, the kernel restarts the sequence. So a
//! thread can change its CPU's array without a lock or an atomic operation.
//!
//! glibc (2.35 and later) registers an area of each thread with the kernel. The module `rseq` only finds and
//! uses the area. Sources: the rseq(2) description in the kernel's documentation, and glibc's manual,
//! "Restartable Sequences".

#[cfg(not(sequences))]
mod absent;
#[cfg(sequences)]
mod first;
#[cfg(sequences)]
mod x86_64;

#[cfg(not(sequences))]
pub(crate) use absent::{Area, announce, area, cpu, pop, pop_many, push, push_first, push_many, restarts};
#[cfg(sequences)]
pub(crate) use first::announce;
#[cfg(sequences)]
pub(crate) use x86_64::{Area, area, cpu, pop, pop_many, push, push_first, push_many, restarts};

mod hot;

pub(crate) use hot::{Hot, HotPage};
