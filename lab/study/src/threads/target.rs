//! Lets a workload run on a thread.

use std::time::{Duration, Instant};

use pageset_core::{AllocError, CpuId, MigrateType, Order, Pfn};

use super::{Shared, Tally, ThreadOptions};
use crate::slab::PAGE_BYTES;
use crate::target::{Access, Block, ChannelId, Fill, Hold, LockId, Message, Received, Target, request};

/// One worker's thread.
pub(super) struct ThreadTarget<'s> {
    shared: &'s Shared,
    cpu: CpuId,
    began: Instant,
    warm_up: Duration,
    end: Duration,
    random: u64,
    is_measured: bool,
    tally: Tally,
}

impl<'s> ThreadTarget<'s> {
    pub(super) fn new(shared: &'s Shared, cpu: CpuId, options: &ThreadOptions, began: Instant) -> Self {
        Self {
            shared,
            cpu,
            began,
            warm_up: options.warm_up,
            end: options.warm_up.saturating_add(options.duration),
            random: mix(options.seed ^ u64::from(cpu.0) << 32),
            is_measured: options.warm_up.is_zero(),
            tally: Tally::default(),
        }
    }

    pub(super) fn tally(&self) -> Tally {
        self.tally
    }
}

/// The finaliser of `SplitMix64` (Steele, Lea, Flood, 2014).
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Target for ThreadTarget<'_> {
    fn cpu(&self) -> CpuId {
        self.cpu
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn running(&mut self) -> bool {
        let elapsed = self.began.elapsed();
        self.is_measured = (self.warm_up..self.end).contains(&elapsed);
        elapsed < self.end
    }

    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.random)
    }

    fn score(&mut self, units: u64) {
        // A worker that only receives messages may never call `running`, so `score` reads the clock.
        let is_measured = self.is_measured || (self.warm_up..self.end).contains(&self.began.elapsed());
        if is_measured {
            self.tally.score += units;
        }
    }

    fn alloc(&mut self, order: Order, migratetype: MigrateType, fill: Fill) -> Result<Pfn, AllocError> {
        let result = self.shared.allocator.alloc(self.cpu, &request(order, migratetype));
        match result {
            Ok(pfn) if fill == Fill::Zeroed => {
                self.shared.memory.clear(pfn, u64::from(order.frames()) * u64::from(PAGE_BYTES));
            }
            Ok(_) => {}
            Err(_) => self.tally.failures += 1,
        }
        result
    }

    fn free(&mut self, (pfn, order): Block) {
        self.tally.refused_frees += u64::from(self.shared.allocator.free(self.cpu, pfn, order).is_err());
    }

    fn free_list(&mut self, blocks: &mut Vec<Block>) {
        self.tally.refused_frees += u64::from(self.shared.allocator.free_batch(self.cpu, blocks).is_err());
        blocks.clear();
    }

    fn compute(&mut self, ns: u64) {
        if ns == 0 {
            return;
        }
        let (until, wanted) = (Instant::now(), Duration::from_nanos(ns));
        while until.elapsed() < wanted {
            std::hint::spin_loop();
        }
    }

    fn sleep(&mut self, ns: u64) {
        std::thread::sleep(Duration::from_nanos(ns));
    }

    fn touch(&mut self, pfn: Pfn, bytes: u64, access: Access) {
        self.shared.memory.touch(pfn, bytes, access);
    }

    fn send(&mut self, channel: ChannelId, message: Message) {
        self.shared.channels[channel.0 as usize].send(message);
    }

    fn try_send(&mut self, channel: ChannelId, message: Message) -> Result<(), Message> {
        self.shared.channels[channel.0 as usize].try_send(message)
    }

    fn receive(&mut self, channel: ChannelId) -> Option<Message> {
        self.shared.channels[channel.0 as usize].receive()
    }

    fn try_receive(&mut self, channel: ChannelId) -> Received {
        self.shared.channels[channel.0 as usize].try_receive()
    }

    fn close(&mut self, channel: ChannelId) {
        self.shared.channels[channel.0 as usize].close();
    }

    fn lock(&mut self, lock: LockId, hold: Hold) {
        self.shared.locks[lock.0 as usize].lock(hold);
    }

    fn unlock(&mut self, lock: LockId, hold: Hold) {
        self.shared.locks[lock.0 as usize].unlock(hold);
    }
}
