//! netperf `UDP_STREAM` over the loopback: a sender sends datagrams of one size as fast as possible (spec
//! fault.md §4.3).

use pageset_core::{AllocError, MigrateType, Order};

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
}

impl Fragments {
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
                let pfn = target.alloc(order, MigrateType::Unmovable, Fill::Undefined)?;
                self.current = Some((pfn, order));
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
        self.current.take().into_iter().for_each(|block| target.free(block));
    }
}
