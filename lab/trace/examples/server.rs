//! Generates a recording of a large server, to measure the cost of reading such a recording. The server has
//! two nodes of 256 GiB, and 64 CPUs unless CPUS is given. EVENTS is the smallest number of events in the
//! recording. Page sets in the recording have the size of Linux's page sets, but other rules, so a replay of
//! this recording has no meaning.
//!
//! Each CPU maps memory in bursts of single pages, and then frees these pages. Each CPU passes blocks of
//! eight pages to a CPU of the other node, which frees the blocks. Each CPU keeps file pages until other file
//! pages replace these pages. The same arguments give the same recording.
//!
//! ```text
//! cargo run --release -p pageset-trace --example server -- OUT EVENTS [CPUS]
//! ```
//!
//! OUT is a .pgtrace file. If the name OUT ends in `.txt`, the file is text as ftrace prints it, and
//! `OUT.toml` has the layout.

use std::collections::VecDeque;
use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};

use pageset_core::ZoneKind;
use pageset_trace::{
    Event, EventKind, Layout, NativeWriter, Node, Sysctls, TraceInfo, WriteOptions, ZoneDescription,
};

const FRAMES_OF_NODE: u64 = 1 << 26;
/// Number of pages that a refill or a drain moves.
const BATCH: usize = 63;
/// A page set with more single pages than this number is drained.
const HIGH: usize = 500;
/// Number of file pages that each simulated CPU keeps in memory.
const FILE_PAGES: usize = 1 << 12;
const EVENTS_OF_BLOCK: usize = 32 << 10;

/// A generator of pseudo-random numbers that are the same in each run. Source: George Marsaglia, "Xorshift
/// RNGs", 2003.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// The size of a block: one page, or eight pages.
#[derive(Clone, Copy)]
enum Size {
    Page,
    /// A block of eight pages.
    Large,
}

impl Size {
    const fn order(self) -> u8 {
        match self {
            Self::Page => 0,
            Self::Large => 3,
        }
    }

    /// Blocks of eight pages are unmovable, like the buffers of sockets. Single pages are movable.
    const fn migratetype(self) -> i8 {
        match self {
            Self::Page => 1,
            Self::Large => 0,
        }
    }
}

#[derive(Default)]
struct Cpu {
    /// Free blocks of the page set, by size.
    free: [Vec<u64>; 2],
    files: VecDeque<u64>,
}

/// The zone of a node: its free blocks by size, and the first frame that was never used.
struct Zone {
    free: [VecDeque<u64>; 2],
    next: u64,
}

struct Server {
    cpus: Vec<Cpu>,
    zones: [Zone; 2],
    random: Random,
    time_ns: u64,
    events: Vec<Event>,
}

impl Server {
    fn new(cpus: usize) -> Self {
        let zone =
            |node: u64| Zone { free: [VecDeque::new(), VecDeque::new()], next: (node << 26) + (1 << 20) };
        Self {
            cpus: (0..cpus).map(|_| Cpu::default()).collect(),
            zones: [zone(0), zone(1)],
            random: Random(0x9e37_79b9_7f4a_7c15),
            time_ns: 1_000_000_000_000,
            events: Vec::new(),
        }
    }

    fn node(&self, cpu: usize) -> usize {
        cpu * 2 / self.cpus.len()
    }

    fn event(&mut self, kind: EventKind, cpu: usize, pfn: u64, size: Size) {
        self.time_ns += 200 + self.random.below(600);
        let pid = 1000 + cpu as u32;
        let event = Event { pid, pfn, order: size.order(), ..Event::new(kind, self.time_ns, cpu as u16) };
        self.events.push(match kind {
            EventKind::MmPageFree | EventKind::MmPageFreeBatched => event,
            _ => Event { migratetype: size.migratetype(), refill: 1, ..event },
        });
    }

    fn take(&mut self, cpu: usize, size: Size) -> u64 {
        let node = self.node(cpu);
        if self.cpus[cpu].free[size as usize].is_empty() {
            for _ in 0..BATCH >> size.order() {
                let zone = &mut self.zones[node];
                let pages = 1 << size.order();
                let block = match zone.free[size as usize].pop_front() {
                    Some(block) => block,
                    None => {
                        let block = zone.next.next_multiple_of(pages);
                        zone.next = block + pages;
                        block
                    }
                };
                self.event(EventKind::MmPageAllocZoneLocked, cpu, block, size);
                self.cpus[cpu].free[size as usize].push(block);
            }
        }
        let block = self.cpus[cpu].free[size as usize].pop().unwrap_or_default();
        self.event(EventKind::MmPageAlloc, cpu, block, size);
        block
    }

    fn give(&mut self, cpu: usize, block: u64, size: Size) {
        self.event(EventKind::MmPageFree, cpu, block, size);
        self.cpus[cpu].free[size as usize].push(block);
        if self.cpus[cpu].free[size as usize].len() > HIGH >> size.order() {
            let drained: Vec<u64> =
                self.cpus[cpu].free[size as usize].drain(..BATCH >> size.order()).collect();
            for block in drained {
                self.event(EventKind::MmPagePcpuDrain, cpu, block, size);
                self.zones[(block >> 26).min(1) as usize].free[size as usize].push_back(block);
            }
        }
    }

