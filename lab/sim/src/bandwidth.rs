//! Models the limited bandwidth of a node's memory. If CPUs request more bytes a second than the memory
//! serves, the CPUs wait.
//!
//! Time is divided into windows. A window is full once its requests keep memory busy for the length of the
//! window. If the window of a request is full, the request waits for the first later window that is not full.
//! The model ignores the order of requests within a window, because the simulator runs some CPUs ahead of
//! other CPUs and so receives requests slightly out of order.

use std::cell::Cell;

/// Length of a window, in picoseconds. A window is as long as the largest time that a CPU may run ahead of
/// the other CPUs (20 µs), and shorter than a phase of a workload.
const WINDOW_PS: u64 = 20_000_000;
/// Number of windows that the model keeps for a node. A request waits at most for the length of `WINDOWS`
/// windows.
const WINDOWS: usize = 64;

/// Records for each node how long its memory is busy in each window.
#[derive(Debug)]
pub(crate) struct Bandwidth(Box<[Bus]>);

/// The busy time of one node's memory in each window of time. Window `n` is at index `n` modulo [`WINDOWS`].
/// An entry has the number of a window, and the picoseconds that memory is busy in the window.
#[derive(Debug)]
struct Bus([Cell<(u64, u64)>; WINDOWS]);

impl Bandwidth {
    pub(crate) fn new(nodes: usize) -> Self {
        Self((0..nodes).map(|_| Bus([const { Cell::new((0, 0)) }; WINDOWS])).collect())
    }

    /// Records a request at `now_ps` that keeps a node's memory busy for `service_ps`. Returns how long the
    /// CPU waits before memory serves the request.
    #[inline]
    pub(crate) fn wait_ps(&self, node: usize, now_ps: u64, service_ps: u64) -> u64 {
        let Some(bus) = self.0.get(node) else { return 0 };
        let first = now_ps / WINDOW_PS;
        for window in first..first.saturating_add(WINDOWS as u64) {
            let place = &bus.0[(window % WINDOWS as u64) as usize];
            let (number, busy_ps) = place.get();
            let busy_ps = if number == window { busy_ps } else { 0 };
            if busy_ps < WINDOW_PS && number <= window {
                place.set((window, busy_ps.saturating_add(service_ps)));
                return window.saturating_mul(WINDOW_PS).saturating_sub(now_ps);
            }
        }
        WINDOWS as u64 * WINDOW_PS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bus_serves_what_it_can_and_lets_the_others_wait() {
        let bandwidth = Bandwidth::new(2);
        let half = WINDOW_PS / 2;
        assert_eq!(bandwidth.wait_ps(0, 100, half), 0);
        assert_eq!(
            bandwidth.wait_ps(0, 50, half),
            0,
            "a CPU with an earlier clock finds room in the window too"
        );
        assert_eq!(bandwidth.wait_ps(0, 100, half), WINDOW_PS - 100, "the window is full");
        assert_eq!(bandwidth.wait_ps(0, WINDOW_PS, half), 0, "half of the next window is left");
        assert_eq!(bandwidth.wait_ps(0, WINDOW_PS, half), WINDOW_PS);
        assert_eq!(bandwidth.wait_ps(1, 100, half), 0, "each node has its own windows");
        assert_eq!(bandwidth.wait_ps(2, 100, half), 0, "no such node");
    }

    #[test]
    fn nobody_waits_for_ever() {
        let bandwidth = Bandwidth::new(1);
        let waits = (0..WINDOWS + 2).map(|_| bandwidth.wait_ps(0, 0, u64::MAX));
        assert_eq!(waits.max(), Some(WINDOWS as u64 * WINDOW_PS));
        bandwidth.wait_ps(0, u64::MAX, u64::MAX);
    }
}
