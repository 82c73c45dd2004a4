//! Nanoseconds of the operations beside those of `pageset-blocks`: `cargo run --release -p pageset-rows --example beside`.
//!
//! Rounds of both alternate in one process, so that whatever else the machine does hits both. Printed are medians, the quartiles in
//! brackets, and the median of the ratios of neighbouring rounds.
//!
//! ```text
//! beside [ROUNDS]              all rows
//! beside [ROUNDS] ROW          those whose names contain this
//! beside [ROUNDS] ROW rows     one allocator alone, for a profiler; or `blocks`
//! ```

use std::hint::black_box;
use std::time::Instant;

use pageset_core::{Config, CpuId, NodeId, Order, Pfn, Request, ZoneConfig, ZoneKind};

const CPU: CpuId = CpuId(0);
const FRAMES: u64 = 1 << 20;
/// Operations of a round: few, so that most rounds are not interrupted.
const PAIRS: usize = 40_000;
const PAGE: Request = Request::new(Order::ZERO).movable();

/// One row of the table: it is asked for one round at a time.
trait Work {
    /// Nanoseconds for each operation.
    fn round(&mut self) -> f64;
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 32) as usize * limit) >> 32
    }
}

fn ns(count: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / count as f64
}

macro_rules! allocator {
    ($name:ident, $crate_name:ident) => {
        mod $name {
            use $crate_name::{BlockAllocator, CpuArrays, Tables};

            use super::*;

            type Allocator = &'static BlockAllocator<'static>;

            fn allocator() -> Allocator {
                let regions = [0..FRAMES];
                let zones = [ZoneConfig {
                    kind: ZoneKind::Normal,
                    node: NodeId(0),
                    span: 0..FRAMES,
                    regions: &regions,
                }];
                let nodes = [NodeId(0); 2];
                let config = Config::new(&zones, &nodes);
                let tables = Tables::on_heap(&config).expect("the zone is possible");
                Box::leak(Box::new(BlockAllocator::new(&config, tables).expect("the zone is possible")))
            }

            /// Straight from the allocator, or through a CPU's arrays.
            trait Source {
                fn alloc(&mut self, request: &Request) -> Pfn;
                fn free(&mut self, pfn: Pfn, order: Order);
            }

            impl Source for Allocator {
                #[inline(always)]
                fn alloc(&mut self, request: &Request) -> Pfn {
                    BlockAllocator::alloc(self, CPU, request).expect("there is memory")
                }

                #[inline(always)]
                fn free(&mut self, pfn: Pfn, order: Order) {
                    BlockAllocator::free(self, CPU, pfn, order).expect("in use");
                }
            }

            impl Source for CpuArrays<'_> {
                #[inline(always)]
                fn alloc(&mut self, request: &Request) -> Pfn {
                    CpuArrays::alloc(self, request).expect("there is memory")
                }

                #[inline(always)]
                fn free(&mut self, pfn: Pfn, order: Order) {
                    CpuArrays::free(self, pfn, order).expect("in use");
                }
            }

            struct Pair<S>(S, Order);

            impl<S: Source> Work for Pair<S> {
                fn round(&mut self) -> f64 {
                    let request = Request::new(self.1).movable();
                    ns(PAIRS, || {
                        for _ in 0..PAIRS {
                            let pfn = self.0.alloc(&request);
                            self.0.free(black_box(pfn), self.1);
                        }
                    })
                }
            }

            /// Random pages of a population are replaced.
            struct Mix<S> {
                source: S,
                pages: Vec<Pfn>,
                random: Random,
            }

            impl<S: Source> Work for Mix<S> {
                fn round(&mut self) -> f64 {
                    ns(PAIRS, || {
                        for _ in 0..PAIRS {
                            let which = self.random.below(self.pages.len());
                            self.source.free(self.pages[which], Order::ZERO);
                            self.pages[which] = self.source.alloc(&PAGE);
                        }
                    })
                }
            }

            /// Random blocks of a population of orders 0 to 4 are replaced by others.
            struct Orders<S> {
                source: S,
                blocks: Vec<(Pfn, Order)>,
                random: Random,
            }

            fn some_order(random: &mut Random) -> Order {
                // Half of all are single pages.
                Order::new((random.below(1 << 16) as u32 | 1 << 15).trailing_zeros().min(4) as u8)
                    .expect("small")
            }

            impl<S: Source> Work for Orders<S> {
                fn round(&mut self) -> f64 {
                    ns(PAIRS, || {
                        for _ in 0..PAIRS {
                            let which = self.random.below(self.blocks.len());
                            let (pfn, order) = self.blocks[which];
                            self.source.free(pfn, order);
                            let order = some_order(&mut self.random);
                            self.blocks[which] = (self.source.alloc(&Request::new(order).movable()), order);
                        }
                    })
                }
            }

            /// Many pages come, and go at random.
            struct Bulk<S> {
                source: S,
                pages: usize,
                random: Random,
            }

            impl<S: Source> Work for Bulk<S> {
                fn round(&mut self) -> f64 {
                    let rounds = PAIRS.div_ceil(self.pages);
                    let mut all = 0.0;
                    for _ in 0..rounds {
                        let mut pages = vec![Pfn(0); self.pages];
                        all += ns(self.pages, || {
                            for page in &mut pages {
                                *page = self.source.alloc(&PAGE);
                            }
                        });
                        for at in (1..pages.len()).rev() {
                            pages.swap(at, self.random.below(at + 1));
                        }
                        all += ns(self.pages, || {
                            for page in &pages {
                                self.source.free(*page, Order::ZERO);
                            }
                        });
                    }
                    all / rounds as f64
                }
            }

            fn straight_or_not(with_arrays: bool, make: impl Maker) -> Box<dyn Work> {
                let allocator = allocator();
                if with_arrays { make.make(CpuArrays::new(allocator, CPU)) } else { make.make(allocator) }
            }

            trait Maker {
                fn make<S: Source + 'static>(self, source: S) -> Box<dyn Work>;
            }

            struct Named<'n>(&'n str, usize);

            impl Maker for Named<'_> {
                fn make<S: Source + 'static>(self, mut source: S) -> Box<dyn Work> {
                    let mut random = Random(1);
                    match self.0 {
                        "pair" => Box::new(Pair(source, Order::new(self.1 as u8).expect("small"))),
                        "mix" => {
                            let pages = (0..self.1).map(|_| source.alloc(&PAGE)).collect();
                            Box::new(Mix { source, pages, random })
                        }
                        "orders" => {
                            let blocks = (0..self.1).map(|_| {
                                let order = some_order(&mut random);
                                (source.alloc(&Request::new(order).movable()), order)
                            });
                            let blocks = blocks.collect();
                            Box::new(Orders { source, blocks, random })
                        }
                        _ => Box::new(Bulk { source, pages: self.1, random }),
                    }
                }
            }

            pub(super) fn work(name: &str, size: usize, with_arrays: bool) -> Box<dyn Work> {
                straight_or_not(with_arrays, Named(name, size))
            }
        }
    };
}

