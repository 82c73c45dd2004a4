//! Compares locks, lines and channels with the formulas of queueing theory.
//!
//! Tests that compare locks with a formula use the lock model without hand-over costs, so that a lock behaves
//! like the single server of the theory. Simulated and computed figures must agree within a tolerance. The
//! tolerance between simulated and computed figures covers the random deviation of a short run.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use pageset_core::policy::LINUX_6_18;
use pageset_core::{CpuId, Order, Request};
use pageset_sim::machine::{Cost, Planes};
use pageset_sim::{
    Channel, FrameLayout, LockClass, LockModel, MACHINES, Machine, SharedLine, Simulation, SimulationOutcome,
    Span, Spin, TickPhase, Time, VirtualCpu, mutex,
};
use rand::{Rng, RngExt};

/// A machine whose lines, wake-ups and atomic operations cost nothing. Hardware threads of one core do not
/// slow each other down.
fn ideal(name: &str) -> Machine {
    let bundled = MACHINES.iter().find(|machine| machine.name == name).expect("it is bundled");
    // The memory is small, because building the tables of a large memory takes time and no test needs it.
    let text = bundled.text().replace("mib_per_node = ", "mib_per_node = 64 #");
    let mut machine = Machine::parse(&text, name).expect("it is still valid");
    for cost in [
        &mut machine.costs.atomic,
        &mut machine.costs.line_from_sibling,
        &mut machine.costs.line_from_cache,
        &mut machine.costs.line_from_node,
        &mut machine.costs.wakeup,
    ] {
        cost.ns = 0.0;
    }
    machine.costs.sibling_slowdown.factor = 1.0;
    machine
}

/// A time drawn from the exponential distribution.
fn exponential(rng: &mut impl Rng, mean_ns: f64) -> Span {
    let uniform: f64 = rng.random();
    Span::from_ns_f64(-mean_ns * (1.0 - uniform).ln())
}

/// Simulates CPUs that compute and then hold one lock, again and again. The theory calls the computing
/// "thinking".
fn think_and_lock(
    cpus: u32,
    (think_ns, hold_ns): (f64, f64),
    holds: impl Fn(&mut dyn Rng, f64) -> Span + Copy + 'static,
    span: Span,
) -> SimulationOutcome {
    let machine = ideal("skylake-ex");
    let mut simulation = Simulation::builder(&machine)
        .cpus(cpus)
        .lock_model(LockModel::Free)
        .seed(7)
        .warm_up(Span::from_ms(1))
        .duration(span)
        .build()
        .unwrap();
    let lock = Rc::new(mutex(LockClass::Other, ()));
    for cpu in 0..cpus {
        let lock = Rc::clone(&lock);
        let body = move |cpu: &VirtualCpu| {
            let mut rng = cpu.rng("queueing");
            while cpu.running() {
                cpu.advance(exponential(&mut rng, think_ns));
                let held = lock.lock();
                cpu.advance(holds(&mut rng, hold_ns));
                drop(held);
                cpu.score(1);
            }
        };
        simulation.spawn(CpuId(cpu), body).unwrap();
    }
    simulation.run().unwrap()
}

fn agrees(what: &str, simulated: f64, computed: f64, tolerance: f64) {
    let error = (simulated - computed).abs() / computed;
    assert!(
        error <= tolerance,
        "{what}: simulated {simulated}, computed {computed}: off by {:.1} %",
        error * 100.0
    );
}

/// Machine repairman model, M/M/1//N: the probability that k of N CPUs wait for the lock or hold the lock is
/// proportional to N!/(N-k)! (S/Z)^k. S is the mean hold, Z the mean time of thinking.
#[test]
fn a_closed_queue_agrees_with_the_machine_repairman_formula() {
    for (cpus, think_ns, hold_ns) in
        [(2, 1000.0, 500.0), (8, 4000.0, 500.0), (32, 10_000.0, 300.0), (64, 8000.0, 200.0)]
    {
        let outcome = think_and_lock(
            cpus,
            (think_ns, hold_ns),
            |rng, mean| exponential(&mut &mut *rng, mean),
            Span::from_ms(40),
        );
        let mut weight = 1.0;
        let mut sum = 1.0;
        for waiting in 0..cpus {
            weight *= f64::from(cpus - waiting) * hold_ns / think_ns;
            sum += weight;
        }
        let utilisation = 1.0 - 1.0 / sum;
        let throughput = utilisation / hold_ns;
        // Little's law: N = X (Z + W + S), for N CPUs at throughput X that think for Z, wait for W and hold
        // the lock for S.
        let wait_ns = f64::from(cpus) / throughput - think_ns - hold_ns;
        let lock = outcome.lock(LockClass::Other);
        let measured_ns = outcome.measured.as_ns_f64();
        agrees("utilisation", lock.hold_ns() as f64 / measured_ns, utilisation, 0.02);
        agrees("throughput", lock.acquisitions as f64 / measured_ns, throughput, 0.02);
        agrees("mean wait", lock.wait_ns() as f64 / lock.acquisitions as f64, wait_ns, 0.06);
    }
}

