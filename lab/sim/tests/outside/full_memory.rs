//! Tests simulations whose memory is full when the run begins.

use std::cell::RefCell;
use std::rc::Rc;

use pageset_core::{CpuId, NodeId, Order, Reclaim, Request, policy};
use pageset_sim::{Machine, Simulation, Span};

const LEFT: u64 = 5000;

fn filled(machine: &Machine) -> Simulation {
    let builder = Simulation::builder(machine).policy(policy::LINUX_4_18).duration(Span::from_ms(100));
    let mut simulation = builder.build().expect("a bundled machine");
    simulation.fill_memory(&[(NodeId(1), LEFT)]);
    simulation
}

/// Pages that `fill_memory` allocated count as in use. Pages that `fill_memory` allocated are free again when
/// the bodies have ended.
#[test]
fn a_full_node_has_its_high_watermark_and_what_is_left_to_it() {
    let machine = Machine::named("westmere-ep").expect("it is bundled");
    let mut simulation = filled(&machine);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let sees = Rc::clone(&seen);
    let body = move |cpu: &pageset_sim::VirtualCpu| {
        sees.borrow_mut().extend([0, 1, 2].map(|node| cpu.memory(NodeId(node))));
    };
    simulation.spawn(CpuId(0), body).expect("a CPU without a body");
    let outcome = simulation.run().expect("no frame is lost");
    assert_eq!(outcome.census.allocated, 0);
    let seen = seen.borrow();
    for (memory, left) in seen.iter().zip([0, LEFT]) {
        let memory = memory.expect("the machine has two nodes");
        let above = memory.free - memory.watermarks.high;
        assert!((left..=left + 1024).contains(&above), "{above} pages for {left}");
    }
    assert_eq!(seen[2], None);
}

/// If free memory is below the min watermark, the request fails and the caller reclaims. Pages in page sets
/// do not count as free until the page sets are drained.
#[test]
fn a_request_below_the_minimum_is_left_to_the_caller() {
    let machine = Machine::named("westmere-ep").expect("it is bundled");
    let mut simulation = filled(&machine);
    let body = |cpu: &pageset_sim::VirtualCpu| {
        let request = Request::new(Order::ZERO).movable();
        let mut pages = Vec::new();
        while let Ok(pfn) = cpu.alloc_above_min(&request) {
            pages.push((pfn, Order::ZERO));
        }
        let memory = cpu.memory(NodeId(0)).expect("the machine has two nodes");
        assert!(memory.free <= memory.watermarks.min);
        assert_eq!(cpu.node_of(pages[0].0), NodeId(0), "the CPU's own node comes first");
        assert!(pages.iter().any(|(pfn, _)| cpu.node_of(*pfn) == NodeId(1)), "then the other one");
        let few = pages.split_off(pages.len() - 20);
        cpu.free_list(&few).expect("they are this CPU's");
        assert!(cpu.alloc_above_min(&request).is_err(), "pages in page sets do not count as free");
        cpu.drain_all();
        cpu.set_reclaim(NodeId(0), Reclaim::Active);
        pages.push((cpu.alloc_above_min(&request).expect("they are free now"), Order::ZERO));
        cpu.free_list(&pages).expect("they are this CPU's");
    };
    simulation.spawn(CpuId(0), body).expect("a CPU without a body");
    let outcome = simulation.run().expect("no frame is lost");
    assert_eq!((outcome.counts.failures, outcome.counts.direct_reclaims), (0, 2));
}
