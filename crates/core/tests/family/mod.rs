//! One naive model that judges every `FrameAllocator` with the same random programs: on random machines, every operation,
//! misuse included. After each operation: every frame is somewhere, nobody's frame is handed out twice, every refusal is the
//! right one.
//!
//! `machine`, `operation` (what programs are made of), `model` (who has what), `subject` (the allocator, and what it promises
//! beyond the trait), `play`. `strategies` makes programs for proptest, `bytes` for the fuzz targets; neither is a part of
//! this module, since not everybody who has it has those crates. The core's tests, those of `pageset-blocks` and the fuzz
//! targets name this directory by its path.

pub(crate) mod machine;
pub(crate) mod model;
pub(crate) mod operation;
pub(crate) mod play;
pub(crate) mod subject;
