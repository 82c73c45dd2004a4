//! A simple model tests every `FrameAllocator` with the same random programs on random machines. Programs
//! use every operation, also wrongly. After each operation, the model checks that no frame is lost, that no
//! frame has two users, and that each refusal has the right error.
//!
//! `machine` and `operation` (parts of programs), `model` (the state of every frame), `subject` (the
//! allocator, and its promises beyond the trait), `play`.
//!
//! `strategies` makes programs for proptest, and `bytes` makes them for the fuzz targets. Neither is a part
//! of this module, because not every user has those crates. The tests of the core, the tests of
//! `pageset-blocks` and the fuzz targets name this directory by its path.

pub(crate) mod machine;
pub(crate) mod model;
pub(crate) mod operation;
pub(crate) mod play;
pub(crate) mod subject;
