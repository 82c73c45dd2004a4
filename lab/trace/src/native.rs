//! The project's own file, `.pgtrace`: versioned header, compressed blocks, index, footer.
//!
//! The book's chapter "The trace file" (`docs/book/src/trace-format.md`) describes every byte.

mod block;
mod column;
mod description;
mod encoders;
mod format;
mod index;
mod reader;
mod shapes;
mod spool;
mod writer;

pub(crate) use block::decode_payload;
pub(crate) use format::looks_native;
pub use index::BlockEntry;
pub use reader::NativeReader;
pub(crate) use spool::Spool;
pub use writer::{NativeWriter, WriteOptions};
