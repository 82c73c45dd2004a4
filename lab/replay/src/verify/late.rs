//! Finds allocations that are reported late: other tasks run between a task's allocation and the event that
//! reports it.

use pageset_trace::EventKind;

use super::engine::Engine;
use super::links::Chunk;
use super::mode::Mode;
use super::numbers::Place;

/// Maximum number of later events that are searched for late reports.
const SEARCHED: usize = 1 << 14;

impl Engine {
    /// Records that the model has made an allocation. The event of this allocation comes later, on the CPU
    /// `reported_on`.
    pub(super) fn expect_report(&mut self, place: Place, reported_on: u16) {
        // The machine may lack a CPU that the recording names.
        if let Some(cpu) = self.cpus.get_mut(usize::from(reported_on)) {
            cpu.popped_early.push(place.frame);
        }
    }

    /// Whether late reports explain that the kernel's count is `pages` pages smaller than the model's count.
    /// If so, takes the blocks of these reports off the page set now.
    pub(super) fn take_reported_late(&mut self, chunk: &Chunk, now: usize, set: usize, pages: i32) -> bool {
        if !self.has_bulk_events || self.mode == Mode::Free || pages <= 0 {
            return false;
        }
        let (mut left, mut taken) = (pages, Vec::new());
        for (place, cpu) in self.reported_late(chunk, now, set) {
            let Some(home) = self.home(place) else { continue };
            left -= self.sets[set].pcp.scheme().order(home.list).frames() as i32;
            taken.push((place, home, cpu));
            if left <= 0 {
                break;
            }
        }
        if left == 0 {
            taken.into_iter().for_each(|(place, home, cpu)| self.take_early(place, home, cpu));
        }
        left == 0
    }

    /// Returns the blocks of a page set whose allocation an interrupted task will report later, each with the
    /// CPU of the report. The task may have taken such a block already.
    pub(super) fn reported_late(&self, chunk: &Chunk, now: usize, set: usize) -> Vec<(Place, u16)> {
        let cpu = set % self.cpus.len();
        let later = now + 1..chunk.events.len().min(now + SEARCHED);
        later
            .filter(|at| is_late(chunk, (now, *at)))
            .filter(|at| {
                chunk.stopped_at(*at, now).is_some_and(|before| usize::from(chunk.events[before].cpu) == cpu)
            })
            .filter_map(|at| Some((self.geometry.locate(chunk.events[at].pfn)?, chunk.events[at].cpu)))
            .filter(|(place, _)| self.home(*place).is_some_and(|home| home.set == set))
            .collect()
    }
}

/// Whether the event at `at` reports an allocation late. The task of a late report may have taken the block
/// before `now`, and other tasks ran before the report.
pub(super) fn is_late(chunk: &Chunk, (now, at): (usize, usize)) -> bool {
    let is_alloc = chunk.events.get(at).is_some_and(|event| event.kind == EventKind::MmPageAlloc);
    is_alloc && chunk.stopped_at(at, now).is_some()
}
