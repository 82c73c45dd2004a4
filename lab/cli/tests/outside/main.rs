//! The command as a program, and the repository as a whole. What changes its directory, or records the running kernel, is
//! a test target of its own.

mod documents;
mod examples;
mod facts;
mod files;
mod fleets;
mod foreign;
mod provenance;
mod python;
mod report;
mod shown;
mod sweep;
mod top;
mod unrecorded;
