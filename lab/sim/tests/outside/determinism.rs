//! Tests that equal input gives equal results, even if the computer runs other programs.

use std::rc::Rc;
use std::thread;

use pageset_core::{CpuId, Order, Pfn, Request};
use pageset_sim::{
    Builder, Channel, LockClass, Machine, SharedLine, Simulation, SimulationOutcome, Span, VirtualCpu,
    VirtualMutex, mutex,
};
use rand::Rng;

type Common = (VirtualMutex<u64>, SharedLine);

fn produce(cpu: &VirtualCpu, pages: &Channel<Pfn>, common: &Common) {
    let mut rng = cpu.rng("orders");
    while cpu.running() {
        let order = Order::new((rng.next_u32() % 4) as u8).unwrap();
        let own = cpu.alloc(&Request::new(order).movable()).unwrap();
        pages.send(cpu, cpu.alloc(&Request::new(Order::ZERO).movable()).unwrap());
        cpu.free(own, order).unwrap();
        *common.0.lock() += 1;
        cpu.score(1);
    }
    pages.close(cpu);
}

fn consume(cpu: &VirtualCpu, pages: &Channel<Pfn>, common: &Common) {
    while let Some(page) = pages.receive(cpu) {
        common.1.rmw(cpu);
        *common.0.lock() += 1;
        cpu.free(page, Order::ZERO).unwrap();
    }
}

/// Half of the CPUs allocate pages, and the other half of the CPUs frees these pages. All CPUs use one lock.
fn run(seed: u64) -> SimulationOutcome {
    run_with(seed, |builder| builder)
}

fn run_with(seed: u64, choose: impl FnOnce(Builder<'_>) -> Builder<'_>) -> SimulationOutcome {
    let machine = Machine::named("epyc-2").unwrap();
    let cpus = machine.cpus();
    let builder =
        Simulation::builder(&machine).seed(seed).duration(Span::from_ms(3)).tick(Span::from_us(100));
    let mut simulation = choose(builder).build().unwrap();
    let lock = Rc::new((mutex(LockClass::Lru, 0_u64), SharedLine::new()));
    let pages = Channel::<Pfn>::new(64, cpus / 2);
    for cpu in 0..cpus / 2 {
        let (pages, lock) = (pages.clone(), Rc::clone(&lock));
        simulation.spawn(CpuId(cpu), move |cpu| produce(cpu, &pages, &lock)).unwrap();
    }
    for cpu in cpus / 2..cpus {
        let (pages, lock) = (pages.clone(), Rc::clone(&lock));
        simulation.spawn(CpuId(cpu), move |cpu| consume(cpu, &pages, &lock)).unwrap();
    }
    simulation.run().unwrap()
}

#[test]
fn one_seed_gives_one_digest_on_any_number_of_threads() {
    let alone = run(1);
    let threads: Vec<_> = (0..4).map(|index| thread::spawn(move || run(1 + index % 2).digest)).collect();
    let digests: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(digests[0], alone.digest);
    assert_eq!(digests[2], alone.digest);
    assert_ne!(digests[1], alone.digest);
    assert_eq!(digests[1], digests[3]);
}

/// The tables of each run are at different addresses. The result of a run must not depend on the addresses.
#[test]
fn owned_pageblocks_are_determined_by_the_seed_too() {
    let run = |seed: u64| run_with(seed, |builder| builder.owned_blocks_straight());
    let alone = run(1);
    let elsewhere = thread::spawn(move || {
        let _moves_what_comes_next = vec![1_u8; 100_001];
        run(1)
    });
    let elsewhere = elsewhere.join().unwrap();
    assert!(alone.lines.contended > 0, "{:?}", alone.lines);
    assert_eq!((alone.digest, alone.lines), (elsewhere.digest, elsewhere.lines));
    assert_ne!(alone.digest, run(2).digest);
    assert_ne!(
        alone.digest,
        run_with(1, |builder| builder).digest,
        "Linux's allocator makes other decisions"
    );
}
