//! lmbench `bw_unix`: writes of 64 KiB to a stream socket between two processes. The writer allocates blocks
//! of orders 0 to 3, and the reader frees these blocks (spec fault.md §4.3).

use pageset_core::{AllocError, MigrateType, Order};

use super::end::{COPY_NS, FreedBy, RECEIVE_NS, SEND_NS};
use super::skbs::{OVERHEAD_BYTES, Skbs};
use super::stream::{Flow, Source, stream};
use super::turns::{MOVES, MOVES_MAX};
use crate::load::plan::Plan;
use crate::load::setup::{Parameter, PlanError, Setup};
use crate::load::workload::Workload;
use crate::slab::LIST_NS;
use crate::target::{Fill, Message, Target};

/// Size of the head of each message, in bytes. A write of 64 KiB consists of two messages. Source: spec
/// fault.md §4.3, "~3.7 KiB head".
const HEAD_BYTES: u32 = 3_700;
/// The two messages of a 64 KiB write: for each message, the bytes of payload, and the orders of the blocks
/// that hold the payload. Source: spec fault.md §4.3.
const PIECES: [(u64, &[u8]); 2] = [(36_468, &[3]), (29_068, &[2, 1, 0])];

/// The benchmark bw_unix, with pairs of a writer and a reader.
pub(in crate::load) const UNIX_STREAM: Workload = Workload {
    name: "af-unix",
    summary: "lmbench bw_unix: 64 KiB writes, blocks of orders 3, 2, 1 and 0 from CPU to CPU",
    source: "spec fault.md §4.3",
    unit: "pieces of 32 KiB",
    duration_ms: (500, 1000),
    parameters: &[
        Parameter { default: 1000, ..SEND_NS },
        Parameter { default: 1000, ..RECEIVE_NS },
        COPY_NS,
        MOVES,
        LIST_NS,
    ],
    build,
};

fn build(setup: &Setup<'_>) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let skbs = Skbs::new(&mut plan, setup, &[HEAD_BYTES - OVERHEAD_BYTES]);
    // A message takes the memory of its payload and of its head.
    let flow = Flow {
        message_bytes: 32_768 + 4096,
        freed_by: FreedBy::Receiver,
        moves_per_s: setup.at_most(&MOVES, MOVES_MAX)?,
    };
    stream(setup, plan, skbs, flow, || Writes { piece: 0 })
}

struct Writes {
    piece: usize,
}

impl Source for Writes {
    fn fill(
        &mut self,
        skbs: &Skbs,
        target: &mut dyn Target,
        message: &mut Message,
    ) -> Result<(), AllocError> {
        let (bytes, orders) = PIECES[self.piece];
        self.piece = (self.piece + 1) % PIECES.len();
        message.bytes = bytes;
        skbs.head(target, HEAD_BYTES - OVERHEAD_BYTES, message)?;
        for order in orders.iter().filter_map(|order| Order::new(*order)) {
            let pfn = target.alloc(order, MigrateType::Unmovable, Fill::Undefined)?;
            message.blocks.push((pfn, order));
        }
        Ok(())
    }
}
