//! Runs sweeps and studies, each of many simulations. A sweep runs the plan of a user. A study repeats
//! published measurements, and shows this project's values next to the values of each published table. The
//! studies `ageing` and `owned-blocks` are this project's own, without published tables.
//!
//! [`sweep`] runs plans. `study` has the interface of a study. `study_file` reads studies that files
//! describe, and `simulated` runs these studies. `goals` makes a study that says which goals of a plan a
//! policy meets. The folders `huge_copy`, `page_fault` and `ageing` have the other studies. `published` reads
//! the published tables, `prose` reads the notes, and `metric` names the figures of a simulation.
//! `reproduction` holds the result of a study.
//!
//! [`pageset_study`] does the simulations. The profile `release` does not optimise this crate, because no
//! loop in this crate's own code runs long.
#![forbid(unsafe_code)]

mod ageing;
#[cfg(test)]
mod counts;
#[doc(hidden)]
pub mod fuzzing;
mod goals;
mod huge_copy;
mod metric;
mod page_fault;
mod prose;
mod published;
mod reproduction;
mod simulated;
mod study;
mod study_file;
pub mod sweep;

use std::sync::LazyLock;

// Public signatures of this crate use types of the following crates.
pub use {pageset_report, pageset_study};

pub use anyhow::Error;

pub use reproduction::{Group, Reproduction, Withdrawn};
pub use simulated::Fitted;
pub use study::{Findings, Options, Study};
pub use study_file::StudyFile;

use ageing::Ageing;
use goals::PlanWithGoals;
use huge_copy::HugeCopy;
use page_fault::PageFault;

/// All studies, by name.
pub static STUDIES: LazyLock<Vec<&'static dyn Study>> = LazyLock::new(|| {
    let in_files = FILES.iter().map(|study| study as &dyn Study);
    let in_code = IN_CODE.iter().copied().chain([&*OWNED_BLOCKS as &dyn Study]);
    let mut studies: Vec<_> = in_files.chain(in_code).collect();
    studies.sort_by_key(|study| study.name());
    studies
});

/// Studies that files describe.
static FILES: LazyLock<Vec<StudyFile>> = LazyLock::new(|| StudyFile::bundled().collect());

static OWNED_BLOCKS: LazyLock<PlanWithGoals> = LazyLock::new(PlanWithGoals::owned_blocks);

/// Studies that are code.
const IN_CODE: &[&dyn Study] = &[&HugeCopy, &PageFault, &Ageing];

/// Returns the study called `name`.
#[must_use]
pub fn named(name: &str) -> Option<&'static dyn Study> {
    STUDIES.iter().copied().find(|study| study.name() == name)
}

/// Returns the name and the summary of every study.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    STUDIES.iter().map(|study| (study.name(), study.summary()))
}

/// The crate's README. Doc tests run its example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_can_be_typed() {
        for (index, (name, summary)) in names().enumerate() {
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{name}");
            assert!(!summary.ends_with('.') && summary.len() < 100, "{summary}");
            assert!(names().take(index).all(|(other, _)| other != name), "{name}");
            assert!(
                named(name)
                    .is_some_and(|study| study.figures().iter().all(|figure| figure.starts_with(name)))
            );
        }
    }
}
