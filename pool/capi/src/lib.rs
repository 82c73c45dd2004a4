//! The pool for C: `pageset.h`.
//!
//! Every function that can fail returns 0 or a number of `errno.h`, and [`pageset_message`] explains the
//! error. The library trusts no handle and no page. The library looks each handle up, and keeps a table of
//! the pages that C has. So the library refuses a wrong handle or a wrong page with an error.
//!
//! `create` and `config` make pools, and `alloc` and `free` serve pages. `memory` has calls on a whole pool,
//! `report` has counters, and `facts` has constants. Calls on a pool find the pool by its handle in `pools`.
//! `entry` has one `Entry` for each pool. Each `Entry` has a table `held`, which marks the pages that the C
//! program has. `failure` has errors and their messages (`text`), `sized` has structs that grow with
//! versions, and `array` has arrays of a caller.
//!
//! The functions are not `unsafe`, because only C calls them. The first comment of the header (in
//! `cbindgen.toml`) states what C promises: a pointer to a variable, struct, array or string is NULL or
//! valid.

// The header has the modules' functions in the order of these lines.
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
