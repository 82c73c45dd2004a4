//! Tests of the command as a program, and of the repository as a whole. Tests that change their directory, or
//! record the running kernel, are separate test targets.

mod documents;
mod examples;
mod facts;
mod files;
mod fleets;
mod foreign;
mod memory;
mod provenance;
mod python;
mod report;
mod shown;
mod signals;
mod sweep;
mod times;
mod top;
mod unrecorded;
