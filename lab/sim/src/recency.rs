//! The contents of a CPU's caches: the lines that the CPU used, in the order of their last use.

use std::collections::VecDeque;

/// Number of steps that the smaller cache is divided into. With more steps, the model knows the order of
/// lines more exactly. With 32 steps, the order is exact to 1/32 of the cache. The number 32 is a guess: real
/// caches deviate more from replacing exactly the least recently used line.
const STEPS_OF_NEAR: u64 = 32;
/// Largest number of steps that a CPU's state remembers. A line that the CPU has not used for `STEPS_MAX`
/// steps counts as evicted, even if the CPU has used few other lines since then. The limit bounds the state
/// of one CPU at 128 KiB.
const STEPS_MAX: usize = 1 << 14;
/// Largest number of full steps that fill both caches together. `STEPS_OF_ALL` is only a quarter of
/// `STEPS_MAX`, because steps shrink: a line that is used again moves from its old step to a new step.
const STEPS_OF_ALL: u64 = STEPS_MAX as u64 / 4;

/// The number of a step, which stands for a time of use. The first step has the number 1.
pub(crate) type Step = u64;

/// The lines that one CPU used, in the order of their last use, divided into steps. The state models two
/// caches. Each cache holds as many of the most recently used lines as fit. A line that is used again moves
/// to the newest step, and other lines keep their order.
#[derive(Debug)]
pub(crate) struct Recency {
    /// For each step, the number of lines whose last use was in this step. The oldest step comes first.
    steps: VecDeque<u64>,
    /// The number of the oldest step.
    first: Step,
    /// Number of lines in a step. When a step has `step_lines` lines, the next step begins.
    step_lines: u64,
    near: Edge,
    all: Edge,
}

/// The steps whose lines one cache holds: `step` and all later steps.
#[derive(Debug)]
struct Edge {
    capacity: u64,
    /// The oldest step that has lines in the cache.
    step: Step,
    /// Number of lines in `step` and in all later steps.
    lines: u64,
}

/// The place of a line in a CPU's caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// The line is in one of the core's own caches.
    Near,
    /// The line is in the CPU's part of the last-level cache.
    Shared,
    /// The line is in no cache of this CPU.
    Nowhere,
}

impl Edge {
    const fn new(capacity: u64) -> Self {
        Self { capacity, step: 1, lines: 0 }
    }

    fn shrink(&mut self, steps: &VecDeque<u64>, first: Step) {
        while self.lines > self.capacity {
            self.lines -= steps[(self.step - first) as usize];
            self.step += 1;
        }
    }
}

impl Recency {
    /// Makes the state of two empty caches. The sizes are numbers of lines: `near_lines` of the smaller
    /// cache, and `all_lines` of both caches together.
    pub(crate) fn new(near_lines: u64, all_lines: u64) -> Self {
        Self {
            steps: VecDeque::from([0]),
            first: 1,
            step_lines: (near_lines / STEPS_OF_NEAR).max(all_lines / STEPS_OF_ALL).max(1),
            near: Edge::new(near_lines),
            all: Edge::new(all_lines.max(near_lines)),
        }
    }

    /// Returns which cache holds the lines that were last used in `step`.
    #[inline]
    pub(crate) fn holder(&self, step: Step) -> Held {
        if step >= self.near.step {
            Held::Near
        } else if step >= self.all.step {
            Held::Shared
        } else {
            Held::Nowhere
        }
    }

    /// Removes `lines` lines from a step. The caller removes lines that this CPU uses again, or that another
    /// CPU took.
    #[inline]
    pub(crate) fn remove(&mut self, step: Step, lines: u64) {
        if step >= self.first {
            self.steps[(step - self.first) as usize] -= lines;
        }
        for edge in [&mut self.near, &mut self.all] {
            edge.lines -= if step >= edge.step { lines } else { 0 };
        }
    }

    /// Records that this CPU uses lines now. Returns the current step.
    #[inline]
    pub(crate) fn push(&mut self, lines: u64) -> Step {
        let last = self.steps.len() - 1;
        let now = self.first + last as u64;
        self.steps[last] += lines;
        for edge in [&mut self.near, &mut self.all] {
            // If the lines of this step alone exceed the cache, `edge.step` is a later step, and the cache
            // holds no lines.
            if now >= edge.step {
                edge.lines += lines;
                edge.shrink(&self.steps, self.first);
            }
        }
        if self.steps[last] >= self.step_lines {
            self.begin_step();
        }
        now
    }

