//! Page tables. The words of all page tables of an engine are in one array, and a number names each table.
//! `walk` goes from the root to a word.
//!
//! A task reaches a word by the number of the word's table, so the reuse of a table leaves no dangling
//! pointer. Each table in use also has a frame of the allocator, as on a real machine.

mod arena;
mod walk;

pub(crate) use arena::TableArena;
pub(crate) use walk::{Found, Slot, walk};