/// M/D/1: if many CPUs seldom ask for the lock, their requests are a Poisson stream, and the mean wait is W =
/// ρ S / (2 (1 - ρ)) at load ρ. A waiting CPU makes no other request, which lowers the load of 192 CPUs a
/// little. So the test puts the measured load into the formula.
#[test]
fn a_lock_with_equal_holds_agrees_with_m_d_1() {
    for load in [0.3, 0.6] {
        let hold_ns = 100.0;
        let think_ns = 192.0 * hold_ns / load;
        let outcome =
            think_and_lock(192, (think_ns, hold_ns), |_, mean| Span::from_ns_f64(mean), Span::from_ms(20));
        let lock = outcome.lock(LockClass::Other);
        let measured = lock.hold_ns() as f64 / outcome.measured.as_ns_f64();
        let wait_ns = measured * hold_ns / (2.0 * (1.0 - measured));
        agrees("mean wait", lock.wait_ns() as f64 / lock.acquisitions as f64, wait_ns, 0.05);
    }
}

/// A saturated lock serves one hold after another. Its throughput is 1/S for holds of length S, for any
/// number of CPUs.
#[test]
fn a_longer_hold_lowers_throughput_in_proportion() {
    let throughput = |hold_ns| {
        let outcome =
            think_and_lock(64, (100.0, hold_ns), |_, mean| Span::from_ns_f64(mean), Span::from_ms(2));
        outcome.score_per_second()
    };
    agrees("200 ns", throughput(200.0), 1e9 / 200.0, 0.01);
    agrees("400 ns", throughput(400.0), 1e9 / 400.0, 0.01);
}

#[test]
fn an_infinitely_fast_lock_gives_linear_scaling() {
    let throughput = |cpus| {
        let outcome = think_and_lock(cpus, (1000.0, 0.0), |_, _| Span::ZERO, Span::from_ms(5));
        assert_eq!(outcome.lock(LockClass::Other).wait_ns(), 0);
        outcome.score_per_second()
    };
    let one = throughput(1);
    for cpus in [2, 16, 192] {
        agrees("scaling", throughput(cpus) / one, cpus.into(), 0.03);
    }
}

/// M/M/1: one CPU sends at exponentially distributed intervals, and another CPU serves each message for an
/// exponentially distributed time. The mean wait is W = ρ / (μ - λ), for the service rate μ, the arrival rate
/// λ and the load ρ = λ / μ.
#[test]
fn a_channel_agrees_with_m_m_1() {
    let (gap_ns, service_ns) = (1000.0, 600.0);
    let machine = ideal("epyc-2");
    let mut simulation = Simulation::builder(&machine).seed(3).duration(Span::from_ms(200)).build().unwrap();
    let channel = Channel::new(1 << 20, 1);
    let (sender, receiver) = (channel.clone(), channel);
    let waited = Rc::new(Cell::new((0.0, 0_u32)));
    let total = Rc::clone(&waited);
    simulation
        .spawn(CpuId(0), move |cpu| {
            let mut rng = cpu.rng("gaps");
            while cpu.running() {
                cpu.sleep(exponential(&mut rng, gap_ns));
                sender.send(cpu, cpu.now());
            }
            sender.close(cpu);
        })
        .unwrap();
    simulation
        .spawn(CpuId(1), move |cpu| {
            let mut rng = cpu.rng("services");
            while let Some(sent) = receiver.receive(cpu) {
                let (sum, count) = total.get();
                total.set((sum + cpu.now().since(sent).as_ns_f64(), count + 1));
                cpu.advance(exponential(&mut rng, service_ns));
            }
        })
        .unwrap();
    let outcome = simulation.run().unwrap();
    let (sum, count) = waited.get();
    let load = service_ns / gap_ns;
    let wait_ns = load / (1.0 / service_ns - 1.0 / gap_ns);
    agrees("mean wait", sum / f64::from(count), wait_ns, 0.08);
    let busy = outcome.busy[1].as_ns_f64() / outcome.measured.as_ns_f64();
    agrees("utilisation", busy, load, 0.03);
}

/// Two hardware threads of one core do less work than two cores. The machine's slowdown factor says how much
/// less work the two threads do.
#[test]
fn threads_of_one_core_slow_each_other_down() {
    let score = |cpus: [u32; 2]| {
        let mut machine = ideal("skylake-desktop");
        machine.costs.sibling_slowdown.factor = 1.5;
        let mut simulation = Simulation::builder(&machine).duration(Span::from_ms(1)).build().unwrap();
        for cpu in cpus {
            let body = |cpu: &VirtualCpu| {
                while cpu.running() {
                    cpu.advance(Span::from_ns(100));
                    cpu.score(1);
                }
            };
            simulation.spawn(CpuId(cpu), body).unwrap();
        }
        simulation.run().unwrap().score_per_second()
    };
    agrees("two cores over one", score([0, 1]) / score([0, 4]), 1.5, 0.01);
}

