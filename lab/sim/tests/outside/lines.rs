//! Costs of lines and exchanges in an allocator without locks, compared with operations counted by hand.

use pageset_core::{CpuId, Order, PAGEBLOCK_FRAMES, Pfn, Request};
use pageset_sim::{Channel, Machine, Simulation, SimulationOutcome, Span, Time, VirtualCpu};

/// Cost of an atomic exchange in these tests. The price of an allocation or free includes the first exchange,
/// so only further exchanges cost `EXCHANGE_NS`. `EXCHANGE_NS` is so large that one more exchange shows in
/// the sum, and so small that no tick happens during a test.
const EXCHANGE_NS: f64 = 1e4;

fn machine() -> Machine {
    Machine::named("epyc-2").expect("it is bundled")
}

/// Runs one body on CPU 0 and one on CPU 1, with this project's own allocator.
fn run(
    machine: &Machine,
    bodies: [impl FnOnce(&VirtualCpu, &Channel<Vec<Pfn>>) + 'static; 2],
) -> SimulationOutcome {
    let builder = Simulation::builder(machine).owned_blocks_straight();
    let mut simulation = builder.duration(Span::from_ms(100)).build().unwrap();
    let pages = Channel::new(4, 1);
    for (cpu, body) in (0..).zip(bodies) {
        let pages = pages.clone();
        simulation.spawn(CpuId(cpu), move |cpu| body(cpu, &pages)).unwrap();
    }
    simulation.run().unwrap()
}

type Body = Box<dyn FnOnce(&VirtualCpu, &Channel<Vec<Pfn>>)>;

fn page(cpu: &VirtualCpu) -> Pfn {
    cpu.alloc(&Request::new(Order::ZERO)).unwrap()
}

fn free(cpu: &VirtualCpu, page: Pfn) {
    cpu.free(page, Order::ZERO).unwrap();
}

#[test]
fn an_allocation_and_a_free_at_hand_are_one_exchange_each_and_no_line() {
    let mut machine = machine();
    machine.costs.atomic.ns = EXCHANGE_NS;
    let pairs: Body = Box::new(|cpu, _| {
        // After more allocations than a pageblock has pages, the CPU has reserved pageblocks that serve only
        // requests for single pages.
        let many: Vec<_> = (0..=PAGEBLOCK_FRAMES).map(|_| page(cpu)).collect();
        many.into_iter().for_each(|page| free(cpu, page));
        let began = cpu.now();
        for _ in 0..100 {
            let page = page(cpu);
            free(cpu, page);
        }
        let took_ns = cpu.now().as_ns() - began.as_ns();
        assert!((100..EXCHANGE_NS as u64).contains(&took_ns), "{took_ns} ns");
    });
    let idle: Body = Box::new(|_, _| ());
    assert_eq!(run(&machine, [pairs, idle]).lines.all(), 0, "no other CPU used the lines");
}

#[test]
fn a_page_that_another_cpu_frees_takes_its_line_there_and_back() {
    const TURNS: u64 = 50;
    let (there, back) = (Channel::new(1, 1), Channel::new(1, 1));
    let (to, from) = (there.clone(), back.clone());
    let allocates: Body = Box::new(move |cpu, _| {
        for _ in 0..TURNS {
            to.send(cpu, page(cpu));
            from.receive(cpu);
        }
        to.close(cpu);
    });
    let frees: Body = Box::new(move |cpu, _| {
        while let Some(page) = there.receive(cpu) {
            free(cpu, page);
            back.send(cpu, ());
        }
    });
    let lines = run(&machine(), [allocates, frees]).lines;
    let [rows, states, ..] = lines.passes;
    // In each turn, both CPUs read a word of the line and then exchange the word. The read fetches a copy of
    // the line. The exchange fetches the line again, because a write needs the only copy. In the first turn,
    // only the CPU that frees fetches the line from another CPU.
    assert_eq!(rows, 2 * TURNS + 2 * (TURNS - 1));
    assert_eq!(states, 1, "the state of a pageblock does not change; the other CPU reads it once");
    assert_eq!(lines.contended, 0, "the CPUs take turns");
}

#[test]
fn a_line_that_another_cpu_changed_long_before_is_not_contended() {
    const TURNS: u64 = 50;
    let counts_with_pauses = |pause: Span| {
        let (there, back) = (Channel::new(1, 1), Channel::new(1, 1));
        let (to, from) = (there.clone(), back.clone());
        let allocates: Body = Box::new(move |cpu, _| {
            for _ in 0..TURNS {
                cpu.sleep(pause);
                to.send(cpu, page(cpu));
                from.receive(cpu);
            }
            to.close(cpu);
        });
        let frees: Body = Box::new(move |cpu, _| {
            while let Some(page) = there.receive(cpu) {
                cpu.sleep(pause);
                free(cpu, page);
                back.send(cpu, ());
            }
        });
        let counts = run(&machine(), [allocates, frees]).counts;
        assert_eq!(counts.shared.line_transfers, TURNS + TURNS - 1);
        counts.shared.contended_lines
    };
    assert_eq!(counts_with_pauses(Span::from_us(20)), 0);
    assert_eq!(counts_with_pauses(Span::ZERO), TURNS + TURNS - 1);
}

#[test]
fn two_cpus_that_free_to_one_pageblock_wait_for_its_line() {
    const PAGES: usize = 200;
    let machine = machine();
    let line_ns = machine.costs.line_from_cache.ns;
    // Both CPUs get pages of one pageblock. All words of a pageblock lie in one line.
    let both_free = |cpu: &VirtualCpu, pages: Vec<Pfn>| {
        cpu.sleep_until(Time::ZERO + Span::from_us(100));
        let began = cpu.now();
        pages.into_iter().for_each(|page| free(cpu, page));
        cpu.now().as_ns() - began.as_ns()
    };
    let allocates: Body = Box::new(move |cpu, pages| {
        let mine = (0..PAGES).map(|_| page(cpu)).collect();
        pages.send(cpu, (0..PAGES).map(|_| page(cpu)).collect());
        pages.close(cpu);
        both_free(cpu, mine);
    });
    let other: Body = Box::new(move |cpu, pages| {
        let theirs = pages.receive(cpu).unwrap();
        both_free(cpu, theirs);
    });
    let outcome = run(&machine, [allocates, other]);
    assert!(outcome.lines.contended as usize > PAGES, "{:?}", outcome.lines);
    // CPUs fetch the line one after another, so the times of two fetches do not overlap.
    let least_ns = outcome.lines.passes[0] as f64 * line_ns;
    let busy_ns: f64 = outcome.busy.iter().map(|busy| busy.as_ns_f64()).sum();
    assert!(busy_ns > least_ns, "{busy_ns} ns for {:?}", outcome.lines);
}

#[test]
fn cpus_that_go_through_pageblocks_meet_where_they_take_and_give_them() {
    const ROUNDS: usize = 20;
    let body = || -> Body {
        Box::new(|cpu, _| {
            for _ in 0..ROUNDS {
                let pages: Vec<_> = (0..3 * PAGEBLOCK_FRAMES).map(|_| page(cpu)).collect();
                let list: Vec<_> = pages.into_iter().map(|page| (page, Order::ZERO)).collect();
                // The list is freed in parts whose ends do not match the ends of pageblocks.
                list.chunks(500).for_each(|part| cpu.free_list(part).unwrap());
            }
        })
    };
    let lines = run(&machine(), [body(), body()]).lines;
    let [rows, states, ..] = lines.passes;
    assert_eq!((rows, states), (0, 0), "the CPUs share no frame");
    // When a CPU takes or returns a pageblock, it changes the zone's free count and one bit in each of a few
    // sets of pageblocks. The requests of this test are for unmovable memory, so both CPUs take pageblocks of
    // one unit of 1 GiB. The bits of a unit lie in one cache line of each set. So the CPUs fetch lines from
    // each other 15 times for each pageblock.
    let pageblocks = 2 * 3 * ROUNDS as u64;
    assert!(lines.all() < 16 * pageblocks, "{lines:?} for {pageblocks} pageblocks");
}
