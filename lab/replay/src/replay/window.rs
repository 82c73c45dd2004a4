//! The window: the part of a recording that is counted, both for the kernel and for the replay.

use std::io;

use serde::Serialize;

use super::load::PageSetLoad;
use super::machine::Machine;

/// A page set matters if at least one act in `PART_THAT_MATTERS` acts is for this page set.
const PART_THAT_MATTERS: usize = 100;

/// The part of a recording that is counted. The window ends with the recording.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Window {
    /// The number of allocations, frees and ticks before the window.
    pub skipped: u64,
    /// The window's part of all acts, from 0 to 1.
    pub share: f64,
    /// Whether the contents of the page sets at the window's beginning are known. The contents are known if
    /// the recording has the state of the machine at its beginning, or if each page set that matters was
    /// refilled or drained before the window.
    pub is_start_known: bool,
}

impl Window {
    /// The window of a recording without the kernel's decisions: the whole recording.
    pub(super) const OF_LOAD: Self = Self { skipped: 0, share: 1.0, is_start_known: false };

    /// Returns the window. If the contents of page sets at the beginning are known, the window is the whole
    /// recording. If the contents are not known, the window begins when each page set that matters has been
    /// refilled or drained, unless less than half of the recording would be left.
    pub(super) fn find(machine: &Machine, load: &PageSetLoad, is_start_known: bool) -> io::Result<Self> {
        let whole = Self { skipped: 0, share: 1.0, is_start_known };
        if is_start_known {
            return Ok(whole);
        }
        let sets = machine.sets();
        let mut acts = vec![0_usize; sets];
        load.acts.each_one(|act| {
            if act.kind.is_of_set() {
                acts[act.at as usize] += 1;
            }
        })?;
        let all: usize = acts.iter().sum();
        let mut first = vec![None; sets];
        load.decisions.each_one(|decided| {
            first[decided.set as usize].get_or_insert(decided.before as usize);
        })?;
        let matter = (0..sets).filter(|set| acts[*set] * PART_THAT_MATTERS >= all.max(1));
        let turned_over: Option<Vec<usize>> = matter.map(|set| first[set]).collect();
        let skipped = turned_over.and_then(|firsts| firsts.into_iter().max());
        // If less than half of the recording would be left, count the whole recording. The contents of page
        // sets at the beginning of the recording are then not known.
        Ok(match skipped.filter(|skipped| skipped * 2 <= load.acts.len()) {
            Some(skipped) => Self {
                skipped: skipped as u64,
                share: 1.0 - skipped as f64 / load.acts.len().max(1) as f64,
                is_start_known: true,
            },
            None => whole,
        })
    }

    pub(super) fn first_act(&self) -> usize {
        self.skipped as usize
    }
}
