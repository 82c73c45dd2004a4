//! Measures the costs of a page set's operations. The name of a benchmark says what one iteration does. A
//! pair is one allocation and one free. Refills and drains are per page, and include moving the batch.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pageset_bench::{CPU, Host, Spin, machine};
use pageset_core::lock_api::RawMutex;
use pageset_core::{CpuId, Order, PageAllocator, Pfn, Policy, Request, policy};

/// Enough pages to exceed a page set's limit many times.
const MANY: usize = 1 << 15;

fn order(order: u8) -> Order {
    Order::new(order).expect("an order of the benchmark")
}

fn policies() -> impl Iterator<Item = &'static Policy> {
    [&policy::LINUX_6_1, &policy::LINUX_6_12].into_iter()
}

/// A lower bound for a pair: its three atomic exchanges. Two exchanges take the page set's lock. One exchange
/// takes the block from its user, so that only one of two concurrent frees succeeds.
fn floor(c: &mut Criterion) {
    let (lock, state) = (<Spin as RawMutex>::INIT, AtomicU8::new(0));
    let take = || {
        let guard = black_box(&lock).lock();
        // SAFETY: the line above took the lock.
        unsafe { black_box(&lock).unlock(guard) };
    };
    c.bench_function("floor of a pair", |b| {
        b.iter(|| {
            take();
            let found = black_box(&state).load(Ordering::Relaxed);
            let exchanged = state.compare_exchange(found, !found, Ordering::Relaxed, Ordering::Relaxed);
            take();
            exchanged.is_ok()
        });
    });
}

/// An allocation from a filled page set, and the free that fills it again.
fn pair(c: &mut Criterion) {
    let mut group = c.benchmark_group("pair");
    for policy in policies() {
        for size in [0, 3, 9] {
            let allocator = machine(*policy);
            let request = Request::new(order(size)).movable();
            group.bench_function(BenchmarkId::new(format!("order {size}"), policy.name), |b| {
                b.iter(|| {
                    let pfn = allocator.alloc(CPU, black_box(&request)).expect("memory enough");
                    black_box(allocator.free(CPU, black_box(pfn), request.order).is_ok())
                });
            });
        }
    }
    group.finish();
}

/// Allocates `pages`, or frees them if they are allocated.
fn fill(allocator: &PageAllocator<'_, Host>, pages: &mut Vec<Pfn>) {
    let request = Request::new(Order::ZERO).movable();
    pages.extend((0..MANY).map(|_| allocator.alloc(CPU, &request).expect("memory enough")));
}

fn empty(allocator: &PageAllocator<'_, Host>, pages: impl IntoIterator<Item = Pfn>) {
    for pfn in pages {
        black_box(allocator.free(CPU, pfn, Order::ZERO).is_ok());
    }
}

/// Times only `work`, over `rounds`. Page sets are empty before each round.
fn timed(rounds: u64, mut prepare: impl FnMut(), mut work: impl FnMut()) -> Duration {
    (0..rounds)
        .map(|_| {
            prepare();
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .sum()
}

/// Many allocations in a row, so that all pages come through refills. Many frees in a row, so that most pages
/// leave through drains. The figure includes the allocation or free itself. `bulk` and `on demand` consist
/// almost only of refills and drains.
fn batches(c: &mut Criterion) {
    let mut group = c.benchmark_group("per page");
    group.throughput(Throughput::Elements(MANY as u64)).sample_size(30);
    for policy in policies() {
        let allocator = machine(*policy);
        let pages = std::cell::RefCell::new(Vec::with_capacity(MANY));
        group.bench_function(BenchmarkId::new("refill", policy.name), |b| {
            b.iter_custom(|rounds| {
                let prepare = || {
                    empty(&allocator, pages.borrow_mut().drain(..));
                    allocator.drain_all(CPU).expect("a CPU");
                };
                timed(rounds, prepare, || fill(&allocator, &mut pages.borrow_mut()))
            });
        });
        group.bench_function(BenchmarkId::new("drain", policy.name), |b| {
            b.iter_custom(|rounds| {
                let prepare = || {
                    empty(&allocator, pages.borrow_mut().drain(..));
                    allocator.drain_all(CPU).expect("a CPU");
                    fill(&allocator, &mut pages.borrow_mut());
                };
                timed(rounds, prepare, || empty(&allocator, pages.borrow_mut().drain(..)))
            });
        });
        group.bench_function(BenchmarkId::new("bulk", policy.name), |b| {
            let mut slots = vec![None; MANY];
            let request = Request::new(Order::ZERO).movable();
            b.iter_custom(|rounds| {
                let slots = std::cell::RefCell::new(&mut slots);
                let prepare = || {
                    empty(&allocator, slots.borrow_mut().iter_mut().filter_map(Option::take));
                    empty(&allocator, pages.borrow_mut().drain(..));
                    allocator.drain_all(CPU).expect("a CPU");
                };
                timed(rounds, prepare, || {
                    let got = allocator.alloc_bulk(CPU, &request, &mut slots.borrow_mut());
                    assert_eq!(got, Ok(MANY));
                })
            });
            empty(&allocator, slots.into_iter().flatten());
        });
    }
    group.finish();
}

/// Empties a page set that is full under a high limit.
fn on_demand(c: &mut Criterion) {
    let mut group = c.benchmark_group("per page");
    group.sample_size(30);
    for policy in policies() {
        let allocator = machine(*policy);
        allocator.set_percpu_pagelist_high_fraction(8).expect("eight is allowed");
        let request = Request::new(Order::ZERO).movable();
        let prepare = || {
            let pages: Vec<_> =
                (0..MANY).map(|_| allocator.alloc(CPU, &request).expect("memory enough")).collect();
            empty(&allocator, pages);
        };
        prepare();
        let held = allocator.cached_pages();
        group.throughput(Throughput::Elements(held));
        group.bench_function(BenchmarkId::new("on demand", policy.name), |b| {
            b.iter_custom(|rounds| {
                timed(rounds, prepare, || {
                    black_box(allocator.drain_all(CPU)).expect("a CPU");
                })
            });
        });
    }
    group.finish();
}

/// Pairs on two CPUs at once, each with its own page set.
fn two_threads(c: &mut Criterion) {
    let mut group = c.benchmark_group("two threads");
    for policy in policies() {
        for size in [0, 4] {
            let allocator = machine(*policy);
            let request = Request::new(order(size)).movable();
            let run = |cpu, rounds: u64, start: &Barrier| {
                start.wait();
                let started = Instant::now();
                for _ in 0..rounds {
                    let pfn = allocator.alloc(cpu, black_box(&request)).expect("memory enough");
                    black_box(allocator.free(cpu, pfn, request.order).is_ok());
                }
                started.elapsed()
            };
            group.bench_function(BenchmarkId::new(format!("pair of order {size}"), policy.name), |b| {
                b.iter_custom(|rounds| {
                    let start = Barrier::new(2);
                    std::thread::scope(|scope| {
                        let other = scope.spawn(|| run(CpuId(1), rounds, &start));
                        run(CpuId(0), rounds, &start).max(other.join().expect("no panic"))
                    })
                });
            });
        }
    }
    group.finish();
}

criterion_group!(page_sets, floor, pair, batches, on_demand, two_threads);
criterion_main!(page_sets);
