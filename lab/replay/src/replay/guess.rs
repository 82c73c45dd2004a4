//! Guesses the machine of a recording that does not describe its machine. CPUs and frames come from the
//! events, and all other facts come from Linux's defaults.

use pageset_core::ZoneKind;
use pageset_trace::{Event, EventKind, Layout, Node, Sysctls, TraceError, TraceReader, ZoneDescription};

/// Reads a recording to its end and guesses a machine that could have made the recording. The machine has the
/// CPUs and frames that events name, one node, x86-64's zones, and half of its memory free. A page has
/// `page_size` bytes, or 4 KiB if `page_size` is `None`.
///
/// # Errors
/// An error if the recording is damaged.
pub fn guess_layout(reader: &mut dyn TraceReader, page_size: Option<u32>) -> Result<Layout, TraceError> {
    let (mut cpus, mut last_pfn) = (1, 0);
    let mut events = Vec::new();
    while reader.read_block(&mut events)? > 0 {
        for event in &events {
            cpus = cpus.max(u32::from(event.cpu) + 1);
            last_pfn = last_pfn.max(last_frame(event));
        }
    }
    let kernel = reader.info().kernel.clone().unwrap_or_default();
    let mut layout = machine(cpus, last_pfn, kernel, page_size.unwrap_or(4096));
    if page_size.is_none() {
        layout.assumed.push("a page has 4 KiB: the recording does not say (--page-size)".to_owned());
    }
    Ok(layout)
}

fn last_frame(event: &Event) -> u64 {
    let is_block = matches!(
        event.kind,
        EventKind::MmPageAlloc
            | EventKind::MmPageFree
            | EventKind::MmPagePcpuDrain
            | EventKind::MmPageAllocZoneLocked
    );
    // A frame above 64 TiB shows that the event is damaged, so ignore this frame.
    event.frame().filter(|pfn| is_block && pfn.0 < 1 << 34).map_or(0, |pfn| pfn.0)
}

fn machine(cpus: u32, last_pfn: u64, kernel: String, page_size: u32) -> Layout {
    let frames = |bytes: u64| (bytes / u64::from(page_size)).max(1);
    let (dma_end, dma32_end) = (frames(16 << 20), frames(4 << 30));
    // Round up to a multiple of 128 MiB, because memory comes in units of this size.
    let end = (last_pfn + 1).next_multiple_of(frames(128 << 20));
    let zone = |kind, start: u64, end: u64| ZoneDescription {
        node: 0,
        kind,
        start_pfn: start,
        spanned: end - start,
        present: end - start,
        managed: end - start,
        free: (end - start) / 2,
        min: 0,
        low: 0,
        high: 0,
        boost: 0,
        protection: Vec::new(),
        pagesets: Vec::new(),
    };
    let mut zones = vec![zone(ZoneKind::Dma32, dma_end, end.min(dma32_end))];
    if end > dma32_end {
        zones.push(zone(ZoneKind::Normal, dma32_end, end));
    }
    zones.insert(0, zone(ZoneKind::Dma, 0, dma_end));
    let managed: u64 = zones.iter().map(|zone| zone.managed).sum();
    let page_kbytes = u64::from(page_size / 1024).max(1);
    let min_free_kbytes = pageset_core::default_min_free_kbytes(managed.saturating_mul(page_kbytes));
    for zone in &mut zones {
        zone.min = min_free_kbytes / page_kbytes * zone.managed / managed;
        let step = (zone.min / 4).max(zone.managed / 1000);
        (zone.low, zone.high) = (zone.min + step, zone.min + 2 * step);
    }
    Layout {
        kernel,
        architecture: "x86_64".into(),
        page_size,
        assumed: Vec::new(),
        cpus,
        sysctls: Sysctls { min_free_kbytes: Some(min_free_kbytes), ..Sysctls::default() },
        nodes: vec![Node { id: 0, cpus: (0..cpus).collect(), distances: vec![10] }],
        caches: Vec::new(),
        zones,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guessed_machine_can_be_built() {
        for (last_pfn, page_size) in
            [(0, 4096), (4096, 4096), (300_000, 4096), (2_000_000, 4096), (0, 65_536), (300_000, 65_536)]
        {
            let machine = machine(3, last_pfn, String::new(), page_size);
            machine.check().unwrap();
            assert!(machine.zone_of(last_pfn).is_some());
            super::super::machine::Machine::new(machine).unwrap();
        }
    }
}
