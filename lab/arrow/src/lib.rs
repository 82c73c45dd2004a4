//! Recordings, tables and results of tasks as Arrow: record batches in memory, Parquet and Arrow files, and
//! datasets that many computers write together.
//!
//! | module | what it does |
//! |---|---|
//! | [`events`] | a recording's events, batch by batch |
//! | [`rows`] | values that can be written as JSON, as columns |
//! | [`table`] | a printed table, as columns |
//! | [`file`](mod@file) | batches as the bytes of a file |
//! | [`dataset`] | results of many tasks, each in a file that its key names |
//!
//! This crate computes no results: it writes the results of the lab.
#![forbid(unsafe_code)]

pub mod dataset;
pub mod events;
pub mod file;
pub mod rows;
pub mod table;

// Signatures of this crate's public functions contain types of `pageset_report` and `pageset_trace`.
pub use {pageset_report, pageset_trace};

pub use anyhow::Error;
pub use arrow_array::RecordBatch;
pub use arrow_schema::SchemaRef;

/// Runs the example of the crate's README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
