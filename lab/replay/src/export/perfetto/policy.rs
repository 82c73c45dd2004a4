//! Draws a replay of the recording under a policy. The policy's page sets and decisions are shown beside the
//! recorded kernel's page sets and decisions.

use anyhow::Result;
use pageset_core::DrainReason;

use super::group::Group;
use super::names::{Key, Name};
use super::packets::{Packets, Value, What};
use crate::{Candidate, Made, Step, Steps};

/// The numbers of the policy's refills and drains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Decisions {
    pub(super) refills: u64,
    pub(super) drains: u64,
}

const DESCRIPTION: &str = "The recorded allocations and frees under this policy, in their recorded order and at their recorded \
times. A replay does not measure how long decisions take, so refills and drains have no length.";

/// Replays the recording under a candidate, and writes the contents and decisions of its page sets.
pub(super) fn write(
    packets: &mut Packets<'_>,
    steps: &Steps,
    candidate: &Candidate,
    rank: i64,
    mut progress: impl FnMut(u64) -> Result<()>,
) -> Result<Decisions> {
    let name = candidate.name();
    let title = format!("replay under {name}");
    let mut group = Group::begin(packets, (&title, DESCRIPTION, rank), &name, steps.zones())?;
    let (mut made, mut done, mut last_ns) = (Decisions::default(), 0_u64, 0);
    steps.play(candidate, |step| {
        done += 1;
        if done.is_multiple_of(PROGRESS_STEPS) {
            progress(done)?;
        }
        last_ns = step.at_ns.max(last_ns);
        one_step(packets, &mut group, step, &mut made)
    })?;
    for set in group.sets() {
        set.count.write(packets, set.sequence, last_ns)?;
        set.high.write(packets, set.sequence, last_ns)?;
    }
    Ok(made)
}

/// Number of steps from one report of progress to the next report.
const PROGRESS_STEPS: u64 = 1 << 16;

fn one_step(
    packets: &mut Packets<'_>,
    group: &mut Group,
    step: &Step,
    decisions: &mut Decisions,
) -> Result<()> {
    let set = group.set(packets, step.zone, step.cpu)?;
    let (count, high) = (i64::from(step.count), i64::from(step.high));
    let Some(made) = step.made else {
        set.count.note(packets, set.sequence, step.at_ns, count)?;
        if set.high.value() != Some(high) {
            set.high.note(packets, set.sequence, step.at_ns, high)?;
        }
        return Ok(());
    };
    set.count.write(packets, set.sequence, step.at_ns)?;
    let (name, pages) = match made {
        Made::Refill { pages, .. } => {
            decisions.refills += 1;
            (Name::Refill, pages)
        }
        Made::Drain { pages, .. } => {
            decisions.drains += 1;
            (Name::Drain, pages)
        }
    };
    let pages = (Key::Pages, Value::Number(pages));
    let what = What::Moment(name);
    match made {
        Made::Refill { order, migratetype, .. } => {
            let facts = [
                pages,
                (Key::Order, Value::Number(u64::from(order.get()))),
                (Key::Migratetype, Value::Text(migratetype.name())),
                (Key::Reason, Value::Text("empty list")),
            ];
            packets.event(set.sequence, step.at_ns, set.slices, what, &facts)?;
        }
        Made::Drain { reason, .. } => {
            let facts = [pages, (Key::Reason, Value::Text(word(reason)))];
            packets.event(set.sequence, step.at_ns, set.slices, what, &facts)?;
        }
    }
    set.count.hold(count);
    set.count.write(packets, set.sequence, step.at_ns)?;
    set.high.hold(high);
    set.high.write(packets, set.sequence, step.at_ns)?;
    Ok(())
}

/// The name of a drain's reason. A reason has the same name for the recorded kernel and for a replayed
/// policy.
const fn word(reason: DrainReason) -> &'static str {
    match reason {
        DrainReason::High => "free",
        DrainReason::FreeHigh => "free_high",
        DrainReason::Decay | DrainReason::Remote => "tick",
        DrainReason::Demand => "demand",
    }
}
