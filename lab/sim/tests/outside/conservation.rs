//! Tests that no allocator loses a frame, and that bodies that deadlock, panic or wait for ever are reported.
//! In debug builds, these tests also check the lock order.

use pageset_core::{CpuId, Order, POLICIES, Pfn, Request};
use pageset_sim::{
    Builder, Channel, MACHINES, Machine, Simulation, SimulationError, SimulationOutcome, Span, VirtualCpu,
    mutex,
};
use rand::Rng;

fn small(name: &str) -> Machine {
    let bundled = MACHINES.iter().find(|machine| machine.name == name).expect("it is bundled");
    Machine::parse(&bundled.text().replace("mib_per_node = ", "mib_per_node = 64 #"), name)
        .expect("still valid")
}

/// Allocates blocks of all orders, and sends some of them to another CPU. Frees the blocks that it does not
/// send, and the blocks that it receives.
fn churn(cpu: &VirtualCpu, from: &Channel<(Pfn, Order)>, to: &Channel<(Pfn, Order)>) {
    let mut rng = cpu.rng("churn");
    let mut held = Vec::new();
    while cpu.running() {
        let order = Order::new(rng.next_u32().trailing_zeros() as u8 % 11).expect("at most 10");
        if let Ok(pfn) = cpu.alloc(&Request::new(order).movable()) {
            cpu.clear(pfn, Order::ZERO);
            held.push((pfn, order));
        }
        if let Some(block) = held.pop()
            && let Err(block) = to.try_send(cpu, block)
        {
            held.push(block);
        }
        if let pageset_sim::TryReceived::Message(block) = from.try_receive(cpu) {
            held.push(block);
        }
        if held.len() > 20 {
            cpu.free_list(&held).expect("all are this CPU's");
            held.clear();
        }
    }
    to.close(cpu);
    while let Some(block) = from.receive(cpu) {
        held.push(block);
    }
    for (pfn, order) in held {
        cpu.free(pfn, order).expect("it is this CPU's");
    }
}

