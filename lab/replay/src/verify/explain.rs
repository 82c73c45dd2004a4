//! Shows one mismatch with the events around it.

use std::fmt::Write as _;

use pageset_core::DrainReason;
use pageset_core::pcp::DueDrain;
use pageset_trace::{Event, EventKind};
use serde::Serialize;

use super::classes::Class;
use super::links::Chunk;

/// Number of events of the same CPU that are shown before the mismatch. The same number of events is shown
/// after the mismatch.
const AROUND: usize = 12;

/// The mismatch that the user wants to see with the events around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExplainRequest {
    /// The number of the mismatch, from 1 on, in the order of the recording.
    pub number: u64,
    /// If given, only mismatches of this class are counted.
    pub class: Option<Class>,
}

/// A mismatch and the events around it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The reason of the mismatch.
    pub class: &'static str,
    /// The difference between the decisions, in words.
    pub what: String,
    /// Events of the same CPU, in order. `>` marks the event of the decision.
    pub events: Vec<String>,
}

/// Describes the policy's drain in words.
pub(super) fn describe(due: Option<DueDrain>) -> String {
    due.map_or_else(
        || "none".to_owned(),
        |due| match due.reason {
            DrainReason::FreeHigh => format!("{}, since high orders are freed in a row", due.pages),
            _ => format!("{}, since {} are the limit", due.pages, due.limit),
        },
    )
}

/// Finds the mismatch that the user asked for.
#[derive(Debug, Default)]
pub(super) struct Explainer {
    request: Option<ExplainRequest>,
    seen: u64,
    pub(super) found: Option<Explanation>,
}

impl Explainer {
    pub(super) fn new(request: Option<ExplainRequest>) -> Self {
        Self { request, ..Self::default() }
    }

    /// Counts a mismatch, and returns whether it is the mismatch that the user asked for.
    pub(super) fn wants(&mut self, class: Class) -> bool {
        let Some(request) = self.request else { return false };
        if request.class.is_some_and(|wanted| wanted != class) {
            return false;
        }
        self.seen += 1;
        self.seen == request.number
    }

    pub(super) fn explain(&mut self, chunk: &Chunk, index: usize, class: Class, what: String) {
        let Some(at) = chunk.events.get(index) else { return };
        let before = (0..index).rev().filter(|i| chunk.events[*i].cpu == at.cpu).take(AROUND);
        let mut shown: Vec<usize> = before.collect();
        shown.reverse();
        shown.push(index);
        shown.extend(chunk.after(index).take(AROUND));
        let events = shown
            .into_iter()
            .map(|i| {
                format!("{} {}", if i == index { '>' } else { ' ' }, line(i, &chunk.events[i], at.ts_ns))
            })
            .collect();
        self.found = Some(Explanation { class: class.name(), what, events });
    }
}

/// Writes an event as one line. The time of the event counts from `origin_ns`.
fn line(index: usize, event: &Event, origin_ns: u64) -> String {
    let apart = i128::from(event.ts_ns) - i128::from(origin_ns);
    let mut line = format!(
        "{index:8} {apart:+10} ns cpu {} pid {} irq {:#04x} {:?}",
        event.cpu, event.pid, event.irq_flags, event.kind
    );
    let shown = match event.kind {
        EventKind::MmPageFreeBatched => write!(line, " pfn {:#x}", event.pfn),
        _ if event.kind.has_frame() => {
            write!(
                line,
                " pfn {:#x} order {} type {} gfp {:#x}",
                event.pfn, event.order, event.migratetype, event.gfp
            )
        }
        _ => write!(line, " {:#x} order {}", event.pfn, event.order),
    };
    debug_assert!(shown.is_ok(), "writing to a string");
    line
}
