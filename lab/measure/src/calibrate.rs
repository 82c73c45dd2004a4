//! Finds the order, instructions and neighbourhood that clear and copy huge pages fastest on this machine.
//!
//! The time is short, so there are two steps. The first step compares orders and instructions, all with one
//! neighbourhood. The second step compares neighbourhoods, with the fastest order and instructions. Each step
//! repeats rounds, and each round takes some samples of every method. Each method leaves dirty lines in the
//! caches. Therefore each method first runs some operations that are not counted, until the dirty lines of
//! the method before it are written back.

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

/// Number of huge pages that operations use one after the other, and also number of source pages. All pages
/// together have 128 MiB, four times a third-level cache of 32 MiB. To make more memory resident would take
/// longer than the measurement.
const PAGES: usize = 32;
/// The first step ends 600 ms after the start of the calibration, and the second step ends 850 ms after this
/// start. On a busy machine, pages become resident slowly, so the steps begin later and take fewer samples.
const DEADLINES: [Duration; 2] = [Duration::from_millis(600), Duration::from_millis(850)];
/// Neighbourhoods count as equally fast if their cost is at most the least cost times this factor. Among
/// equally fast neighbourhoods, the calibration chooses the largest one, which helps programs that touch more
/// bytes than the measurement does. The factor is a guess: the costs of two calibrations differ by about 1 %.
const EQUAL: f64 = 1.01;
/// The neighbourhoods that the second step compares, in bytes.
const NEIGHBOURHOODS: [usize; 6] = [0, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10];

/// The measured methods and the choice.
#[derive(Clone, Debug, Serialize)]
pub struct Calibration {
    /// Cost of each method. If the second step ran, the last rows are the fastest order and instructions with
    /// each neighbourhood.
    pub rows: Vec<MethodCost>,
    /// The chosen method: the cheapest method, or a method with a larger neighbourhood that is about as
    /// cheap.
    pub chosen: Choice,
    /// Whether the system backed the memory with huge pages.
    pub is_huge: bool,
    /// Time of the whole calibration, including the time to make [`RESIDENT_MIB`] resident.
    pub seconds: f64,
}

/// Memory that the calibration uses, in MiB.
pub const RESIDENT_MIB: usize = PAGES * 2 * (HUGE_PAGE_BYTES >> 20);

/// Chooses the method that clears and copies huge pages fastest on this machine. The call takes about a
/// second. After the call, the calling thread stays bound to one CPU.
///
/// # Errors
///
/// An error if there is too little memory.
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

/// The parts of a method, by their names in results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// Name of the order of the visits to base pages.
    pub order: &'static str,
    /// Name of the instructions.
    pub kernel: &'static str,
    /// Number of bytes around the target that are cleared or copied last. The number is 0 for orders that do
    /// not end with the target.
    pub neighbourhood_bytes: usize,
}

/// Cost of one method.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct MethodCost {
    /// The method.
    #[serde(flatten)]
    pub method: Choice,
    /// Median time of a clear together with the touch after the clear.
    pub clear_us: f64,
    /// Median time of a copy together with the touch after the copy.
    pub copy_us: f64,
    /// The mean of `clear_us` and `copy_us`.
    pub cost_us: f64,
    /// Number of measured samples of each operation with the method.
    pub samples: usize,
}

/// Does the first step. If the fastest order has a neighbourhood, also does the second step.
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

/// Measures all methods in each round, until `deadline` has passed. Measures at least one round.
fn measure(workspace: &mut Workspace, methods: &[Method], deadline: Instant) -> Vec<MethodCost> {
    // There is one list of times for each operation of each method.
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
