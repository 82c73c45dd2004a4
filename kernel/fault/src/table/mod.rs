//! Page tables. All words are in one arena, and tables are identified by their numbers. `walk` goes from the
//! root to a word.
//!
//! A task reaches a word through the number of its table, so when a table is reused, no pointer dangles. Each
//! table in use also owns a frame of the allocator, as on a real machine.

mod arena;
mod walk;

pub(crate) use arena::TableArena;
pub(crate) use walk::{Found, Slot, walk};