allocator!(rows, pageset_rows);
allocator!(blocks, pageset_blocks);

/// The lower quartile, the median, the upper quartile.
fn quartiles(mut figures: Vec<f64>) -> [f64; 3] {
    figures.sort_by(f64::total_cmp);
    let last = figures.len() - 1;
    [last / 4, last / 2, last - last / 4].map(|at| figures[at])
}

fn main() {
    let mut args = std::env::args().skip(1).peekable();
    let rounds = args.peek().and_then(|arg| arg.parse::<usize>().ok());
    if rounds.is_some() {
        args.next();
    }
    let rounds = rounds.unwrap_or(61).max(1);
    let (wanted, only) = (args.next().unwrap_or_default(), args.next());
    println!("| | rows, ns | blocks, ns | ratio |");
    println!("|---|---:|---:|---:|");
    let works = [
        ("pair", 0),
        ("pair", 3),
        ("pair", 9),
        ("mix", 1_000),
        ("mix", 10_000),
        ("mix", 100_000),
        ("orders", 1_000),
        ("orders", 100_000),
        ("bulk", 10_000),
        ("bulk", 200_000),
    ];
    for (name, size) in works {
        for (with_arrays, how) in [(false, "straight"), (true, "arrays")] {
            let title = format!("{name}-{size} {how}");
            if !title.contains(&wanted) {
                continue;
            }
            if let Some(only) = &only {
                let make = if only == "rows" { rows::work } else { blocks::work };
                let mut work = make(name, size, with_arrays);
                let [_, median, _] = quartiles((0..rounds).map(|_| work.round()).collect());
                println!("{title} {only} {median:.2}");
                continue;
            }
            let (mut of_rows, mut of_blocks) =
                (rows::work(name, size, with_arrays), blocks::work(name, size, with_arrays));
            // Until both are as they stay.
            for _ in 0..25 {
                of_rows.round();
                of_blocks.round();
            }
            let figures: Vec<_> = (0..rounds).map(|_| (of_rows.round(), of_blocks.round())).collect();
            let show = |figures: Vec<f64>, digits: usize| {
                let [low, median, high] = quartiles(figures);
                format!("{median:.digits$} ({low:.digits$}–{high:.digits$})")
            };
            println!(
                "| {title} | {} | {} | {} |",
                show(figures.iter().map(|f| f.0).collect(), 1),
                show(figures.iter().map(|f| f.1).collect(), 1),
                show(figures.iter().map(|f| f.0 / f.1).collect(), 2),
            );
        }
    }
}
