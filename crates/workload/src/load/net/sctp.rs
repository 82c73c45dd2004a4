//! netperf `SCTP_STREAM_MANY` over the loopback, 10 KiB messages: each is copied once more into a packet, and packets
//! with several messages need blocks that no page set holds (spec fault.md §4.3).

use pageset_core::AllocError;

use super::{COPY_NS, Flow, FreedBy, OVERHEAD_BYTES, RECEIVE_NS, SEND_NS, Skbs, Source, stream};
use crate::load::{Parameter, Plan, PlanError, Setup, Workload};
use crate::slab::LIST_NS;
use crate::target::{Message, Target};

const BYTES: Parameter =
    Parameter { default: 10_240, source: "spec fault.md §4.3: -m 10K", ..super::udp::BYTES };
/// Largest payload of one message, so that it fits a packet.
const BYTES_MAX: u64 = 60_000;
/// Largest packet. Source: spec fault.md §4.3, "64 KiB lo MTU".
const PACKET_BYTES_MAX: u32 = 65_536 - OVERHEAD_BYTES;
const BUNDLED: Parameter = Parameter {
    key: "bundled_percent",
    default: 10,
    min: 0,
    meaning: "packets that carry as many messages as fit, in percent; at most 100",
    source: "guess: what waits while a window is full is sent together",
};

/// Where its times are from.
const GUESS: &str =
    "guess: about 4 Gbit/s for a pair; SCTP computes checksums and keeps track of each message";

/// Pairs of a sender and a receiver.
pub(in crate::load) const SCTP_STREAM: Workload = Workload {
    name: "sctp-stream",
    summary: "netperf SCTP_STREAM_MANY on the loopback: 10 KiB messages, blocks of order 2 and above",
    source: "spec fault.md §4.3",
    unit: "messages",
    duration_ms: (50, 200),
    parameters: &[
        BYTES,
        BUNDLED,
        Parameter { default: 18_000, source: GUESS, ..SEND_NS },
        Parameter { default: 15_000, source: GUESS, ..RECEIVE_NS },
        COPY_NS,
        LIST_NS,
    ],
    build,
};

fn build(setup: &Setup<'_>) -> Result<Plan, PlanError> {
    let bytes = setup.get(&BYTES).min(BYTES_MAX) as u32;
    let bundled_percent = setup.get(&BUNDLED);
    let mut plan = Plan::default();
    let skbs = Skbs::new(&mut plan, setup, &[bytes]);
    let message_bytes = 2 * (bytes + OVERHEAD_BYTES).next_power_of_two();
    let flow = Flow { message_bytes, freed_by: FreedBy::Receiver };
    stream(setup, plan, skbs, flow, move || Chunks { bytes, bundled_percent, unsent: 0 })
}

struct Chunks {
    bytes: u32,
    bundled_percent: u64,
    /// Messages of the present bundle that are not sent yet.
    unsent: u32,
}

impl Source for Chunks {
    /// The message's own memory lives until it is acknowledged, which happens where the packet is received.
    fn fill(
        &mut self,
        skbs: &Skbs,
        target: &mut dyn Target,
        message: &mut Message,
    ) -> Result<(), AllocError> {
        message.bytes = u64::from(self.bytes);
        skbs.head(target, self.bytes, message)?;
        if self.unsent > 0 {
            self.unsent -= 1;
            if self.unsent > 0 {
                return Ok(());
            }
            return skbs.head(target, self.per_bundle() * self.bytes, message);
        }
        if self.per_bundle() > 1 && target.random() % 100 < self.share() {
            self.unsent = self.per_bundle() - 1;
            return Ok(());
        }
        skbs.head(target, self.bytes, message)
    }
}

impl Chunks {
    fn per_bundle(&self) -> u32 {
        PACKET_BYTES_MAX / self.bytes
    }

    /// Percent of the decisions that begin a bundle: those between bundles.
    fn share(&self) -> u64 {
        self.bundled_percent.min(100)
    }
}
