//! Page tables: words in one arena, tables identified by number, and the walk from the root to a word.
//!
//! Tasks reach words through their table's number, so a table that is used again leaves no dangling pointer.
//! Each table in use also owns a frame of the allocator, as on a real machine.

mod arena;
mod walk;

pub(crate) use arena::TableArena;
pub(crate) use walk::{Found, Slot, walk};
