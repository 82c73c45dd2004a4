//! netperf `SCTP_STREAM_MANY` over the loopback, with messages of 10 KiB. SCTP copies each message into a
//! packet. Packets with several messages need blocks that are too large for page sets (spec fault.md §4.3).
//!
//! The parameters are from the recording data/traces/k612_2c_sctp.pgtrace: one stream of 512 messages of 8
//! KiB on Linux 6.12 with 2 CPUs. A receiver opens its window by the size of one packet at a time, so most
//! packets carry as many messages as fit. The receiver's CPU handles the acknowledgement that opens the
//! window. So the receiver's CPU makes most packets and frees most of the acknowledged memory. The sender's
//! CPU makes the remaining packets and frees the remaining acknowledged memory.

use std::sync::Arc;

use pageset_core::AllocError;

use super::end::{COPY_NS, End, FreedBy, RECEIVE_NS, Role, SEND_NS, Way, costs};
use super::skbs::{OVERHEAD_BYTES, Skbs};
use super::stream::SOCKET_BYTES;
use super::turns::{Ends, MOVES, MOVES_MAX, take_turns};
use crate::load::plan::Plan;
use crate::load::setup::{Parameter, PlanError, Setup};
use crate::load::workload::Workload;
use crate::slab::LIST_NS;
use crate::target::{Message, Target};

const BYTES: Parameter =
    Parameter { default: 10_240, source: "spec fault.md §4.3: -m 10K", ..super::udp::BYTES };
/// Largest payload of one message. A message with the largest payload fits into a packet.
const BYTES_MAX: u64 = 60_000;
/// Largest number of payload bytes in a packet. Source: spec fault.md §4.3, "64 KiB lo MTU".
const PACKET_BYTES_MAX: u32 = 65_536 - OVERHEAD_BYTES;
const BUNDLED: Parameter = Parameter {
    key: "bundled_percent",
    default: 75,
    min: 0,
    meaning: "packets that carry as many messages as fit, in percent; at most 100",
    source: "recording k612_2c_sctp: 76 of 102 packets were of order 4",
};
const BUILT_THERE: Parameter = Parameter {
    key: "built_by_receiver_percent",
    default: 63,
    min: 0,
    meaning: "packets that are made on the CPU of their receiver, in percent; at most 100",
    source: "recording k612_2c_sctp: 48 of 76 packets of order 4 were freed where they were allocated",
};
const FREED_HERE: Parameter = Parameter {
    key: "freed_by_sender_percent",
    default: 43,
    min: 0,
    meaning: "packets whose messages' own memory is freed on the CPU of the sender, in percent; at most 100",
    source: "recording k612_2c_sctp: 232 of 537 blocks of order 2 were freed where they were allocated",
};

/// The source of the times of this benchmark.
const GUESS: &str =
    "guess: about 4 Gbit/s for a pair; SCTP computes checksums and keeps track of each message";

/// The benchmark SCTP_STREAM_MANY, with pairs of a sender and a receiver.
pub(in crate::load) const SCTP_STREAM: Workload = Workload {
    name: "sctp-stream",
    summary: "netperf SCTP_STREAM_MANY on the loopback: 10 KiB messages, blocks of order 2 and above",
    source: "spec fault.md §4.3",
    unit: "messages",
    duration_ms: (500, 1000),
    parameters: &[
        BYTES,
        BUNDLED,
        BUILT_THERE,
        FREED_HERE,
        Parameter { default: 18_000, source: GUESS, ..SEND_NS },
        Parameter { default: 15_000, source: GUESS, ..RECEIVE_NS },
        COPY_NS,
        MOVES,
        LIST_NS,
    ],
    build,
};

