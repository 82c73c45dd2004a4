//! Acts of a recording on exchanged CPUs, as if the scheduler had given tasks to other CPUs.
//!
//! The recording has stretches of equal length. In each, every CPU's acts go to the CPU that is a random
//! number of places further on its node. Ticks stay: they are work of the CPU, and not of a task.

use super::act::{Act, ActKind};

/// Moves acts, which it gets in the order of the recording.
pub(super) struct Exchange {
    /// CPUs of each node.
    nodes: Vec<Vec<usize>>,
    /// The CPU that plays the part of each CPU in this stretch.
    places: Vec<usize>,
    stretches: usize,
    /// Stretches that began.
    begun: usize,
    /// Acts of the whole recording, acts moved so far, and the act that the next stretch begins with.
    all: usize,
    moved: usize,
    next: usize,
    there: Vec<Act>,
}

impl Exchange {
    /// The recording has `all` acts, and the machine has CPUs of these nodes.
    pub(super) fn new(node_of_cpu: &[u16], stretches: usize, all: usize) -> Self {
        let mut numbers = node_of_cpu.to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        let cpus_of = |node| (0..node_of_cpu.len()).filter(|cpu| node_of_cpu[*cpu] == node).collect();
        Self {
            nodes: numbers.into_iter().map(cpus_of).collect(),
            places: (0..node_of_cpu.len()).collect(),
            stretches,
            begun: 0,
            all,
            moved: 0,
            next: 0,
            there: Vec::new(),
        }
    }

    /// The next acts of the recording, on their new CPUs.
    pub(super) fn acts(&mut self, acts: &[Act]) -> &[Act] {
        self.there.clear();
        for act in acts {
            while self.moved == self.next && self.begun < self.stretches {
                self.draw(random(self.stretches + self.begun));
                self.begun += 1;
                self.next = (self.begun as u128 * self.all as u128 / self.stretches as u128) as usize;
            }
            self.moved += 1;
            self.there.push(self.moved_act(*act));
        }
        &self.there
    }

    /// Moves each CPU `turn` places further on its node.
    fn draw(&mut self, turn: u64) {
        for cpus in &self.nodes {
            let turn = (turn % cpus.len() as u64) as usize;
            for (at, cpu) in cpus.iter().enumerate() {
                self.places[*cpu] = cpus[(at + turn) % cpus.len()];
            }
        }
    }

    fn moved_act(&self, act: Act) -> Act {
        let cpus = self.places.len();
        let (zone, cpu) = (act.at as usize / cpus, act.at as usize % cpus);
        match act.kind {
            ActKind::Nothing | ActKind::Tick | ActKind::ReclaimStarts | ActKind::ReclaimStops => act,
            ActKind::Alloc | ActKind::BulkAlloc | ActKind::Free | ActKind::PastSet => {
                Act { at: (zone * cpus + self.places[cpu]) as u32, ..act }
            }
        }
    }
}

/// A number that looks random, the same in each replay: SplitMix64 of `seed`.
fn random(seed: usize) -> u64 {
    let mixed = (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::super::act::BlockKind;
    use super::*;

    fn act(kind: ActKind, at: u32) -> Act {
        Act { kind, block: BlockKind::PAGE, count: 1, at }
    }

    /// Four CPUs, two on each node, and acts of CPU 1 in zones 0 and 1.
    fn moved(portion: usize) -> Vec<Act> {
        let mut exchange = Exchange::new(&[0, 0, 1, 1], 64, 6400);
        let acts: Vec<Act> = (0..6400).map(|at| act(ActKind::Free, 1 + 4 * (at % 2))).collect();
        acts.chunks(portion).flat_map(|acts| exchange.acts(acts).to_vec()).collect()
    }

    #[test]
    fn a_stretch_is_played_by_one_cpu_of_the_same_node_in_the_same_zone() {
        let moved = moved(6400);
        let mut seen = [0; 2];
        for stretch in moved.chunks(100) {
            let cpu = stretch[0].at % 4;
            assert!(stretch.iter().zip(0..).all(|(act, at)| act.at == cpu + 4 * (at % 2)), "{stretch:?}");
            seen[cpu as usize] += 1;
        }
        assert!(seen.iter().all(|stretches| *stretches > 16), "{seen:?}");
    }

    /// Acts come from memory or from a file, in portions of any length.
    #[test]
    fn portions_change_nothing() {
        assert_eq!(moved(6400), moved(77));
    }

    #[test]
    fn ticks_and_reclaimers_stay() {
        let mut exchange = Exchange::new(&[0, 0], 1024, 3072);
        let kinds = [ActKind::Tick, ActKind::ReclaimStarts, ActKind::ReclaimStops];
        let acts: Vec<Act> = (0..3072).map(|at| act(kinds[at % 3], 1)).collect();
        assert_eq!(exchange.acts(&acts), acts);
    }

    #[test]
    fn one_cpu_has_nobody_to_exchange_with() {
        let mut exchange = Exchange::new(&[0], 64, 200);
        let acts = vec![act(ActKind::Alloc, 0); 200];
        assert_eq!(exchange.acts(&acts), acts);
    }
}
