//! Published studies run again: their tables with our values beside the printed ones.
//!
//! `study` says what a study is, and lists them; there is one file for each. `published` reads the printed tables.
//! `simulated` runs studies whose values come from simulations. `reproduction` is the result as one value.

mod batch_size;
mod high_order_pcp;
mod huge_copy;
mod page_fault;
mod pcp_auto_tuning;
mod published;
mod reproduction;
mod simulated;
mod study;

pub use reproduction::Reproduction;
pub use simulated::Fitted;
pub use study::{Findings, Options, STUDIES, Study, named, names};
