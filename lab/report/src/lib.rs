//! Tables of results, and their export in several formats.
//!
//! A result is a [`Table`]: typed columns, one [`Row`] per policy or recording, notes, and a [`Provenance`],
//! the origin of the numbers. A table does not depend on files or terminals. An [`Exporter`] writes the table
//! in one [`Format`].
//!
//! The modules, in the order of their use for a result:
//!
//! - `cell`, `table`: the values. Numbers stay numbers until an exporter writes them.
//! - `foreign`: text from outside, made safe to show.
//! - `number`: numbers in the form that people read.
//! - `relative`: a table as percentages of its first row.
//! - `spread`: the statistics of several runs of one measurement.
//! - `histogram`, `matrix`: two kinds of results that are not rows, and their conversion to tables.
//! - `provenance`: command, version, machine, policies and `seeds` of a result.
//! - `origin`: whether a number was published, measured, simulated or fitted.
//! - `comparison`: published values beside ours, and the agreement between both.
//! - `plot`: results as pictures.
//! - `page`: results as one HTML file.
//! - `format`, `export`: an exporter for each format.
//! - `wrap`: text in lines of limited width.
//! - `progress`: the progress of work whose result is not ready.
//!
//! This crate depends on no other crate of the workspace.

mod cell;
pub mod comparison;
mod export;
mod foreign;
mod format;
mod histogram;
mod matrix;
mod number;
mod origin;
pub mod page;
pub mod plot;
mod progress;
mod provenance;
mod relative;
mod seeds;
mod spread;
mod table;
mod wrap;

pub use cell::Cell;
pub use export::{Exporter, json_document};
pub use foreign::{command_line, is_hidden, printable, printable_lines, shell_word};
pub use format::{Format, UnknownFormat};
pub use histogram::Histogram;
pub use matrix::Matrix;
pub use origin::Origin;
pub use progress::{Cancelled, Progress};
pub use provenance::Provenance;
pub use relative::{change_from_first, relative_to_first};
pub use seeds::Seeds;
pub use spread::Spread;
pub use table::{Align, Column, Kind, Row, Table};
pub use wrap::wrap;

/// Runs the example of the crate's README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
