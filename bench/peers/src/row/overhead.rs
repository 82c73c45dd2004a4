//! Memory besides the pages themselves.

use crate::effort::Effort;
use crate::memory;
use crate::row::EXHAUSTED;
use crate::target::{Held as _, Line, PAGE, Target};
use crate::team;

/// The KiB of resident memory besides the pages, for each GiB of single pages that are allocated and touched.
/// `before` is the resident memory before the target was opened.
pub(super) fn run<T: Target>(target: &T, before: u64, effort: &Effort) -> f64 {
    let pages = effort.burst / PAGE;
    let after = team::run(1, |member| {
        target.attach(member.cpu);
        // The result would count a list of the blocks, so the blocks are leaked.
        for _ in 0..pages {
            let mut block = target.alloc(member.cpu, 0).expect(EXHAUSTED);
            block.touch(0, Line::First);
            std::mem::forget(block);
        }
        memory::anonymous()
    })[0];
    let besides = after.saturating_sub(before + effort.burst as u64);
    memory::mib_per_gib(besides, effort.burst) * 1024.0
}