/// Makes two CPUs change the same cache line, again and again.
fn change_all_the_time(simulation: &mut Simulation, line: SharedLine, cpus: [u32; 2]) {
    let line = Rc::new(line);
    for cpu in cpus {
        let line = Rc::clone(&line);
        let body = move |cpu: &VirtualCpu| {
            while cpu.running() {
                line.rmw(cpu);
                cpu.score(1);
            }
        };
        simulation.spawn(CpuId(cpu), body).unwrap();
    }
}

/// A shared line serves one atomic operation at a time. Each operation moves the line to another CPU.
#[test]
fn atomics_on_one_line_queue_up() {
    let mut machine = ideal("epyc-2");
    machine.costs.atomic.ns = 5.0;
    machine.costs.line_from_cache.ns = 45.0;
    let mut simulation = Simulation::builder(&machine).duration(Span::from_ms(1)).build().unwrap();
    change_all_the_time(&mut simulation, SharedLine::new(), [0, 1]);
    agrees("atomics a second", simulation.run().unwrap().score_per_second(), 1e9 / 50.0, 0.001);
}

/// Two CPUs of different bricks (groups of nodes) want one line. The plane between the bricks carries the
/// line and the request of the waiting CPU. The line moves again only after the plane has carried the line
/// and the request. Inside a brick, lines do not use the plane.
#[test]
fn a_plane_carries_a_line_and_the_requests_of_those_who_wait() {
    let rate = |brick_nodes| {
        let mut machine = ideal("skylake-ep");
        machine.costs.atomic.ns = 5.0;
        machine.costs.line_from_distance.iter_mut().for_each(|at| at.cache_ns = 45.0);
        let cost = |ns| Cost { ns, source: "this test".to_owned() };
        let (line, request) = (cost(200.0), Some(cost(20.0)));
        machine.planes = Some(Planes { count: 1, brick_nodes, line, request });
        let other = machine.topology.cpus_per_node();
        let mut simulation =
            Simulation::builder(&machine).cpus(other + 1).duration(Span::from_ms(1)).build().unwrap();
        change_all_the_time(&mut simulation, SharedLine::over(Some(Arc::default())), [0, other]);
        simulation.run().unwrap().score_per_second()
    };
    agrees("between bricks", rate(1), 1e9 / 225.0, 0.001);
    agrees("inside a brick", rate(2), 1e9 / 50.0, 0.001);
}

/// Eight CPUs fill their page sets, and sleep while the page sets decay. Returns how often a CPU found a
/// zone's lock taken while the page sets decayed, and how long CPUs waited.
fn decay_together(phase: TickPhase) -> (u64, u64) {
    let mut machine = ideal("skylake-ep");
    machine.tick_phase = phase;
    let builder = Simulation::builder(&machine).cpus(8).policy(LINUX_6_18).lock_model(LockModel::Free);
    let mut simulation =
        builder.tick(Span::from_ms(8)).warm_up(Span::from_ms(4)).duration(Span::from_ms(80)).build().unwrap();
    for cpu in 0..8 {
        let body = |cpu: &VirtualCpu| {
            let movable = Request::new(Order::ZERO).movable();
            let pages: Vec<_> = (0..1000).map(|_| cpu.alloc(&movable).unwrap()).collect();
            pages.into_iter().for_each(|page| cpu.free(page, Order::ZERO).unwrap());
            while cpu.running() {
                cpu.sleep(Span::from_ms(1));
            }
        };
        simulation.spawn(CpuId(cpu), body).unwrap();
    }
    let outcome = simulation.run().unwrap();
    let zone = outcome.lock(LockClass::Zone);
    (zone.contended, zone.wait_ns())
}

#[test]
fn ticks_at_one_moment_meet_at_the_zone_lock() {
    let (aligned, spread) = (decay_together(TickPhase::Aligned), decay_together(TickPhase::Spread));
    assert!(aligned.0 > 2 * spread.0 && aligned.1 > 2 * spread.1, "{aligned:?}, {spread:?}");
}

