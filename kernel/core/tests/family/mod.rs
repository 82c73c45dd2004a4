//! A simple model tests every `FrameAllocator` with the same random programs on random machines. A program
//! uses every operation, and also misuses operations. After each operation, the model checks that no frame is
//! lost, that no frame has two users, and that each refusal has the right error.
//!
//! `machine` and `operation` define programs, and `play` runs a program. `model` has the state of every
//! frame. `subject` is the interface to the allocator, with its promises beyond the trait.
//!
//! `strategies` makes programs for proptest, and `bytes` makes programs for the fuzz targets. The files of
//! `strategies` and `bytes` are outside this module, because only some users of this module have the crates
//! `proptest` or `arbitrary`. The tests of the core, the tests of `pageset-blocks` and the fuzz targets
//! include this directory by its path.

pub(crate) mod machine;
pub(crate) mod model;
pub(crate) mod operation;
pub(crate) mod play;
pub(crate) mod subject;
