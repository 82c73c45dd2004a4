//! Makes a pool smaller or larger, by taking pageblocks out of service and putting them back.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use pageset_core::{Order, PAGEBLOCK_FRAMES};

use super::{Inner, Pool, bytes_of};
use crate::error::AllocError;
use crate::ledger::ReturnState;
use crate::sys::BLOCK_BYTES;
use crate::sys::advice::{Discarded, discard};

impl Pool {
    /// Makes the pool smaller, or larger again up to the size that it was built with. Returns the bytes in
    /// service afterwards.
    ///
    /// To shrink, the pool takes free pageblocks (2 MiB) out of service, highest first, until at most `bytes`
    /// are in service. The memory of these pageblocks goes back to the system (except for a pool that [gives
    /// no memory back](Self::trim)), but their address space stays reserved. If too few pageblocks are free,
    /// more than `bytes` stay in service, although the capacity falls to `bytes`. To take more memory out of
    /// service, call `resize` again after pages were freed. Until this second call, allocations may still get
    /// pages at the pool's end. To grow, the pool puts the lowest pageblocks back into service first.
    pub fn resize(&self, bytes: usize) -> usize {
        let (inner, _inside) = match self.enter() {
            Ok(entered) => entered,
            Err(AllocError::WouldBlock) => return self.inner().in_service.load(Relaxed),
            Err(_) => return self.inner().memory.bytes(),
        };
        inner.drain_arrays();
        let mut retired = inner.retired.lock();
        let in_service = |retired: usize| inner.memory.bytes() - retired * BLOCK_BYTES;
        let blocks = 0..inner.frames / PAGEBLOCK_FRAMES;
        let is_retired = |block: &u32| inner.ledger.block(*block as usize) == ReturnState::Retired;
        for block in blocks.clone().filter(is_retired) {
            if in_service(*retired) + BLOCK_BYTES > bytes {
                break;
            }
            let is_gone = inner.ledger.is_zero(block * PAGEBLOCK_FRAMES..(block + 1) * PAGEBLOCK_FRAMES);
            let state = if is_gone { ReturnState::Returned } else { ReturnState::Resident };
            inner.ledger.set_block(block as usize, state);
            inner.base.release(block * PAGEBLOCK_FRAMES, Order::PAGEBLOCK);
            *retired -= 1;
        }
        for block in blocks.rev() {
            if in_service(*retired) <= bytes {
                break;
            }
            if !is_retired(&block) && inner.retire(block) {
                *retired += 1;
            }
        }
        let capacity = (bytes.min(inner.memory.bytes()) / crate::PAGE_BYTES) as u64;
        inner.capacity.set_limit(capacity);
        inner.in_service.store(in_service(*retired), Relaxed);
        in_service(*retired)
    }
}

impl Inner {
    fn retire(&self, block: u32) -> bool {
        let _batch = self.returning.lock();
        if !self.isolate(block) {
            return false;
        }
        let begun = Instant::now();
        let frames = block * PAGEBLOCK_FRAMES..(block + 1) * PAGEBLOCK_FRAMES;
        // Pageblocks in other states have no resident memory.
        let is_resident =
            matches!(self.ledger.block(block as usize), ReturnState::Resident | ReturnState::Idle);
        if is_resident && discard(&self.memory, bytes_of(&frames), self.giveback()) == Discarded::Yes {
            self.ledger.note_zero(frames);
            self.note_returned(BLOCK_BYTES as u64, begun.elapsed());
        }
        self.ledger.set_block(block as usize, ReturnState::Retired);
        true
    }
}
