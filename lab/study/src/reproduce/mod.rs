//! Runs published studies again, and shows our values next to the values of each published table. Two studies
//! are this project's own.
//!
//! `study` defines what a study is. `study_file` reads studies that are described by files, and `simulated`
//! runs them. `goals` makes a study from a plan with goals. The folders `huge_copy`, `page_fault` and
//! `ageing` have the other studies. `published` reads the published tables, and `prose` reads the notes.
//! `reproduction` holds the result of a study.

mod ageing;
#[cfg(test)]
mod counts;
mod goals;
mod huge_copy;
mod page_fault;
mod prose;
mod published;
mod reproduction;
mod simulated;
mod study;
mod study_file;

use std::sync::LazyLock;

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

/// Studies that are files.
static FILES: LazyLock<Vec<StudyFile>> = LazyLock::new(|| StudyFile::bundled().collect());

static OWNED_BLOCKS: LazyLock<PlanWithGoals> = LazyLock::new(PlanWithGoals::owned_blocks);

/// Studies that are written as code.
const IN_CODE: &[&dyn Study] = &[&HugeCopy, &PageFault, &Ageing];

/// The study with this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static dyn Study> {
    STUDIES.iter().copied().find(|study| study.name() == name)
}

/// Name and summary of every study.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    STUDIES.iter().map(|study| (study.name(), study.summary()))
}

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
