//! Finds the order, instructions and neighbourhood that clear and copy huge pages fastest on this machine.
//!
//! The time is short, so there are two steps. The first compares orders and instructions, all with one
//! neighbourhood. The second compares neighbourhoods for the winner. Methods are measured in turn, in blocks
//! of one method each. A block leaves dirty lines in the caches, and the next block pays for writing them
//! back.

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

/// Number of huge pages that are used in turn, and of sources: 128 MiB together, four times a third-level
/// cache of 32 MiB. To make more memory resident would take longer than to measure.
const PAGES: usize = 32;
/// The first step ends this long after the start, and the second step at the second time. On a busy machine
/// pages become resident slowly, and there are fewer samples.
const DEADLINES: [Duration; 2] = [Duration::from_millis(600), Duration::from_millis(850)];
/// Neighbourhoods count as equal if their cost is at most this factor above the least. The largest of them is
/// chosen, which helps programs that touch more than is measured. A guess: two runs differ by about as much.
const EQUAL: f64 = 1.01;
/// Neighbourhoods that are compared.
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
    /// Time that all of it took, [`RESIDENT_MIB`] made resident included.
    pub seconds: f64,
}

/// Memory that is used for measuring.
pub const RESIDENT_MIB: usize = PAGES * 2 * (HUGE_PAGE_BYTES >> 20);

/// Chooses within a second how this machine clears and copies huge pages. Afterwards, this thread stays on
/// one CPU.
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
    /// Order of the visits to base pages.
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
    /// Median time of a clear and the touch after it.
    pub clear_us: f64,
    /// Median time of a copy and the touch after it.
    pub copy_us: f64,
    /// The mean of both.
    pub cost_us: f64,
    /// Samples of each operation.
    pub samples: usize,
}

/// Does both steps.
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
    // One list of times for each operation of each method.
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
