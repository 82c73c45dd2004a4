//! Equal input gives equal results, whatever else the computer does.

use std::rc::Rc;
use std::thread;

use pageset_core::{CpuId, Order, Pfn, Request};
use pageset_sim::{
    Channel, LockClass, Machine, Outcome, SharedLine, Simulation, Span, VirtualCpu, VirtualMutex, mutex,
};
use rand::Rng;

type Common = (VirtualMutex<u64>, SharedLine);

fn produce(cpu: &VirtualCpu, pages: &Channel<Pfn>, common: &Common) {
    let mut rng = cpu.rng("orders");
    while cpu.running() {
        let order = Order::new((rng.next_u32() % 4) as u8).unwrap();
        let own = cpu.alloc(&Request::new(order)).unwrap();
        pages.send(cpu, cpu.alloc(&Request::new(Order::ZERO)).unwrap());
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

/// Half of the CPUs allocate, the others free; all use one lock.
fn run(seed: u64) -> Outcome {
    let machine = Machine::named("epyc-2").unwrap();
    let cpus = machine.cpus();
    let mut simulation = Simulation::builder(&machine)
        .seed(seed)
        .duration(Span::from_ms(3))
        .tick(Span::from_us(100))
        .build()
        .unwrap();
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
