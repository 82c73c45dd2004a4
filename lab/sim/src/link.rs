//! Models the link between one plane (a network between nodes) and the memory that holds contended cache
//! lines.
//!
//! Planes are parallel networks between the nodes of a large machine. The address of a line decides which
//! plane carries the line. A line moves to one CPU at a time. If a second CPU asks for a moving line, the
//! machine refuses the request, and the CPU asks again. So each waiting CPU has one request on the link, and
//! the requests of waiting CPUs delay the line.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};

/// For each waiting CPU, the time when the CPU will have received its line, in picoseconds.
#[derive(Debug, Default)]
pub struct Link(Mutex<BinaryHeap<Reverse<u64>>>);

impl Link {
    /// Returns the number of CPUs that wait at `now` for a line of this link.
    pub(crate) fn waiting(&self, now: u64) -> u64 {
        let mut done = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while done.peek().is_some_and(|Reverse(done)| *done <= now) {
            done.pop();
        }
        done.len() as u64
    }

    /// Records that a CPU waits for a line of this link until `done`.
    pub(crate) fn waits_until(&self, done: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Reverse(done));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_has_its_line_does_not_wait() {
        let link = Link::default();
        [30, 10, 20].into_iter().for_each(|done| link.waits_until(done));
        assert_eq!([5, 10, 25, 30].map(|now| link.waiting(now)), [3, 2, 1, 0]);
    }
}
