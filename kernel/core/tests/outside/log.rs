//! A test machine: one zone, two CPUs, and an event sink that keeps every event.

use std::slice::from_ref;
use std::sync::Mutex;

use pageset_core::{
    Config, CpuId, DrainReason, Event, EventSink, NodeId, Order, PagesetInfo, Pfn, Policy, Request,
    ZoneConfig, ZoneId, ZoneKind,
};

use crate::host::{Allocator, build, order};

pub(crate) const ZONE: ZoneId = ZoneId(0);
pub(crate) const CPU: CpuId = CpuId(0);
pub(crate) const OTHER: CpuId = CpuId(1);

/// An event sink that keeps all events.
#[derive(Debug, Default)]
pub(crate) struct Log(Mutex<Vec<Event>>);

impl Log {
    /// The events since the last call.
    pub(crate) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.0.lock().expect("no panic in a sink"))
    }
}

impl EventSink for Log {
    fn emit(&self, _: CpuId, event: Event) {
        self.0.lock().expect("no panic in a sink").push(event);
    }
}

/// One drain, made from the events of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drained {
    pub(crate) reason: DrainReason,
    pub(crate) pages: u32,
}

/// An allocator of one zone with its log.
pub(crate) struct Machine {
    pub(crate) allocator: Allocator<Log>,
}

impl Machine {
    /// Makes a machine of two CPUs with one zone of `frames` frames, which begins at frame 0.
    pub(crate) fn new(policy: Policy, frames: u64) -> Self {
        let span = 0..frames;
        let zones = [ZoneConfig {
            kind: ZoneKind::Normal,
            node: NodeId(0),
            span: span.clone(),
            regions: from_ref(&span),
        }];
        Self { allocator: build(&Config::new(&zones, &[NodeId(0); 2]).with_policy(policy)) }
    }

    /// The events since the last call.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.allocator.platform().0.take()
    }

    /// The drains among the events since the last call.
    pub(crate) fn drains(&self) -> Vec<Drained> {
        let drain = |event: &Event| match *event {
            Event::PcpDrain { reason, pages, .. } => Some(Drained { reason, pages }),
            _ => None,
        };
        self.events().iter().filter_map(drain).collect()
    }

    pub(crate) fn info(&self, cpu: CpuId) -> PagesetInfo {
        self.allocator.pageset_info(ZONE, cpu).expect("a CPU of the machine")
    }

    /// Allocates a movable block.
    #[track_caller]
    pub(crate) fn alloc(&self, cpu: CpuId, size: u8) -> (Pfn, Order) {
        let order = order(size);
        (self.allocator.alloc(cpu, &Request::new(order).movable()).expect("memory enough"), order)
    }

    /// Allocates movable blocks on CPU `OTHER`. After this call, the test can free the blocks on CPU `CPU`,
    /// which has allocated nothing.
    #[track_caller]
    pub(crate) fn stock(&self, size: u8, count: usize) -> Vec<(Pfn, Order)> {
        let blocks = (0..count).map(|_| self.alloc(OTHER, size)).collect();
        self.events();
        blocks
    }

    #[track_caller]
    pub(crate) fn free(&self, cpu: CpuId, (pfn, order): (Pfn, Order)) {
        self.allocator.free(cpu, pfn, order).expect("an allocated block");
    }
}