    /// Begins a new step, and forgets steps that no cache holds.
    fn begin_step(&mut self) {
        self.steps.push_back(0);
        while self.first < self.all.step {
            self.steps.pop_front();
            self.first += 1;
        }
        if self.steps.len() > STEPS_MAX {
            let forgotten = self.steps.pop_front().unwrap_or(0);
            for edge in [&mut self.near, &mut self.all] {
                if edge.step == self.first {
                    edge.lines -= forgotten;
                    edge.step += 1;
                }
            }
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lets the CPU use `lines` lines, one after another.
    fn use_each(recency: &mut Recency, lines: u64) -> Vec<Step> {
        (0..lines).map(|_| recency.push(1)).collect()
    }

    #[test]
    fn the_oldest_lines_leave_first_the_near_cache_and_then_the_other() {
        let mut recency = Recency::new(64, 128);
        let steps = use_each(&mut recency, 200);
        let held = |age: usize| recency.holder(steps[200 - age]);
        assert_eq!((held(1), held(60), held(70)), (Held::Near, Held::Near, Held::Shared));
        assert_eq!((held(120), held(135)), (Held::Shared, Held::Nowhere));
    }

    #[test]
    fn lines_that_are_used_again_and_again_make_no_others_old() {
        let mut recency = Recency::new(64, 128);
        let cold = recency.push(1);
        let mut hot = use_each(&mut recency, 40);
        for _ in 0..100 {
            for step in &mut hot {
                recency.remove(*step, 1);
                *step = recency.push(1);
            }
        }
        assert_eq!(recency.holder(cold), Held::Near, "41 lines were used");
        use_each(&mut recency, 30);
        assert_eq!(recency.holder(cold), Held::Shared, "71 lines were used");
    }

    #[test]
    fn what_is_larger_than_a_cache_is_not_in_it() {
        let mut recency = Recency::new(64, 128);
        let large = recency.push(100);
        assert_eq!(recency.holder(large), Held::Shared);
        let huge = recency.push(1000);
        assert_eq!((recency.holder(large), recency.holder(huge)), (Held::Nowhere, Held::Nowhere));
        recency.remove(huge, 1000);
        let small = recency.push(1);
        assert_eq!(recency.holder(small), Held::Near);
    }

    #[test]
    fn the_memory_of_hot_lines_is_bounded() {
        let mut recency = Recency::new(32, 64);
        let cold = recency.push(1);
        let mut hot = recency.push(1);
        for _ in 0..2 * STEPS_MAX {
            recency.remove(hot, 1);
            hot = recency.push(1);
        }
        assert!(recency.steps.len() <= STEPS_MAX);
        assert_eq!((recency.holder(cold), recency.holder(hot)), (Held::Nowhere, Held::Near));
    }

    #[test]
    fn a_large_last_level_is_remembered_as_a_whole() {
        let mut recency = Recency::new(0, 1 << 20);
        let steps = use_each(&mut recency, 1 << 20);
        let oldest_held = steps.iter().position(|step| recency.holder(*step) == Held::Shared).unwrap();
        assert!(oldest_held < 1000, "{oldest_held} of {} steps are forgotten", steps.len());
    }

    proptest! {
        /// Compares the model with an exact list of lines in the order of their last use. A line must be in a
        /// cache exactly if its place in the list is below the size of the cache.
        #[test]
        fn it_agrees_with_a_list_of_lines(uses in prop::collection::vec(0_usize..120, 0..600)) {
            let (near, all) = (32, 64);
            let mut recency = Recency::new(near, all);
            let mut steps: Vec<Option<Step>> = vec![None; 120];
            let mut order: Vec<usize> = Vec::new();
            for line in uses {
                if let Some(step) = steps[line] {
                    let place = order.iter().position(|other| *other == line).unwrap() as u64;
                    let held = recency.holder(step);
                    // `place` is the number of lines that were used after the last use of this line. Each
                    // step holds one line in this test, so the model is exact.
                    let expected = match place {
                        place if place < near => Held::Near,
                        place if place < all => Held::Shared,
                        _ => Held::Nowhere,
                    };
                    prop_assert_eq!(held, expected, "line {} of {:?}", line, order);
                    recency.remove(step, 1);
                    order.retain(|other| *other != line);
                }
                steps[line] = Some(recency.push(1));
                order.insert(0, line);
            }
        }
    }

    #[test]
    fn without_caches_nothing_is_held() {
        let mut recency = Recency::new(0, 0);
        let step = recency.push(1);
        assert_eq!(recency.holder(step), Held::Nowhere);
    }
}
