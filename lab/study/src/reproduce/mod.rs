//! Published studies run again: their tables with our values beside the printed ones. Two studies are our
//! own.
//!
//! `study` defines a study; each study has one file or folder. `published` reads the printed tables.
//! `simulated` runs studies whose values come from simulations. `reproduction` is the result as one value.

mod ageing;
mod batch_size;
#[cfg(test)]
mod counts;
mod drain_picks;
mod free_high_threshold;
mod high_order_pcp;
mod huge_copy;
mod kernel_build;
mod owned_blocks;
mod page_fault;
mod pcp_auto_tuning;
mod published;
mod recorded_build;
mod reproduction;
mod simulated;
mod sliced_frees;
mod study;
mod tick_spread;

pub use reproduction::{Group, Reproduction, Withdrawn};
pub use simulated::Fitted;
pub use study::{Findings, Options, Study};

use ageing::Ageing;
use batch_size::BatchSize;
use drain_picks::DrainPicks;
use free_high_threshold::FreeHighThreshold;
use high_order_pcp::HighOrderPcp;
use huge_copy::HugeCopy;
use owned_blocks::OwnedBlocks;
use page_fault::PageFault;
use pcp_auto_tuning::PcpAutoTuning;
use sliced_frees::SlicedFrees;
use tick_spread::TickSpread;

/// All studies, in the order of the help text.
pub const STUDIES: &[&dyn Study] = &[
    &PcpAutoTuning,
    &HighOrderPcp,
    &BatchSize,
    &HugeCopy,
    &PageFault,
    &DrainPicks,
    &FreeHighThreshold,
    &SlicedFrees,
    &TickSpread,
    &OwnedBlocks,
    &Ageing,
];

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
