//! netperf `TCP_STREAM` over the loopback: the payload of a sender is in blocks of order 3 (spec fault.md
//! §4.3).

use pageset_core::AllocError;

use super::end::{COPY_NS, FreedBy, RECEIVE_NS, SEND_NS};
use super::skbs::Skbs;
use super::stream::{Flow, Source, stream};
use super::udp::Fragments;
use crate::load::plan::Plan;
use crate::load::setup::{Generation, Parameter, PlanError, Setup};
use crate::load::workload::Workload;
use crate::slab::LIST_NS;
use crate::target::{Message, Target};

/// Payload of one segment: the MTU of the loopback. Source: spec fault.md §4.3, "64 KiB lo MTU".
const SEGMENT_BYTES: u32 = 65_536;

/// The benchmark TCP_STREAM, with pairs of a sender and a receiver.
pub(in crate::load) const TCP_STREAM: Workload = Workload {
    name: "tcp-stream",
    summary: "netperf TCP_STREAM on the loopback: segments of 64 KiB, two blocks of order 3 each",
    source: "spec fault.md §4.3",
    unit: "segments",
    duration_ms: (50, 200),
    parameters: &[
        Parameter { default: 4000, ..SEND_NS },
        Parameter { default: 4000, ..RECEIVE_NS },
        COPY_NS,
        LIST_NS,
    ],
    build,
};

fn build(setup: &Setup<'_>) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let skbs = Skbs::new(&mut plan, setup, &[0]);
    // Since Linux 5.19, the CPU that allocated the memory of a message also frees this memory when the
    // receiver has read the message.
    let freed_by = if setup.generation >= Generation::V6_6 { FreedBy::Sender } else { FreedBy::Receiver };
    let flow = Flow { message_bytes: SEGMENT_BYTES, freed_by, moves_per_s: 0 };
    stream(setup, plan, skbs, flow, || Segments(Fragments::default()))
}

struct Segments(Fragments);

impl Source for Segments {
    fn fill(
        &mut self,
        skbs: &Skbs,
        target: &mut dyn Target,
        message: &mut Message,
    ) -> Result<(), AllocError> {
        message.bytes = u64::from(SEGMENT_BYTES);
        skbs.head(target, 0, message)?;
        self.0.cut(target, SEGMENT_BYTES, message)
    }

    fn finish(&mut self, target: &mut dyn Target) {
        self.0.finish(target);
    }
}
