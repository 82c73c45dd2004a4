//! Sends the day's events to an allocator, and records the place of each block that the allocator handed out.

use std::collections::HashMap;

use pageset_core::{CpuId, FrameAllocator, MigrateType, Order, Pfn, Request, RequestTraits};

use super::census::Uses;
use super::course::Work;
use super::day::{Event, Urgency};

/// The place of a block in memory, its size and its type.
#[derive(Clone, Copy, Debug)]
struct Placed {
    pfn: u32,
    order: u8,
    form: Form,
    is_movable: bool,
}

/// How a request was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The allocator had no memory for the request.
    Missing,
    Block,
    /// The allocator had no movable block of the requested size, so the caller got single pages.
    Scattered,
}

const NOWHERE: Placed = Placed { pfn: 0, order: 0, form: Form::Missing, is_movable: false };
const NOBODY: u32 = u32::MAX;

/// An allocator, and the blocks that it handed out.
#[derive(Debug)]
pub(super) struct Memory<'a, A> {
    pub(super) allocator: &'a A,
    placed: Vec<Placed>,
    /// The single pages that were allocated in place of a block, by the block's number.
    scattered: HashMap<u32, Vec<u32>>,
    /// For each frame, the number of the block that begins with the frame. The table `begins` is empty if the
    /// day has no compaction.
    begins: Vec<u32>,
    pub(super) uses: Uses,
    pub(super) work: Work,
}

impl<'a, A: FrameAllocator> Memory<'a, A> {
    pub(super) fn new(allocator: &'a A, frames: u64, pages_move: bool) -> Self {
        Self {
            allocator,
            placed: Vec::new(),
            scattered: HashMap::new(),
            begins: if pages_move { vec![NOBODY; frames as usize] } else { Vec::new() },
            uses: Uses::new(frames),
            work: Work::default(),
        }
    }

    pub(super) fn perform(&mut self, event: Event) {
        match event {
            Event::Alloc { cpu, slot, order, migratetype, urgency } => {
                self.alloc(CpuId(cpu), slot, order, migratetype, urgency);
            }
            Event::Free { cpu, slot } => self.free(CpuId(cpu), slot),
        }
    }

    fn alloc(&mut self, cpu: CpuId, slot: u32, order: u8, migratetype: MigrateType, urgency: Urgency) {
        let at = slot as usize;
        if at >= self.placed.len() {
            self.placed.resize(at + 1, NOWHERE);
        }
        let is_movable = migratetype == MigrateType::Movable;
        let request = request(order, migratetype);
        let request = match urgency {
            Urgency::Waits => request,
            Urgency::Atomic => request.atomic(),
            Urgency::Huge => request.with(RequestTraits::WAKE_KSWAPD | RequestTraits::NO_RESERVES),
        };
        self.work.requests += 1;
        self.work.huge_requests += u64::from(urgency == Urgency::Huge);
        let (form, pfn) = match self.allocator.alloc(cpu, &request) {
            Ok(Pfn(pfn)) => {
                self.note(pfn as u32, order, slot, is_movable);
                (Form::Block, pfn as u32)
            }
            Err(_) if is_movable && order > 0 => {
                self.work.huge_failures += u64::from(urgency == Urgency::Huge);
                self.scatter(cpu, slot, order);
                (Form::Scattered, 0)
            }
            Err(_) => {
                self.work.failures += 1;
                (Form::Missing, 0)
            }
        };
        self.placed[at] = Placed { pfn, order, form, is_movable };
    }

    /// Allocates single pages instead of a block.
    fn scatter(&mut self, cpu: CpuId, slot: u32, order: u8) {
        let request = request(0, MigrateType::Movable);
        let mut pages = Vec::with_capacity(1 << order);
        for _ in 0..1 << order {
            match self.allocator.alloc(cpu, &request) {
                Ok(Pfn(pfn)) => {
                    self.note(pfn as u32, 0, slot, true);
                    pages.push(pfn as u32);
                }
                Err(_) => self.work.failures += 1,
            }
        }
        self.scattered.insert(slot, pages);
    }

    fn free(&mut self, cpu: CpuId, slot: u32) {
        let Placed { pfn, order, form, is_movable } = self.placed[slot as usize];
        match form {
            Form::Missing => {}
            Form::Block => self.release(cpu, pfn, order, is_movable),
            Form::Scattered => {
                let pages = self.scattered.remove(&slot).unwrap_or_default();
                pages.into_iter().for_each(|pfn| self.release(cpu, pfn, 0, true));
            }
        }
        self.placed[slot as usize] = NOWHERE;
    }

    fn release(&mut self, cpu: CpuId, pfn: u32, order: u8, is_movable: bool) {
        self.uses.change(pfn.into(), 1 << order, !is_movable, false);
        if let Some(begins) = self.begins.get_mut(pfn as usize) {
            *begins = NOBODY;
        }
        let freed = self.allocator.free(cpu, Pfn(pfn.into()), order_of(order));
        debug_assert!(freed.is_ok(), "the block is in use");
    }

    fn note(&mut self, pfn: u32, order: u8, slot: u32, is_movable: bool) {
        self.uses.change(pfn.into(), 1 << order, !is_movable, true);
        if let Some(begins) = self.begins.get_mut(pfn as usize) {
            *begins = slot;
        }
    }

    /// Moves the block that begins at the frame `pfn`, if a block begins there. `find` allocates the block's
    /// new place. Returns `false` if the block cannot be moved, or if `find` finds no place.
    pub(super) fn move_away(&mut self, pfn: u32, find: impl FnOnce(&Self, u8) -> Option<u32>) -> bool {
        let slot = self.begins[pfn as usize];
        let Some(placed) = self.placed.get(slot as usize).copied() else { return true };
        if !placed.is_movable {
            return false;
        }
        let order = if placed.form == Form::Scattered { 0 } else { placed.order };
        let Some(to) = find(self, order) else { return false };
        self.note(to, order, slot, true);
        if placed.form == Form::Scattered {
            let pages = self.scattered.get_mut(&slot).into_iter().flatten();
            pages.filter(|page| **page == pfn).for_each(|page| *page = to);
        } else {
            self.placed[slot as usize].pfn = to;
        }
        self.release(CpuId(0), pfn, order, true);
        self.work.moved_pages += 1 << order;
        true
    }

    /// Allocates the block at the frame `pfn` as the target of a move. Returns whether the block was free.
    pub(super) fn take_at(&self, pfn: u32, order: u8) -> bool {
        let request = request(order, MigrateType::Movable);
        self.allocator.alloc_at(CpuId(0), Pfn(pfn.into()), &request).is_ok()
    }

    /// Allocates any free block of `order` as the target of a move. If `good` refuses the block's first
    /// frame, frees the block again and returns `None`.
    pub(super) fn take_any(&self, order: u8, good: impl Fn(u64) -> bool) -> Option<u32> {
        let request = request(order, MigrateType::Movable);
        let Pfn(pfn) = self.allocator.alloc(CpuId(0), &request).ok()?;
        if good(pfn) {
            return Some(pfn as u32);
        }
        let freed = self.allocator.free(CpuId(0), Pfn(pfn), order_of(order));
        debug_assert!(freed.is_ok(), "it was just allocated");
        None
    }
}

fn request(order: u8, migratetype: MigrateType) -> Request {
    let request = Request::new(order_of(order));
    if migratetype == MigrateType::Movable { request.movable() } else { request.of_type(migratetype) }
}

fn order_of(order: u8) -> Order {
    Order::new(order).expect("no block of a day is larger than a pageblock")
}