/// CPUs clear pages of one node. The latency of memory limits one CPU, and the bandwidth limits six CPUs.
#[test]
fn a_nodes_memory_serves_no_more_than_its_bandwidth() {
    let mut machine = ideal("westmere-ep");
    let cleared_per_s = |machine: &Machine, cpus: u32| {
        let span = Span::from_ms(20);
        let mut simulation =
            Simulation::builder(machine).cpus(cpus).warm_up(Span::from_ms(5)).duration(span).build().unwrap();
        for cpu in 0..cpus {
            let body = move |cpu: &VirtualCpu| {
                // Each CPU clears pages of its own, more than any cache holds.
                let pages: Vec<_> =
                    (0..1000).map(|_| cpu.alloc(&Request::new(Order::ZERO).movable()).unwrap()).collect();
                while cpu.running() {
                    for page in &pages {
                        cpu.clear(*page, Order::ZERO);
                        cpu.advance(Span::from_ns(1));
                        cpu.score(1);
                    }
                }
                pages.into_iter().for_each(|page| cpu.free(page, Order::ZERO).unwrap());
            };
            simulation.spawn(CpuId(cpu), body).unwrap();
        }
        simulation.run().unwrap().score_per_second()
    };
    machine.topology.caches.l3_kib = 64;
    let bandwidth = machine.costs.memory_bandwidth.clone().expect("the file says it");
    agrees("one CPU", cleared_per_s(&machine, 1), 1e9 / (machine.costs.clear_4k.memory_ns + 1.0), 0.02);
    agrees("six CPUs", cleared_per_s(&machine, 6), bandwidth.clear_gb_per_s * 1e9 / 4096.0, 0.02);
    machine.costs.memory_bandwidth = None;
    let unbound = 6e9 / (machine.costs.clear_4k.memory_ns + 1.0);
    agrees("six CPUs without a limit of bandwidth", cleared_per_s(&machine, 6), unbound, 0.02);
}

/// A free reads its buddy's metadata. If the metadata of each frame has a cache line of its own, the free
/// waits for the buddy's line.
#[test]
fn a_free_waits_for_its_buddys_line_where_each_frame_has_one() {
    let free_ns = |layout: FrameLayout| {
        let mut machine = ideal("westmere-ep");
        machine.costs.frame_layout = layout;
        let seen = Rc::new(Cell::new(0));
        let mut simulation = Simulation::builder(&machine).cpus(1).build().unwrap();
        let found = Rc::clone(&seen);
        let body = move |cpu: &VirtualCpu| {
            // Blocks of order 4 are too large for page sets. So each block comes directly from the zone, and
            // goes directly back to the zone.
            let order = Order::new(4).unwrap();
            let first = cpu.alloc(&Request::new(order)).unwrap();
            let second = cpu.alloc(&Request::new(order)).unwrap();
            assert_eq!(first.0 ^ second.0, 16, "they are buddies");
            let began = cpu.now();
            cpu.free(first, order).unwrap();
            found.set(cpu.now().since(began).as_ns());
            cpu.free(second, order).unwrap();
        };
        simulation.spawn(CpuId(0), body).unwrap();
        simulation.run().unwrap();
        seen.get()
    };
    let [shared, own] = [FrameLayout::SharedLines, FrameLayout::LinePerFrame].map(free_ns);
    assert!(own > shared, "{own} and {shared} ns");
}

/// Returns the total time that two CPUs hold a lock of the class `class`, in nanoseconds. The two CPUs take
/// the lock in turn, and never at the same time.
fn held_in_turns(class: LockClass, turns: u64) -> f64 {
    let mut machine = ideal("skylake-ex");
    machine.costs.line_from_cache.ns = 100.0;
    machine.costs.lines_vary = false;
    let mut simulation = Simulation::builder(&machine).cpus(4).duration(Span::from_ms(10)).build().unwrap();
    let lock = Rc::new(Spin::new(class));
    // CPU 0 and CPU 2 are on two cores of one socket.
    for (place, cpu) in [(0, CpuId(0)), (1, CpuId(2))] {
        let lock = Rc::clone(&lock);
        let body = move |cpu: &VirtualCpu| {
            for turn in 0..turns {
                cpu.sleep_until(Time::ZERO + Span::from_us(10 * (2 * turn + place)));
                lock.lock();
                cpu.advance(Span::from_ns(50));
                lock.unlock();
            }
        };
        simulation.spawn(cpu, body).unwrap();
    }
    simulation.run().unwrap().lock(class).hold_ns() as f64
}

#[test]
fn the_lock_of_an_lru_list_is_held_until_its_head_and_counters_are_there() {
    const TURNS: u64 = 100;
    let lines = f64::from(Machine::named("skylake-ex").unwrap().costs.zone_lines);
    let (list, other) = (held_in_turns(LockClass::Lru, TURNS), held_in_turns(LockClass::Slab, TURNS));
    // The first acquisition fetches no line, because no other CPU has the lock's lines.
    let fetched_ns = lines * 100.0 * (2 * TURNS - 1) as f64;
    agrees("extra time that the lock is held to fetch its lines, ns", list - other, fetched_ns, 1e-6);
}
