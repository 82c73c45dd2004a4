//! Tests the readers from outside: bundled traces of every format, the native file, damage of all kinds, and
//! the book's example.

mod amount;
mod book;
mod bundled;
mod field;
mod formats;
mod native;
mod smoke;