    /// Lets a CPU that is chosen at random do one piece of work.
    fn step(&mut self) {
        let count = self.cpus.len() as u64;
        let cpu = self.random.below(count) as usize;
        match self.random.below(10) {
            0..5 => {
                let pages = 1 + self.random.below(256);
                let mapped: Vec<u64> = (0..pages).map(|_| self.take(cpu, Size::Page)).collect();
                for page in mapped {
                    self.give(cpu, page, Size::Page);
                    self.event(EventKind::MmPageFreeBatched, cpu, page, Size::Page);
                }
            }
            5..8 => {
                let other = (cpu + self.cpus.len() / 2) % self.cpus.len();
                let sent: Vec<u64> = (0..32).map(|_| self.take(cpu, Size::Large)).collect();
                sent.into_iter().for_each(|block| self.give(other, block, Size::Large));
            }
            _ => {
                for _ in 0..64 {
                    let page = self.take(cpu, Size::Page);
                    self.cpus[cpu].files.push_back(page);
                    if self.cpus[cpu].files.len() > FILE_PAGES
                        && let Some(oldest) = self.cpus[cpu].files.pop_front()
                    {
                        self.give(cpu, oldest, Size::Page);
                    }
                }
            }
        }
    }
}

fn info(cpus: u32) -> TraceInfo {
    let half = cpus / 2;
    let zone = |node: u16, start_pfn: u64, pages: u64| ZoneDescription {
        start_pfn,
        spanned: pages,
        present: pages,
        managed: pages,
        free: pages / 2,
        min: 11_000,
        low: 78_000,
        high: 145_000,
        ..ZoneDescription::empty(node, ZoneKind::Normal)
    };
    let first = 1 << 20;
    TraceInfo {
        kernel: Some("6.12.0".to_owned()),
        cpus: Some(cpus),
        machine: Some(Layout {
            kernel: "6.12.0".to_owned(),
            architecture: "x86_64".to_owned(),
            page_size: 4096,
            assumed: Vec::new(),
            cpus,
            sysctls: Sysctls {
                min_free_kbytes: Some(90_112),
                watermark_scale_factor: Some(10),
                ..Sysctls::default()
            },
            nodes: vec![
                Node { id: 0, cpus: (0..half).collect(), distances: vec![10, 20] },
                Node { id: 1, cpus: (half..cpus).collect(), distances: vec![20, 10] },
            ],
            caches: Vec::new(),
            zones: vec![zone(0, first, FRAMES_OF_NODE - first), zone(1, FRAMES_OF_NODE, FRAMES_OF_NODE)],
        }),
        ..TraceInfo::default()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (out, wanted, cpus): (_, u64, u32) = match arguments.as_slice() {
        [out, events] => (out, events.parse()?, 64),
        [out, events, cpus] => (out, events.parse()?, cpus.parse()?),
        _ => return Err("usage: server OUT EVENTS [CPUS]".into()),
    };
    if cpus < 2 {
        return Err("two nodes need at least two CPUs".into());
    }
    let info = info(cpus);
    let mut server = Server::new(cpus as usize);
    let file = File::create(out)?;
    let mut out = if out.ends_with(".txt") {
        let layout = info.machine.as_ref().map(Layout::to_toml).transpose()?.unwrap_or_default();
        fs::write(format!("{out}.toml"), layout)?;
        let mut text = BufWriter::with_capacity(1 << 20, file);
        writeln!(text, "# tracer: nop\n#")?;
        Out::Text(text)
    } else {
        Out::Native(Box::new(NativeWriter::new(BufWriter::new(file), &info, WriteOptions::new())?))
    };
    let mut written = 0;
    while written < wanted {
        while server.events.len() < EVENTS_OF_BLOCK {
            server.step();
        }
        match &mut out {
            Out::Text(text) => server.events.iter().try_for_each(|event| line(text, event))?,
            Out::Native(writer) => writer.write(&server.events)?,
        }
        written += server.events.len() as u64;
        server.events.clear();
    }
    match out {
        Out::Text(mut text) => text.flush()?,
        Out::Native(writer) => drop(writer.finish(Default::default())?),
    }
    Ok(())
}

enum Out {
    Text(BufWriter<File>),
    Native(Box<NativeWriter<BufWriter<File>>>),
}

/// An event as ftrace prints it.
fn line(text: &mut impl Write, event: &Event) -> std::io::Result<()> {
    let Event { pid, cpu, ts_ns, pfn, order, .. } = *event;
    let (s, us) = (ts_ns / 1_000_000_000, ts_ns / 1000 % 1_000_000);
    write!(text, "          server-{pid}    [{cpu:03}] ..... {s}.{us:06}: ")?;
    let page = format_args!("page=0x{pfn:x} pfn=0x{pfn:x} order={order}");
    let migratetype = event.migratetype;
    match event.kind {
        EventKind::MmPageAlloc => writeln!(
            text,
            "mm_page_alloc: {page} migratetype={migratetype} gfp_flags=GFP_HIGHUSER_MOVABLE|__GFP_ZERO|__GFP_COMP"
        ),
        EventKind::MmPageFree => writeln!(text, "mm_page_free: {page}"),
        EventKind::MmPageFreeBatched => {
            writeln!(text, "mm_page_free_batched: page=0x{pfn:x} pfn=0x{pfn:x} order=0")
        }
        EventKind::MmPageAllocZoneLocked => {
            writeln!(text, "mm_page_alloc_zone_locked: {page} migratetype={migratetype} percpu_refill=1")
        }
        _ => writeln!(text, "mm_page_pcpu_drain: {page} migratetype={migratetype}"),
    }
}
