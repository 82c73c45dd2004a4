//! sockperf: throughput of small messages, which consist only of slab objects. Objects are freed on another
//! CPU than the CPU that allocated them (spec fault.md §4.3).

use pageset_core::AllocError;

use super::end::{COPY_NS, FreedBy, RECEIVE_NS, SEND_NS};
use super::skbs::{OVERHEAD_BYTES, SKB_BYTES, Skbs};
use super::stream::{Flow, Source, stream};
use crate::load::plan::Plan;
use crate::load::setup::{Parameter, PlanError, Setup};
use crate::load::workload::Workload;
use crate::slab::LIST_NS;
use crate::target::{Message, Target};

const BYTES: Parameter =
    Parameter { default: 100, source: "the tables of the 2016 series: 14 to 850", ..super::udp::BYTES };
/// Largest payload of a message in this model, in bytes.
const BYTES_MAX: u64 = 16_000;

/// The benchmark sockperf with datagrams.
pub(in crate::load) const SOCKPERF_UDP: Workload = Workload {
    name: "sockperf-udp",
    summary: "sockperf, throughput of small datagrams: objects of slabs from CPU to CPU",
    source: "spec fault.md §4.3",
    unit: "messages",
    duration_ms: (50, 200),
    parameters: &[BYTES, SEND_NS, RECEIVE_NS, COPY_NS, LIST_NS],
    build: |setup| build(setup, 1),
};

/// The benchmark sockperf with a TCP stream: several messages share a segment.
pub(in crate::load) const SOCKPERF_TCP: Workload = Workload {
    name: "sockperf-tcp",
    summary: "sockperf, throughput of small messages over TCP: several messages in a segment",
    build: |setup| build(setup, MESSAGES_PER_SEGMENT),
    ..SOCKPERF_UDP
};

/// Number of messages in one segment of a stream. Guess: as many messages as a program writes while the
/// previous segment is on its way.
const MESSAGES_PER_SEGMENT: u32 = 8;

fn build(setup: &Setup<'_>, per_skb: u32) -> Result<Plan, PlanError> {
    let bytes = setup.get(&BYTES).min(BYTES_MAX) as u32;
    let mut plan = Plan::default();
    let skbs = Skbs::new(&mut plan, setup, &[bytes, bytes * per_skb]);
    let memory = (bytes * per_skb + OVERHEAD_BYTES).next_power_of_two() + SKB_BYTES;
    let flow = Flow { message_bytes: memory / per_skb, freed_by: FreedBy::Receiver, moves_per_s: 0 };
    stream(setup, plan, skbs, flow, move || Small { bytes, per_skb, sent: 0 })
}

struct Small {
    bytes: u32,
    per_skb: u32,
    sent: u32,
}

impl Source for Small {
    fn fill(
        &mut self,
        skbs: &Skbs,
        target: &mut dyn Target,
        message: &mut Message,
    ) -> Result<(), AllocError> {
        message.bytes = u64::from(self.bytes);
        self.sent = (self.sent + 1) % self.per_skb;
        if self.sent == 0 { skbs.head(target, self.bytes * self.per_skb, message) } else { Ok(()) }
    }
}
