//! Our own allocator beside Linux's, on simulated machines. No text publishes these results. The goals were
//! set before the runs.
//!
//! `grid` has the runs, `axes` the figures, `tables` the result.

mod axes;
mod grid;
mod tables;

use anyhow::Result;
use pageset_report::Progress;

use super::study::{Findings, Options, Study};

/// See [`Study`].
#[derive(Debug)]
pub(crate) struct OwnedBlocks;

impl Study for OwnedBlocks {
    fn name(&self) -> &'static str {
        "owned-blocks"
    }

    fn summary(&self) -> &'static str {
        "our own allocator beside Linux's policies: the RFC's cases and the studies' loads, 36 to 768 CPUs"
    }

    fn figures(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn run(&self, options: &Options, progress: &mut dyn Progress) -> Result<Findings> {
        let found = grid::run(options, progress)?;
        let mut more = vec![tables::verdict(&found)];
        more.extend(tables::by_size(&found));
        more.push(tables::lines(&found));
        let mut machines: Vec<_> = found.iter().map(|found| found.place.machine).collect();
        machines.dedup();
        Ok(Findings {
            more,
            notes: NOTES.map(str::to_owned).to_vec(),
            explanations: tables::losses(&found).into_iter().chain(options.reasons(&REASONS)).collect(),
            machine: format!("simulated: {}", machines.join(", ")),
            policies: grid::LINUX.into_iter().chain(grid::OURS).map(str::to_owned).collect(),
            seeds: Some(options.seeds()),
            ..Findings::default()
        })
    }
}

const NOTES: [&str; 6] = [
    "Nothing here is published, and nothing was fitted. Values are means over all seeds. A score that is less counts as a miss \
     only if every seed says so.",
    "`visits`: a CPU took a zone's lock; of ours, it changed what all CPUs of a zone share, or a pageblock that another CPU had \
     changed less than 10 us before; `passed` counts all pageblocks that another CPU had changed last. `lines`: all lines of ours \
     that a CPU got from others. A visit of Linux's may hold the lock for thousands of pages, and its lines are not counted. `shared` is the time of both: waiting for zone locks and holding them, or until lines \
     came, in percent of all busy time.",
    "`held`: free pages that CPUs keep back from all others, on average and after two ticks of an idle machine. Linux's is compared \
     after 30 ticks there.",
    "Factors are of both counts plus one, and of both shares of time plus 0.001 %, since either may be 0.",
    "An operation of ours costs as much time as Linux's, besides its lines and exchanges, although it is shorter. Both touch the \
     frame's own line.",
    "Virtual CPUs meet at atomic operations on lines that others have, and nowhere else. See the page on limits.",
];

const REASONS: [&str; 3] = [
    "Lines: a CPU of ours gives half an array back to as many lines as the blocks in it have, wherever these are. A large page set \
     of Linux's goes to its zone once for thousands of pages, and holds the lock for as long as moving them takes.",
    "p99.9: one allocation in 32 fills an array, and one in 512 takes another pageblock, whose lines are cold. That is more than 1 \
     in 1000. Linux's page sets refill less often: what they wait for then is in the mean and in the longest time.",
    "Pages held: a CPU's arrays have up to 64 single pages of each type, up to 128 in blocks of each order from 1 to 3, and two \
     pageblocks.",
];