fn build(setup: &Setup<'_>) -> Result<Plan, PlanError> {
    let bytes = setup.at_most(&BYTES, BYTES_MAX)? as u32;
    let mut plan = Plan::default();
    let pairs: Vec<_> = setup.each_pair()?.collect();
    let skbs = Arc::new(Skbs::new(&mut plan, setup, &[bytes]).used_by(2 * pairs.len()));
    let per_bundle = PACKET_BYTES_MAX / bytes;
    // A socket's memory limits the number of messages under way. Each bundle of messages takes two places in
    // the channel: one for the packet and one for the messages.
    let bundle_bytes = per_bundle * (bytes + OVERHEAD_BYTES).next_power_of_two();
    let capacity = 2 * (SOCKET_BYTES / bundle_bytes).max(1);
    let moves_per_s = setup.at_most(&MOVES, MOVES_MAX)?;
    for (sender, receiver) in pairs {
        let ways = [(); 2].map(|()| Way::new(&mut plan, capacity, FreedBy::Sender));
        for (cpu, role) in [(sender, Role::Sender), (receiver, Role::Receiver)] {
            let stream = Stream {
                end: End::new(&skbs, costs(setup), ways, role),
                bytes,
                per_bundle,
                bundled_percent: setup.at_most(&BUNDLED, 100)?,
                built_there_percent: setup.at_most(&BUILT_THERE, 100)?,
                freed_here_percent: setup.at_most(&FREED_HERE, 100)?,
            };
            plan.work(cpu, move |target| take_turns(target, stream, role, moves_per_s));
        }
    }
    Ok(plan)
}

/// One end of an SCTP connection.
#[derive(Debug)]
struct Stream {
    end: End,
    bytes: u32,
    /// Number of messages that fit into a packet.
    per_bundle: u32,
    bundled_percent: u64,
    built_there_percent: u64,
    freed_here_percent: u64,
}

/// Returns true with a probability of `percent` %.
fn chance(target: &mut dyn Target, percent: u64) -> bool {
    target.random() % 100 < percent
}

impl Ends for Stream {
    fn end(&self) -> &End {
        &self.end
    }

    fn send(&mut self, target: &mut dyn Target) {
        let count = if chance(target, self.bundled_percent) { self.per_bundle } else { 1 };
        let (mut chunks, mut packet) = (Message::default(), Message::default());
        if self.make(target, count, &mut chunks, &mut packet).is_err() {
            self.end.skbs.release(target, chunks);
            return self.end.skbs.release(target, packet);
        }
        target.send(self.end.forth.socket, packet);
        target.send(self.end.forth.socket, chunks);
    }

    fn receive(&mut self, target: &mut dyn Target, mut packet: Message) {
        // The sender sends a packet's messages right after the packet, so the next receive returns these
        // messages.
        let Some(chunks) = target.receive(self.end.back.socket) else {
            return self.end.skbs.release(target, packet);
        };
        if packet.bytes == 0 {
            self.end.read(target, &chunks, self.bytes);
            // If there is no memory for a packet, a real kernel sends the packet later. The model ignores
            // this delay.
            let _ = self.pack(target, chunks.bytes, &mut packet);
        }
        let count = chunks.bytes / u64::from(self.bytes);
        target.compute(count * self.end.costs.receive_ns);
        self.end.copy(target, &packet);
        target.score(count);
        self.end.skbs.release(target, packet);
        if chance(target, self.freed_here_percent) {
            self.end.give_back(target, chunks);
        } else {
            self.end.skbs.release(target, chunks);
        }
    }

    fn finish(&mut self, _: &mut dyn Target) {}
}

impl Stream {
    /// Makes `count` messages. Also makes the packet of these messages, unless the receiver's CPU makes the
    /// packet.
    fn make(
        &self,
        target: &mut dyn Target,
        count: u32,
        chunks: &mut Message,
        packet: &mut Message,
    ) -> Result<(), AllocError> {
        for _ in 0..count {
            target.compute(self.end.costs.send_ns);
            let mut chunk = Message { bytes: self.bytes.into(), ..Message::default() };
            let made = self.end.skbs.head(target, self.bytes, &mut chunk);
            self.end.copy(target, &chunk);
            chunks.bytes += chunk.bytes;
            chunks.blocks.append(&mut chunk.blocks);
            chunks.objects.append(&mut chunk.objects);
            made?;
        }
        if chance(target, self.built_there_percent) {
            Ok(())
        } else {
            self.pack(target, chunks.bytes, packet)
        }
    }

    /// Makes a packet of `bytes` bytes.
    fn pack(&self, target: &mut dyn Target, bytes: u64, packet: &mut Message) -> Result<(), AllocError> {
        packet.bytes = bytes;
        self.end.skbs.head(target, bytes as u32, packet)?;
        self.end.copy(target, packet);
        Ok(())
    }
}
