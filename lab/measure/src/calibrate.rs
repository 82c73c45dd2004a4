//! Which order, kernel and neighbourhood clear and copy huge pages fastest here.
//!
//! The time is short, so it goes in two steps: first the orders and kernels, all with one neighbourhood, then
//! the neighbourhoods of the winner. The methods are measured in turn, in blocks of one method each: the
//! dirty lines that one block leaves in the caches are paid for by the next.

use std::time::{Duration, Instant};

use anyhow::Result;
use pageset_pageops::{BASE_PAGE_BYTES, Method, VisitOrder};
use serde::Serialize;

use crate::host::pin;
use crate::pageops::clock::median;
use crate::pageops::grid::{TOUCHES, Target, Workspace};
use crate::pageops::load::Load;
use crate::pageops::memory::HUGE_PAGE_BYTES;
use crate::pageops::way::{Operation, Way};

/// Huge pages used in turn, and as many sources: 128 MiB together, four times a third-level cache of 32 MiB.
/// Making more of them resident would take longer than measuring.
const PAGES: usize = 32;
/// When the orders and kernels are done, and when the neighbourhoods are, after the start: on a busy machine,
/// where pages become resident slowly, there are fewer samples.
const DEADLINES: [Duration; 2] = [Duration::from_millis(600), Duration::from_millis(850)];
/// Neighbourhoods whose cost is at most this factor above the least count as equal. The largest of them is
/// taken, which helps programs that touch more than is measured. A guess: two runs differ by about as much.
const EQUAL: f64 = 1.01;
/// Neighbourhoods that are tried.
const NEIGHBOURHOODS: [usize; 6] = [0, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10];

/// The measured methods and the choice.
#[derive(Clone, Debug, Serialize)]
pub struct Calibration {
    /// Cost of each method. The last rows are the fastest order and instructions with each neighbourhood.
    pub rows: Vec<MethodCost>,
    /// The method with the least cost.
    pub chosen: Choice,
    /// Whether the system backed the pages with huge ones.
    pub is_huge: bool,
    /// How long it took, with making [`RESIDENT_MIB`] resident.
    pub seconds: f64,
}

/// Memory that is measured on.
pub const RESIDENT_MIB: usize = PAGES * 2 * (HUGE_PAGE_BYTES >> 20);

/// Chooses how this machine clears and copies huge pages, in a second; keeps this thread on one CPU from then
/// on.
///
/// # Errors
///
/// There is too little memory.
pub fn calibrate() -> Result<Calibration> {
    let started = Instant::now();
    for cpu in Load::Alone.measuring_cpus() {
        pin(cpu);
    }
    let mut workspace = Workspace::new(PAGES)?;
    let is_huge = workspace.is_huge();
    let (rows, chosen) = choose(&mut workspace, DEADLINES.map(|after| started + after));
    Ok(Calibration { rows, chosen, is_huge, seconds: started.elapsed().as_secs_f64() })
}

/// A method in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// In which order base pages are visited.
    pub order: &'static str,
    /// Instructions.
    pub kernel: &'static str,
    /// Bytes around the target that are cleared or copied last; 0 for orders without such a part.
    pub neighbourhood_bytes: usize,
}

/// Cost of one method.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct MethodCost {
    /// The method.
    #[serde(flatten)]
    pub method: Choice,
    /// Median of a clear with its touch.
    pub clear_us: f64,
    /// Median of a copy with its touch.
    pub copy_us: f64,
    /// The mean of both.
    pub cost_us: f64,
    /// Samples of each.
    pub samples: usize,
}

/// Both steps.
fn choose(workspace: &mut Workspace, deadlines: [Instant; 2]) -> (Vec<MethodCost>, Choice) {
    let methods: Vec<_> = Way::all(Operation::Clear).into_iter().filter_map(Way::method).collect();
    let mut rows = measure(workspace, &methods, deadlines[0]);
    let best = cheapest(&rows);
    let chosen = methods[best];
    if chosen.order() != VisitOrder::StreamTargetLast {
        let chosen = rows[best].method;
        return (rows, chosen);
    }
    let others = NEIGHBOURHOODS.map(|bytes| Method::new(chosen.order(), chosen.kernel(), bytes));
    let neighbourhoods = measure(workspace, &others, deadlines[1]);
    let least_us = neighbourhoods[cheapest(&neighbourhoods)].cost_us;
    let largest = neighbourhoods.iter().rposition(|row| row.cost_us <= least_us * EQUAL);
    let chosen = neighbourhoods[largest.unwrap_or(0)].method;
    rows.extend(neighbourhoods);
    (rows, chosen)
}

fn cheapest(rows: &[MethodCost]) -> usize {
    let cost = |index: &usize| rows[*index].cost_us;
    (0..rows.len()).min_by(|one, other| cost(one).total_cmp(&cost(other))).unwrap_or(0)
}

/// Measures the methods in turn until `deadline`, each at least once.
fn measure(workspace: &mut Workspace, methods: &[Method], deadline: Instant) -> Vec<MethodCost> {
    // One for each operation of each method.
    let mut times_us = vec![Vec::new(); methods.len() * Operation::ALL.len()];
    let mut round = 0;
    while round == 0 || Instant::now() < deadline {
        let touch_bytes = TOUCHES[round % TOUCHES.len()];
        for (number, times_us) in times_us.iter_mut().enumerate() {
            let (way, operation) = (Way::Method(methods[number / 2]), Operation::ALL[number % 2]);
            workspace.warm_up(way, operation);
            for offset in Target::ALL.into_iter().filter_map(Target::fixed_offset) {
                let (op_ns, touch_ns) = workspace.sample(way, operation, offset, touch_bytes);
                times_us.push((op_ns + touch_ns) / 1e3);
            }
        }
        round += 1;
    }
    let row = |index: usize| {
        let [clear_us, copy_us] = [0, 1].map(|operation| median(&times_us[index * 2 + operation]));
        let method = methods[index];
        let method = Choice {
            order: method.order().name(),
            kernel: method.kernel().isa().name(),
            neighbourhood_bytes: match method.order() {
                VisitOrder::StreamTargetLast => method.radius_pages() * 2 * BASE_PAGE_BYTES,
                _ => 0,
            },
        };
        MethodCost {
            method,
            clear_us,
            copy_us,
            cost_us: f64::midpoint(clear_us, copy_us),
            samples: times_us[index * 2].len(),
        }
    };
    (0..methods.len()).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_of_all_is_chosen() {
        let mut workspace = Workspace::new(2).unwrap();
        let (rows, chosen) = choose(&mut workspace, [Instant::now(); 2]);
        assert!(VisitOrder::ALL.iter().all(|order| rows.iter().any(|row| row.method.order == order.name())));
        assert!(rows.iter().any(|row| row.method == chosen));
        assert!(rows.iter().all(|row| row.samples == 3 && row.cost_us > 0.0));
    }
}
