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

const RING: Parameter = Parameter {
    key: "ring_blocks",
    default: 0,
    min: 0,
    meaning: "blocks in a sender's ring. A sender uses a block again if it comes back while it is in the ring, as \
              drivers do; 0 for none, 1024 at most",
    source: "the review of the 2018 study: drivers that recycle pages",
};
/// Largest number of blocks in a sender's ring. Guess: more blocks than can be under way.
const RING_MAX: u64 = 1024;

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
        RING,
        LIST_NS,
    ],
    build,
};

fn build(setup: &Setup<'_>) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let skbs = Skbs::new(&mut plan, setup, &[0]);
    let ring = setup.get(&RING).min(RING_MAX) as usize;
    // Since Linux 5.19, the CPU that allocated the memory of a message also frees this memory when the
    // receiver has read the message. A sender that recycles blocks gets them back on any kernel.
    let is_sender = setup.generation >= Generation::V6_6 || ring > 0;
    let freed_by = if is_sender { FreedBy::Sender } else { FreedBy::Receiver };
    let flow = Flow { message_bytes: SEGMENT_BYTES, freed_by, moves_per_s: 0 };
    stream(setup, plan, skbs, flow, move || Segments(Fragments::recycling(ring)))
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

    fn recycle(&mut self, message: &mut Message) {
        self.0.recycle(message);
    }

    fn finish(&mut self, target: &mut dyn Target) {
        self.0.finish(target);
    }
}
