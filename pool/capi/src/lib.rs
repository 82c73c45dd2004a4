//! The pool for C: `pageset.h`.
//!
//! Every function returns 0 or a number of `errno.h`; [`pageset_message`] says more. No input is trusted: a
//! handle is a number that is looked up, and a table says which pages are handed out. So misuse changes
//! nothing and gets an error.
//!
//! Files in the order of a call: `create` with `config`; `alloc` and `free` (pages); `memory` (all of a
//! pool); `report` (counters and memory); `facts` (constants). They find a pool by `pools` (handles), whose
//! `entry` knows which pages are handed out (`held`). `failure` is an error and a thread's message (`text`),
//! `sized` are structs that grow with versions, `array` are arrays of a caller.
//!
//! Functions are not `unsafe`, because only C calls them. The head of the header (`cbindgen.toml`) states the
//! promises of C: a pointer to a variable, struct, array or string is NULL or valid.

// In the order of the header.
mod config;

mod create;

mod alloc;

mod free;

mod memory;

mod report;

mod facts;

mod failure;

mod array;
mod entry;
mod held;
mod pools;
mod sized;
mod text;

pub use alloc::*;
pub use config::*;
pub use create::*;
pub use facts::*;
pub use failure::pageset_message;
pub use free::*;
pub use memory::{
    ProgressCallback, pageset_collapse, pageset_populate, pageset_resize, pageset_set_capacity,
    pageset_set_pinned, pageset_set_returns, pageset_take_over, pageset_tick, pageset_trim, pageset_validate,
};
pub use pools::PoolHandle;
pub use report::*;
