//! Tests that a verification of random events ends with a result whose counts fit together, for recordings of
//! five kernels and in any mode.

use pageset_core::ZoneKind;
use pageset_replay::{ExplainRequest, Mode, Verification, VerifyOptions, verify};
use pageset_trace::{
    Event, EventKind, Layout, LostEvents, Node, PcpSample, Sample, Sysctls, TraceError, TraceInfo,
    TraceReader, ZoneDescription, ZoneSample,
};
use proptest::prelude::*;

/// A recording in memory.
struct Events {
    info: TraceInfo,
    blocks: Vec<Vec<Event>>,
}

impl TraceReader for Events {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError> {
        *events = self.blocks.pop().unwrap_or_default();
        Ok(events.len())
    }

    fn has_ticks(&mut self, _: &mut dyn FnMut()) -> Result<bool, TraceError> {
        Ok(self.blocks.iter().flatten().any(Event::is_tick))
    }

    fn lost(&self) -> LostEvents {
        LostEvents::default()
    }
}

/// Returns a machine of two nodes with 8000 frames each. The second node has no CPU.
fn machine(kernel: &str) -> Layout {
    let zone = |node, start_pfn| ZoneDescription {
        start_pfn,
        spanned: 8192,
        present: 8192,
        managed: 8000,
        free: 4000,
        min: 100,
        low: 150,
        high: 200,
        pagesets: vec![PcpSample { cpu: 0, count: 900, high: 70, batch: 1, ..PcpSample::default() }],
        ..ZoneDescription::empty(node, ZoneKind::Dma32)
    };
    Layout {
        kernel: kernel.into(),
        architecture: "x86_64".into(),
        page_size: 4096,
        assumed: Vec::new(),
        cpus: 2,
        sysctls: Sysctls::default(),
        nodes: vec![
            Node { id: 0, cpus: vec![0, 1], distances: vec![10, 20] },
            Node { id: 1, cpus: Vec::new(), distances: vec![20, 10] },
        ],
        caches: Vec::new(),
        zones: vec![zone(0, 4096), zone(1, 20_000)],
    }
}

prop_compose! {
    /// Generates an event with one of a few frames, CPUs, orders and threads, so that many events are about
    /// the same block.
    fn event()(
        kind in 0..EventKind::COUNT,
        pfn in prop_oneof![4090..4140_u64, 12_280..12_290_u64, 20_000..20_020_u64, 0..8_u64, any::<u64>(),
            0x5a00_1000..0x5a00_1003_u64, 0x5b00_1000..0x5b00_1003_u64],
        order in prop_oneof![0..4_u8, 0..12_u8, any::<u8>()],
        cpu in 0..3_u16,
        migratetype in -1..7_i8,
        pid in 0..3_u32,
        irq_flags in prop_oneof![Just(0_u8), Just(0x10), Just(0x08), any::<u8>()],
        gfp in prop_oneof![Just(0_u32), Just(0x14_0cca), any::<u32>()],
        refill in 0..2_u8,
    ) -> Event {
        Event { pfn, order, migratetype, pid, irq_flags, gfp, refill, ..Event::new(EventKind::ALL[kind], 0, cpu) }
    }
}

prop_compose! {
    fn sample()(t0_ns in 0..400_u64, cpu in 0..3_u32, count in any::<u32>(), high in prop_oneof![0..300_u32, any::<u32>()],
        limits in prop::option::of((any::<u32>(), any::<u32>())), free in any::<u64>()) -> Sample {
        let zone = ZoneSample {
            node: 0, kind: ZoneKind::Dma32, free, count, high, batch: 7,
            high_min: limits.map(|(min, _)| min), high_max: limits.map(|(_, max)| max),
        };
        Sample { t0_ns, t1_ns: t0_ns + 20, cpu, zones: vec![zone] }
    }
}

fn run(
    kernel: &str,
    mut events: Vec<Event>,
    mut samples: Vec<Sample>,
    options: &VerifyOptions,
) -> Verification {
    for (at, event) in events.iter_mut().enumerate() {
        event.ts_ns = at as u64;
    }
    samples.sort_by_key(|sample| sample.t0_ns);
    let recorded = EventKind::ALL.map(|kind| kind.name().to_owned()).into();
    let info = TraceInfo { machine: Some(machine(kernel)), samples, recorded, ..TraceInfo::default() };
    let mut reader = Events { info, blocks: vec![events] };
    verify(&mut reader, options, |_| ()).expect("a machine that can be verified")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_events_end_in_a_result(
        kernel in prop_oneof![Just("6.1.0"), Just("6.12.1"), Just("6.18.0"), Just("4.9.0"), Just("6.6.1")],
        events in prop::collection::vec(event(), 0..400),
        samples in prop::collection::vec(sample(), 0..6),
        mode in 0..3_usize,
    ) {
        let options = VerifyOptions {
            mode: Mode::ALL[mode],
            explain: Some(ExplainRequest { number: 1, class: None }),
            ..VerifyOptions::default()
        };
        let count = events.len() as u64;
        let v = run(kernel, events, samples, &options);
        prop_assert_eq!(v.events, count);
        prop_assert!(v.refills.exact <= v.refills.observed && v.drains.exact <= v.drains.observed);
        prop_assert!(v.drains.identity_exact <= v.drains.identity_pages && v.decay.exact <= v.decay.observed);
        prop_assert!(v.samples.count_exact <= v.samples.n && v.samples.high_exact <= v.samples.n);
        prop_assert_eq!(v.explained.is_some(), v.mismatches.total() > 0);
    }
}
