//! Generates a recording of a machine with many CPUs, to test that outputs stay readable and fast. The names
//! of tasks contain characters that do harm if a program prints them unchanged.
//!
//! ```text
//! cargo run --release -p pageset-trace --example wide -- OUT.pgtrace CPUS EVENTS
//! ```

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;

use pageset_core::ZoneKind;
use pageset_trace::{
    Cache, CacheKind, Event, EventKind, Layout, NativeWriter, Node, PcpSample, Sample, Sysctls, TraceInfo,
    WriteOptions, ZoneDescription, ZoneSample,
};

/// Number of pages in each generated refill, and in each generated drain.
const BATCH: u64 = 63;
/// `CPUS_OF_CACHE` CPUs share a last-level cache, and `CPUS_OF_NODE` CPUs form a node.
const CPUS_OF_CACHE: u32 = 8;
const CPUS_OF_NODE: u32 = 64;
/// Number of pages that a CPU may use.
const PAGES_OF_CPU: u64 = 1 << 16;
const SAMPLE_NS: u64 = 20_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [out, cpus, events] = arguments.as_slice() else {
        return Err("usage: wide OUT.pgtrace CPUS EVENTS".into());
    };
    let (cpus, wanted): (u16, u64) = (cpus.parse()?, events.parse()?);
    let step_ns = 2_000_000_000 * 4 * BATCH / wanted.max(1);
    let info = TraceInfo { samples: samples(cpus.into()), ..info(cpus.into()) };
    let mut writer =
        NativeWriter::new(BufWriter::new(File::create(out)?), &info, WriteOptions::new().level(1))?;
    let (mut written, mut ts_ns, mut turn) = (0, 1_000_000_000, 0u64);
    let mut block = Vec::new();
    while written < wanted {
        burst(&mut block, cpus, turn, ts_ns);
        writer.write(&block)?;
        written += block.len() as u64;
        (ts_ns, turn) = (ts_ns + step_ns.max(4 * BATCH), turn + 1);
    }
    writer.finish(Default::default())?;
    Ok(())
}

/// Fills `events` with the events of a burst. One CPU refills its page set and allocates, and sometimes waits
/// for a lock. After its allocations, the same CPU or the next CPU frees the pages and drains them. The first
/// CPU of each node has more bursts than other CPUs.
fn burst(events: &mut Vec<Event>, cpus: u16, turn: u64, ts_ns: u64) {
    events.clear();
    let spread = (turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % u64::from(cpus);
    let cpu = if turn.is_multiple_of(5) { spread / 64 * 64 } else { spread } as u16;
    let freeing = if turn.is_multiple_of(3) { (cpu + 1) % cpus } else { cpu };
    let first = 4096 + u64::from(cpu) * PAGES_OF_CPU + turn % (PAGES_OF_CPU / BATCH) * BATCH;
    let kinds = [
        (EventKind::MmPageAllocZoneLocked, cpu),
        (EventKind::MmPageAlloc, cpu),
        (EventKind::MmPageFree, freeing),
        (EventKind::MmPagePcpuDrain, freeing),
    ];
    for (part, (kind, cpu)) in (0..).zip(kinds) {
        let lock = |kind, at_ns| Event { pid: 7, pfn: 0xffff_8800, gfp: 1, ..Event::new(kind, at_ns, cpu) };
        if part == 0 && turn.is_multiple_of(7) {
            events.push(lock(EventKind::ContentionBegin, ts_ns));
            events.push(lock(EventKind::ContentionEnd, ts_ns + 1));
        }
        let event = |page: u64| Event {
            pid: 7,
            pfn: first + page,
            refill: 1,
            migratetype: 1,
            ..Event::new(kind, ts_ns + part * BATCH + page, cpu)
        };
        events.extend((0..BATCH).map(event));
    }
}

fn info(cpus: u32) -> TraceInfo {
    let node = |id: u32| Node {
        id: id as u16,
        cpus: (id * CPUS_OF_NODE..((id + 1) * CPUS_OF_NODE).min(cpus)).collect(),
        distances: Vec::new(),
    };
    let cache = |cpu: u32| Cache {
        cpu,
        level: 3,
        kind: CacheKind::Unified,
        bytes: 32 << 20,
        shared_by: (cpu / CPUS_OF_CACHE * CPUS_OF_CACHE..)
            .take(CPUS_OF_CACHE as usize)
            .filter(|cpu| *cpu < cpus)
            .collect(),
    };
    let pages = u64::from(cpus) * PAGES_OF_CPU;
    let nodes = cpus.div_ceil(CPUS_OF_NODE);
    let zone = ZoneDescription {
        start_pfn: 4096,
        spanned: pages,
        present: pages,
        managed: pages,
        free: pages / 2,
        min: 20_000,
        low: 25_000,
        high: 30_000,
        pagesets: (0..cpus)
            .map(|cpu| PcpSample { cpu, count: 100, high: 600, batch: 63, ..PcpSample::default() })
            .collect(),
        ..ZoneDescription::empty(0, ZoneKind::Normal)
    };
    TraceInfo {
        name: Some("</script><script>document.title='taken'</script>".to_owned()),
        kernel: Some("6.12.0<img src=x onerror=alert(1)>".to_owned()),
        command: vec![
            "</script><script>document.title='taken'</script>".to_owned(),
            "\"' onmouseover='document.title=1".to_owned(),
            "\u{202e}gnirts desrever".to_owned(),
            "x".repeat(10_000),
        ],
        cpus: Some(cpus),
        machine: Some(Layout {
            kernel: "6.12.0".to_owned(),
            architecture: "x86_64".to_owned(),
            page_size: 4096,
            assumed: Vec::new(),
            cpus,
            sysctls: Sysctls {
                min_free_kbytes: Some(80_000),
                watermark_scale_factor: Some(10),
                ..Sysctls::default()
            },
            nodes: (0..nodes).map(node).collect(),
            caches: (0..cpus).map(cache).collect(),
            zones: vec![zone],
        }),
        ..TraceInfo::default()
    }
}

/// Makes samples of page sets. One CPU after another samples its own page sets.
fn samples(cpus: u32) -> Vec<Sample> {
    let sample = |turn: u64, cpu: u32| {
        let at_ns = 1_000_000_000 + turn * SAMPLE_NS + u64::from(cpu) * 1000;
        let count = (turn as u32 * 37 + cpu * 11) % 600;
        let zone = ZoneSample {
            node: 0,
            kind: ZoneKind::Normal,
            free: 1_000_000 - u64::from(count) * 100,
            count,
            high: 600 + cpu % 64,
            batch: 63,
            high_min: None,
            high_max: None,
        };
        Sample { t0_ns: at_ns, t1_ns: at_ns + 500, cpu, zones: vec![zone] }
    };
    (0..100).flat_map(|turn| (0..cpus).map(move |cpu| sample(turn, cpu))).collect()
}
