//! Moves the acts of a recording to other CPUs, as if the scheduler had given tasks to other CPUs.
//!
//! The recording is divided into stretches of equal length. In each stretch, all CPUs of a node are shifted
//! by the same random number of places in the list of the node's CPUs. The allocations and frees of a CPU go
//! to the CPU that is at the new place in this list. Ticks stay with their CPU, because they do not depend on
//! the tasks that the CPU runs.

/// Chooses the CPU that gets each CPU's acts, anew in each stretch of the recording.
pub(super) struct Exchange {
    /// For each node, the list of its CPUs.
    nodes: Vec<Vec<usize>>,
    /// For each recorded page set, the page set that gets the recorded set's acts in the current stretch.
    places: Vec<u32>,
    cpus: usize,
    stretches: usize,
    /// Number of stretches that have begun.
    begun: usize,
    /// The number of acts in the whole recording.
    all: usize,
    /// The index of the first act of the next stretch.
    next: usize,
}

impl Exchange {
    /// `all` is the number of acts in the recording.
    pub(super) fn new(node_of_cpu: &[u16], sets: usize, stretches: usize, all: usize) -> Self {
        let mut numbers = node_of_cpu.to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        let cpus_of = |node| (0..node_of_cpu.len()).filter(|cpu| node_of_cpu[*cpu] == node).collect();
        Self {
            nodes: numbers.into_iter().map(cpus_of).collect(),
            places: (0..sets as u32).collect(),
            cpus: node_of_cpu.len(),
            stretches,
            begun: 0,
            all,
            next: 0,
        }
    }

    /// For each recorded page set, returns the page set that gets the recorded set's acts from act `at` on.
    /// Also returns the index of the first act of the next stretch. These places hold for the acts before it.
    /// Calls must be in the order of the recording.
    pub(super) fn places_from(&mut self, at: usize) -> (&[u32], usize) {
        while at == self.next && self.begun < self.stretches {
            self.draw(random(self.stretches + self.begun));
            self.begun += 1;
            self.next = border(self.begun, self.stretches, self.all);
        }
        (&self.places, self.next)
    }

    /// Moves each CPU `turn` places further in the list of its node's CPUs.
    fn draw(&mut self, turn: u64) {
        for cpus in &self.nodes {
            let turn = (turn % cpus.len() as u64) as usize;
            for (at, cpu) in cpus.iter().enumerate() {
                let place = cpus[(at + turn) % cpus.len()];
                let zones = self.places.chunks_mut(self.cpus).zip(0..);
                zones.for_each(|(zone, first)| zone[*cpu] = (first * self.cpus + place) as u32);
            }
        }
    }
}

/// Returns the index of the first act of a stretch.
pub(super) fn border(stretch: usize, stretches: usize, all: usize) -> usize {
    (stretch as u128 * all as u128 / stretches as u128) as usize
}

/// Returns a pseudo-random number that is the same in each replay: SplitMix64 of `seed`.
fn random(seed: usize) -> u64 {
    let mixed = (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each act, returns the page set in each of two zones that gets the acts of CPU 1. The machine has
    /// four CPUs, two on each node.
    fn places(portion: usize) -> Vec<[u32; 2]> {
        let (mut exchange, mut at, mut places) = (Exchange::new(&[0, 0, 1, 1], 8, 64, 6400), 0, Vec::new());
        while at < 6400 {
            let (now, end) = exchange.places_from(at);
            let end = end.min(at + portion);
            places.extend((at..end).map(|_| [now[1], now[4 + 1]]));
            at = end;
        }
        places
    }

    #[test]
    fn a_stretch_is_played_by_one_cpu_of_the_same_node_in_the_same_zone() {
        let places = places(6400);
        let mut seen = [0; 2];
        for stretch in places.chunks(100) {
            let cpu = stretch[0][0];
            assert!(stretch.iter().all(|sets| *sets == [cpu, cpu + 4]), "{stretch:?}");
            seen[cpu as usize] += 1;
        }
        assert!(seen.iter().all(|stretches| *stretches > 16), "{seen:?}");
    }

    /// Tests that the length of the portions of acts does not change the exchange.
    #[test]
    fn portions_change_nothing() {
        assert_eq!(places(6400), places(77));
    }

    #[test]
    fn one_cpu_has_nobody_to_exchange_with() {
        let mut exchange = Exchange::new(&[0], 3, 64, 200);
        let mut at = 0;
        while at < 200 {
            let (places, end) = exchange.places_from(at);
            assert_eq!(places, [0, 1, 2]);
            at = end;
        }
    }

    /// Bundles end at the borders of the shortest stretches. Tests that the borders of all longer stretches
    /// are among these borders.
    #[test]
    fn stretches_begin_where_shorter_ones_begin() {
        for all in [1, 1000, 1025, 98_761] {
            for stretch in 0..64 {
                assert_eq!(border(stretch, 64, all), border(16 * stretch, 1024, all));
            }
        }
    }
}
