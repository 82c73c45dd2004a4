//! Page tables: words in one arena, tables named by number, and the walk from the root to a word.
//!
//! Words are reached through their table's number, so that a table can be recycled without any pointer left behind.
//! Each table in use also owns a frame of the allocator, as a table in a real machine would.

mod arena;
mod walk;

pub(crate) use arena::Tables;
pub(crate) use walk::{Found, Slot, walk};