/// Every CPU allocates, frees and sends blocks to other CPUs. `choose` selects the allocator.
fn churned(name: &str, choose: impl FnOnce(Builder<'_>) -> Builder<'_>) -> SimulationOutcome {
    let machine = small("westmere-ep");
    let builder = Simulation::builder(&machine)
        .duration(Span::from_us(600))
        .tick(Span::from_us(50))
        .idle_after(Span::from_ms(1));
    let mut simulation = choose(builder).build().unwrap();
    let cpus = machine.cpus();
    let channels: Vec<_> = (0..cpus).map(|_| Channel::new(8, 1)).collect();
    for cpu in 0..cpus {
        let from = channels[cpu as usize].clone();
        let to = channels[((cpu + 1) % cpus) as usize].clone();
        simulation.spawn(CpuId(cpu), move |cpu| churn(cpu, &from, &to)).unwrap();
    }
    let outcome = simulation.run().unwrap();
    assert!(outcome.stuck.is_empty(), "{name}");
    assert_eq!((outcome.census.allocated, outcome.census.leaked), (0, 0), "{name}");
    assert!(outcome.counts.allocs > 1000, "{name}: {:?}", outcome.counts);
    // At the end of the measured time, at most a fifth of the pages are in use. The pages that are not in use
    // are free, inside or outside whole pageblocks.
    let (pages, memory) = (machine.memory_bytes() / 4096, outcome.memory);
    let free = memory.whole_at_end * 512 + memory.apart_at_end;
    assert!(
        (pages * 4 / 5..=pages).contains(&free) && memory.apart_at_end >= memory.held_at_end,
        "{memory:?} of {pages}"
    );
    outcome
}

#[test]
fn every_policy_keeps_every_frame() {
    for policy in POLICIES {
        churned(policy.name, |builder| builder.policy(*policy));
    }
}

/// In this test, CPUs interrupt each other in the middle of the allocator's operations. So compare-exchanges
/// fail because another CPU came first, and pageblocks change while a CPU takes frames from them.
#[test]
fn owned_pageblocks_keep_every_frame() {
    for seed in 0..10 {
        let outcome = churned("owned-blocks", |builder| match seed % 2 {
            0 => builder.seed(seed).owned_blocks(),
            _ => builder.seed(seed).owned_blocks_straight(),
        });
        assert!(outcome.lines.contended > 0, "{:?}", outcome.lines);
        assert_eq!((outcome.cached_after_idle, outcome.memory.held_after_two_ticks), (0, 0));
    }
}

/// Simulates a machine with 512 CPUs and nearly 1 TiB of memory. All of its CPUs run.
#[test]
fn five_hundred_cpus_and_a_tebibyte_are_ordinary() {
    let machine = Machine::named("altix-512").unwrap();
    assert_eq!((machine.cpus(), machine.memory_bytes() >> 30), (512, 1023));
    let mut simulation = Simulation::builder(&machine).duration(Span::from_us(200)).build().unwrap();
    for cpu in 0..machine.cpus() {
        let body = |cpu: &VirtualCpu| {
            while cpu.running() {
                let pfn = cpu.alloc(&Request::new(Order::ZERO)).unwrap();
                cpu.free(pfn, Order::ZERO).unwrap();
                cpu.score(1);
            }
        };
        simulation.spawn(CpuId(cpu), body).unwrap();
    }
    let outcome = simulation.run().unwrap();
    assert!(outcome.counts.score > 512 * 100, "{:?}", outcome.counts);
}

#[test]
fn a_body_that_waits_for_nobody_is_reported() {
    let machine = small("epyc-2");
    let mut simulation = Simulation::builder(&machine).build().unwrap();
    let channel = Channel::<()>::new(1, 1);
    simulation.spawn(CpuId(0), move |cpu| assert_eq!(channel.receive(cpu), None)).unwrap();
    assert_eq!(simulation.run().unwrap().stuck, [CpuId(0)]);
}

#[test]
fn locks_that_wait_for_each_other_are_an_error() {
    let machine = small("epyc-2");
    let mut simulation = Simulation::builder(&machine).build().unwrap();
    let class = pageset_sim::LockClass::Other;
    let locks = std::rc::Rc::new([mutex(class, ()), mutex(class, ())]);
    for cpu in 0..2_usize {
        let locks = std::rc::Rc::clone(&locks);
        let body = move |here: &VirtualCpu| {
            let _first = locks[cpu].lock();
            here.sleep(Span::from_us(10));
            let _second = locks[1 - cpu].lock();
        };
        simulation.spawn(CpuId(cpu as u32), body).unwrap();
    }
    assert!(matches!(simulation.run(), Err(SimulationError::Deadlock(_))));
}

#[test]
#[should_panic(expected = "a body gives up")]
fn a_panic_in_a_body_ends_the_run() {
    let machine = small("epyc-2");
    let mut simulation = Simulation::builder(&machine).build().unwrap();
    simulation.spawn(CpuId(0), |cpu| cpu.sleep(Span::from_ms(1))).unwrap();
    simulation
        .spawn(CpuId(1), |cpu| {
            cpu.advance(Span::from_us(1));
            panic!("a body gives up");
        })
        .unwrap();
    let _ = simulation.run();
}

#[test]
fn a_cpu_that_is_not_there_gets_no_body() {
    let machine = small("epyc-2");
    let mut simulation = Simulation::builder(&machine).build().unwrap();
    simulation.spawn(CpuId(0), |_| {}).unwrap();
    for cpu in [0, 2] {
        let error = simulation.spawn(CpuId(cpu), |_| {}).unwrap_err();
        assert!(error.to_string().contains(&format!("CPU {cpu}")), "{error}");
    }
    assert!(Simulation::builder(&machine).cpus(3).build().is_err());
}
