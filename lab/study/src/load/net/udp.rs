//! netperf `UDP_STREAM` over the loopback: a sender sends datagrams of one size as fast as possible (spec
//! fault.md §4.3).

use std::collections::VecDeque;

use pageset_core::{AllocError, MigrateType, Order, Pfn};

use super::end::{COPY_NS, FreedBy, RECEIVE_NS, SEND_NS};
use super::skbs::{OVERHEAD_BYTES, SKB_BYTES, Skbs};
use super::stream::{Flow, Source, stream};
use crate::load::plan::Plan;
use crate::load::setup::{Generation, Parameter, PlanError, Setup};
use crate::load::workload::Workload;
use crate::slab::LIST_NS;
use crate::target::{Block, Fill, Message, Target};

pub(super) const BYTES: Parameter = Parameter {
    key: "message_bytes",
    default: 4096,
    min: 1,
    meaning: "payload of one message, in bytes; at most 65507",
    source: "spec fault.md §4.3: 64 to 16384",
};
/// Largest payload of a datagram, in bytes. Source: RFC 768 and RFC 791.
const BYTES_MAX: u64 = 65_507;
/// Largest payload of a datagram that Linux 6.x allocates as one piece of memory, in bytes. Source: spec
/// fault.md §4.3.
const LINEAR_BYTES_MAX: u32 = 16_000;
/// Order of the blocks that hold the payload of larger datagrams. Source: spec fault.md §4.3.
const FRAGMENT_ORDER: u8 = 3;

/// The benchmark UDP_STREAM, with pairs of a sender and a receiver.
pub(in crate::load) const UDP_STREAM: Workload = Workload {
    name: "udp-stream",
    summary: "netperf UDP_STREAM on the loopback: datagrams from one CPU to its neighbour",
    source: "spec fault.md §4.3",
    unit: "messages",
    duration_ms: (50, 200),
    parameters: &[BYTES, SEND_NS, RECEIVE_NS, COPY_NS, LIST_NS],
    build,
};

fn build(setup: &Setup<'_>) -> Result<Plan, PlanError> {
    let bytes = setup.get(&BYTES).min(BYTES_MAX) as u32;
    let mut plan = Plan::default();
    let is_linear = bytes <= LINEAR_BYTES_MAX || setup.generation < Generation::V6_6;
    let skbs = Skbs::new(&mut plan, setup, &[if is_linear { bytes } else { 0 }]);
    let memory = (bytes + OVERHEAD_BYTES).next_power_of_two() + SKB_BYTES;
    let flow = Flow { message_bytes: memory, freed_by: FreedBy::Receiver, moves_per_s: 0 };
    stream(setup, plan, skbs, flow, move || Datagrams { bytes, is_linear, fragments: Fragments::default() })
}

struct Datagrams {
    bytes: u32,
    is_linear: bool,
    fragments: Fragments,
}

impl Source for Datagrams {
    fn fill(
        &mut self,
        skbs: &Skbs,
        target: &mut dyn Target,
        message: &mut Message,
    ) -> Result<(), AllocError> {
        message.bytes = u64::from(self.bytes);
        if self.is_linear {
            return skbs.head(target, self.bytes, message);
        }
        skbs.head(target, 0, message)?;
        self.fragments.cut(target, self.bytes, message)
    }

    fn finish(&mut self, target: &mut dyn Target) {
        self.fragments.finish(target);
    }
}

/// A sender's current block of order 3. Messages take parts of the block for their payload. The CPU that
/// frees the last message with a part of the block also frees the block.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    current: Option<Block>,
    left_bytes: u32,
    /// The blocks that were taken last, oldest first. As in a driver's ring, a block that comes back is used
    /// again only if it is still in `ring`.
    ring: VecDeque<Pfn>,
    ring_blocks: usize,
    recycled: Vec<Block>,
}

impl Fragments {
    /// Makes an empty value that uses blocks again if they come back before `blocks` other blocks are taken.
    pub(super) fn recycling(blocks: usize) -> Self {
        Self { ring_blocks: blocks, ..Self::default() }
    }

    /// Takes the blocks of a received message that can be used again.
    pub(super) fn recycle(&mut self, message: &mut Message) {
        let is_in_ring = |block: &mut Block| self.ring.contains(&block.0);
        self.recycled.extend(message.blocks.extract_if(.., is_in_ring));
    }

    /// Takes parts of blocks, `bytes` bytes together, for the payload of `message`. The message that takes
    /// the last bytes of a block becomes the block's owner.
    pub(super) fn cut(
        &mut self,
        target: &mut dyn Target,
        bytes: u32,
        message: &mut Message,
    ) -> Result<(), AllocError> {
        let mut wanted = bytes;
        while wanted > 0 {
            if self.left_bytes == 0 {
                message.blocks.extend(self.current.take());
                let order = Order::new(FRAGMENT_ORDER).unwrap_or(Order::ZERO);
                let block = match self.recycled.pop() {
                    Some(block) => block,
                    None => (target.alloc(order, MigrateType::Unmovable, Fill::Undefined)?, order),
                };
                self.current = Some(block);
                self.ring.retain(|pfn| *pfn != block.0);
                self.ring.push_back(block.0);
                if self.ring.len() > self.ring_blocks {
                    self.ring.pop_front();
                }
                self.left_bytes = order.frames() * crate::slab::PAGE_BYTES;
            }
            let cut = wanted.min(self.left_bytes);
            self.left_bytes -= cut;
            wanted -= cut;
        }
        if self.left_bytes == 0 {
            message.blocks.extend(self.current.take());
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, target: &mut dyn Target) {
        self.current.take().into_iter().chain(self.recycled.drain(..)).for_each(|block| target.free(block));
    }
}
