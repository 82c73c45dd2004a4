//! Draws the recorded kernel: its events become slices, counters and arrows. The recording is read once, in
//! bounded memory.

mod cpu;
mod reclaim;

use std::io;

use pageset_core::Order;
use pageset_core::pcp::ListScheme;
use pageset_trace::{Decision, Decisions};
use pageset_trace::{Event, EventKind, Layout, TraceInfo, ZoneDescription, Zoneinfo};

use self::cpu::{Cpu, Cpus};
use self::reclaim::Reclaim;
use super::flows::{Flows, Origin};
use super::group::Group;
use super::names::{Key, Name};
use super::packets::{Fact, Flow, Packets, TrackId, Value, What};
use super::samples::{SampledSets, Samples, corrected};
use super::threads::Threads;
use super::waits::{LockKind, Wait, Waits};
use super::zones::Zones;

/// The tracks of the recorded kernel.
pub(super) struct Kernel<'info> {
    group: Group,
    zones: Zones,
    /// For each zone: its free pages, and the min, low and high watermark.
    zone_counters: Vec<[TrackId; 4]>,
    /// The lists of the kernel's page sets, by order.
    lists: ListScheme,
    cpus: Cpus,
    decisions: Decisions,
    samples: Samples,
    pub(super) sampled: SampledSets,
    waits: Waits,
    reclaim: Reclaim,
    threads: Threads<'info>,
    pub(super) flows: Flows,
    /// The number of refills that were written as slices. A run of events counts as one refill by the rules
    /// of the survey. `drains` is the number of drains that were written as slices.
    pub(super) refills: u64,
    pub(super) drains: u64,
    last_ns: u64,
}

impl<'info> Kernel<'info> {
    /// Describes the kernel's tracks, and writes the values at the beginning of the recording.
    pub(super) fn begin(
        packets: &mut Packets<'_>,
        (name, description): (&str, &str),
        info: &'info TraceInfo,
        machine: &Layout,
        lists: ListScheme,
        first_ns: u64,
    ) -> io::Result<Self> {
        let zones = Zones::new(machine);
        let names = zones.all().iter().map(|zone| (zone.node, zone.kind));
        let group = Group::begin(packets, (name, description, 0), "recorded kernel", names)?;
        let counters = ["free", "min watermark", "low watermark", "high watermark"];
        let mut zone_counters = Vec::new();
        for zone in 0..zones.all().len() {
            let mut tracks = [TrackId(0); 4];
            for (rank, (track, name)) in tracks.iter_mut().zip(counters).enumerate() {
                *track = group.zone_counter(packets, zone, (name, rank as i64))?;
            }
            zone_counters.push(tracks);
        }
        let mut kernel = Self {
            cpus: Cpus::new(machine),
            group,
            zones,
            zone_counters,
            lists,
            decisions: Decisions::default(),
            samples: Samples::new(info),
            sampled: SampledSets::default(),
            waits: Waits::default(),
            reclaim: Reclaim::default(),
            threads: Threads::new(info),
            flows: Flows::default(),
            refills: 0,
            drains: 0,
            last_ns: first_ns,
        };
        match &info.before {
            Some(before) => kernel.state(packets, first_ns, Zoneinfo::populated(&before.zoneinfo))?,
            None if info.machine.is_some() => kernel.state(packets, first_ns, machine.zones.iter())?,
            None => {}
        }
        Ok(kernel)
    }

    /// Writes values of the counters of zones and page sets, as `/proc/zoneinfo` showed these values at one
    /// moment.
    fn state<'z>(
        &mut self,
        packets: &mut Packets<'_>,
        at_ns: u64,
        zones: impl Iterator<Item = &'z ZoneDescription>,
    ) -> io::Result<()> {
        for zone in zones {
            let Some(index) = self.zones.named(zone.node, zone.kind) else { continue };
            let values = [zone.free, zone.min, zone.low, zone.high];
            for (track, value) in self.zone_counters[index].into_iter().zip(values) {
                packets.event(self.group.sequence, at_ns, track, What::Value(to_i64(value)), &[])?;
            }
            for pageset in zone.pagesets.iter().filter(|pageset| self.cpus.exists(pageset.cpu)) {
                let set = self.group.set(packets, index, pageset.cpu)?;
                set.count.hold(i64::from(pageset.count));
                set.count.write(packets, set.sequence, at_ns)?;
                set.high.hold(i64::from(pageset.high));
                set.high.write(packets, set.sequence, at_ns)?;
            }
        }
        Ok(())
    }

    /// Adds an event.
    pub(super) fn event(&mut self, packets: &mut Packets<'_>, event: &Event) -> io::Result<()> {
        let cpu = u32::from(event.cpu);
        self.last_ns = self.last_ns.max(event.ts_ns);
        if self.samples.is_due(cpu, event.ts_ns) {
            self.sampled(packets, cpu, event.ts_ns)?;
        }
        let zone = event.frame().and_then(|pfn| self.zones.of(pfn.0));
        if let Some(wait) = self.waits.record(event, zone) {
            self.waited(packets, &wait)?;
        }
        if let Some(decision) = self.decisions.record(event) {
            self.decided(packets, event.cpu, decision)?;
        }
        let is_first = self.cpus.of(packets, &mut self.group, event.cpu)?.follow(event);
        match event.kind {
            EventKind::MmPageAlloc => self.allocated(packets, event, zone),
            EventKind::MmPageFree => self.freed(packets, event, zone),
            EventKind::MmPageAllocZoneLocked if event.is_pcp_refill() => {
                self.moved(packets, event, zone, (1, is_first))
            }
            EventKind::MmPagePcpuDrain => self.moved(packets, event, zone, (-1, is_first)),
            EventKind::BulkAllocReturn => self.bulk_allocated(packets, event),
            EventKind::WorkqueueExecuteStart | EventKind::WorkqueueExecuteEnd => {
                self.cpus.of(packets, &mut self.group, event.cpu)?.work(packets, event)
            }
            _ => self.reclaim.event(packets, (&self.group, &mut self.threads), event),
        }
    }

    fn allocated(&mut self, packets: &mut Packets<'_>, event: &Event, zone: Option<usize>) -> io::Result<()> {
        let Some((pfn, order)) = block_of(event) else { return Ok(()) };
        let cpu = self.cpus.of(packets, &mut self.group, event.cpu)?;
        cpu.allocated(packets, event.ts_ns, order.frames())?;
        self.flows.allocated(pfn, Origin { cpu: event.cpu, at_ns: event.ts_ns, pid: event.pid });
        self.change(packets, event, (zone, order), -i64::from(order.frames()))
    }

    fn freed(&mut self, packets: &mut Packets<'_>, event: &Event, zone: Option<usize>) -> io::Result<()> {
        let Some((pfn, order)) = block_of(event) else { return Ok(()) };
        let cpu = self.cpus.of(packets, &mut self.group, event.cpu)?;
        cpu.freed(packets, event.ts_ns, order.frames())?;
        if let Some(origin) = self.flows.freed(pfn, event.cpu) {
            self.arrow(packets, event, &origin)?;
        }
        self.change(packets, event, (zone, order), i64::from(order.frames()))
    }

    fn arrow(&mut self, packets: &mut Packets<'_>, event: &Event, origin: &Origin) -> io::Result<()> {
        let number = self.flows.counts.arrows;
        let from = self.cpus.of(packets, &mut self.group, origin.cpu)?.track();
        let (sequence, to) = {
            let cpu = self.cpus.of(packets, &mut self.group, event.cpu)?;
            (cpu.sequence(), cpu.track())
        };
        let at_ns = origin.at_ns.min(event.ts_ns);
        let (taker, freer) =
            (self.threads.process(origin.pid, at_ns), self.threads.process(event.pid, event.ts_ns));
        let taken = facts_of_block(event, (origin.pid, taker.as_deref()), event.cpu);
        let freed = facts_of_block(event, (event.pid, freer.as_deref()), origin.cpu);
        let (begins, ends) = (Flow::Begins(number), Flow::Ends(number));
        let here = What::Moment(Name::Allocated);
        let there = What::Moment(Name::FreedElsewhere);
        packets.linked_event(sequence, at_ns, from, here, &taken, Some(begins))?;
        packets.linked_event(sequence, event.ts_ns, to, there, &freed, Some(ends))
    }

    /// Draws a block that moves from its zone to a page set, or back.
    fn moved(
        &mut self,
        packets: &mut Packets<'_>,
        event: &Event,
        zone: Option<usize>,
        (direction, is_first): (i64, bool),
    ) -> io::Result<()> {
        let (Some(zone), Some(order)) = (zone, event.block_order()) else { return Ok(()) };
        let cpu = u32::from(event.cpu);
        if !self.cpus.exists(cpu) {
            return Ok(());
        }
        let set = self.group.set(packets, zone, cpu)?;
        let Some(count) = set.count.value() else { return Ok(()) };
        let count_now = (count + direction * i64::from(order.frames())).max(0);
        // Draw a run of moved blocks as one step of the curve. Write the old count at the first block, and
        // the new count after the last block.
        if is_first {
            set.count.write(packets, set.sequence, event.ts_ns)?;
        }
        set.count.hold(count_now);
        self.samples.note(cpu, zone, count_now);
        Ok(())
    }

    /// Draws a block that is freed into a page set, or allocated from a page set.
    fn change(
        &mut self,
        packets: &mut Packets<'_>,
        event: &Event,
        (zone, order): (Option<usize>, Order),
        pages: i64,
    ) -> io::Result<()> {
        let migratetype = event.block_type().unwrap_or(pageset_core::MigrateType::Movable);
        let (Some(zone), Some(_)) = (zone, self.lists.list(order, migratetype)) else { return Ok(()) };
        let cpu = u32::from(event.cpu);
        if !self.cpus.exists(cpu) {
            return Ok(());
        }
        let set = self.group.set(packets, zone, cpu)?;
        let Some(count) = set.count.value() else { return Ok(()) };
        let count = (count + pages).max(0);
        set.count.note(packets, set.sequence, event.ts_ns, count)?;
        self.samples.note(cpu, zone, count);
        Ok(())
    }

    /// Draws the end of a bulk allocation. The pages of a bulk allocation have no separate events. The pages
    /// are assumed to come from the node's highest zone except `Movable`, because nearly all bulk allocations
    /// may use this zone.
    fn bulk_allocated(&mut self, packets: &mut Packets<'_>, event: &Event) -> io::Result<()> {
        let zone = self.cpus.node(event.cpu).and_then(|node| self.zones.highest(node));
        let pages = event.bulk_frames().and_then(|pages| i64::try_from(pages).ok()).unwrap_or(0);
        self.change(packets, event, (zone, Order::ZERO), -pages)
    }

    /// Draws a refill or drain that has ended.
    fn decided(&mut self, packets: &mut Packets<'_>, cpu: u16, decision: Decision) -> io::Result<()> {
        let state = self.cpus.of(packets, &mut self.group, cpu)?;
        let (reason, thread) = state.reason(&decision);
        let (mut sequence, mut track) = (state.sequence(), state.track());
        let zone = self.zones.of(decision.pfn).filter(|_| self.cpus.exists(u32::from(cpu)));
        let last_ns = decision.last_ns.max(decision.first_ns);
        if let Some(zone) = zone {
            let set = self.group.set(packets, zone, u32::from(cpu))?;
            (sequence, track) = (set.sequence, set.slices);
        }
        let pages = (Key::Pages, Value::Number(decision.pages));
        let why = (Key::Reason, Value::Text(reason));
        let who = (Key::Thread, Value::Number(u64::from(thread)));
        let process = self.threads.process(thread, decision.first_ns);
        let process = process.as_deref().map(|process| (Key::Process, Value::Text(process)));
        match decision.refill {
            Some((order, migratetype)) => {
                self.refills += 1;
                let order = (Key::Order, Value::Number(u64::from(order)));
                let kind = usize::try_from(migratetype).ok().and_then(pageset_core::MigrateType::from_index);
                let kind = (Key::Migratetype, Value::Text(kind.map_or("unknown", |kind| kind.name())));
                let facts: Vec<_> = [pages, order, kind, why, who].into_iter().chain(process).collect();
                packets.event(sequence, decision.first_ns, track, What::Begin(Name::Refill), &facts)?;
            }
            None => {
                self.drains += 1;
                let facts: Vec<_> = [pages, why, who].into_iter().chain(process).collect();
                packets.event(sequence, decision.first_ns, track, What::Begin(Name::Drain), &facts)?;
            }
        }
        packets.event(sequence, last_ns, track, What::End, &[])?;
        if let Some(zone) = zone {
            let set = self.group.set(packets, zone, u32::from(cpu))?;
            set.count.write(packets, set.sequence, last_ns)?;
        }
        Ok(())
    }

    /// Draws a wait that has ended.
    fn waited(&mut self, packets: &mut Packets<'_>, wait: &Wait) -> io::Result<()> {
        let sequence = self.group.of_cpu(packets, u32::from(wait.cpu))?;
        let track = self.threads.track(packets, sequence, (wait.pid, wait.cpu), wait.since_ns)?;
        let process = self.threads.process(wait.pid, wait.since_ns);
        let name = match wait.kind {
            LockKind::Zone => Name::WaitForZoneLock,
            LockKind::Spin => Name::WaitForSpinlock,
            LockKind::Other => Name::WaitForOtherLock,
        };
        let mut facts = vec![(Key::Lock, Value::Address(wait.lock)), (Key::Cpu, number(wait.cpu))];
        if let Some(process) = &process {
            facts.push((Key::Process, Value::Text(process)));
        }
        if let Some(caller) = wait.caller {
            facts.push((Key::Reason, Value::Text(caller.name())));
        }
        if let Some(holder) = wait.holder {
            facts.push((Key::Holder, number(holder.cpu)));
            facts.push((Key::HolderThread, number(holder.pid)));
        }
        packets.event(sequence, wait.since_ns, track, What::Begin(name), &facts)?;
        packets.event(sequence, wait.until_ns, track, What::End, &[])
    }

    /// Compares each sample of a CPU that has ended by `now_ns` with the counters of the CPU's page sets.
    /// Corrects these counters.
    fn sampled(&mut self, packets: &mut Packets<'_>, cpu: u32, now_ns: u64) -> io::Result<()> {
        let Self { samples, sampled, group, zones, zone_counters, .. } = self;
        while let Some((sample, ranges)) = samples.take(cpu, now_ns, || group.counts_of(cpu)) {
            for printed in &sample.zones {
                let Some(zone) = zones.named(printed.node, printed.kind) else { continue };
                let (track, free) = (zone_counters[zone][0], to_i64(printed.free));
                packets.event(group.sequence, sample.t1_ns, track, What::Value(free), &[])?;
                if !self.cpus.exists(cpu) {
                    continue;
                }
                let set = group.set(packets, zone, cpu)?;
                let range = ranges.iter().find(|(other, ..)| *other == zone);
                let range = range.map(|(_, least, most)| (*least, *most));
                let before = set.count.value();
                let count = corrected(before, range, printed);
                sampled.note(before, count);
                set.count.hold(count);
                set.count.write(packets, set.sequence, sample.t1_ns)?;
                set.high.hold(i64::from(printed.high));
                set.high.write(packets, set.sequence, sample.t1_ns)?;
            }
        }
        Ok(())
    }

    /// Writes open decisions and waits, ends open slices except those of direct reclaim, and writes the
    /// values at the end of the recording.
    pub(super) fn finish(&mut self, packets: &mut Packets<'_>, info: &TraceInfo) -> io::Result<()> {
        for (cpu, decision) in std::mem::take(&mut self.decisions).finish() {
            self.decided(packets, cpu, decision)?;
        }
        for wait in self.waits.finish() {
            self.waited(packets, &wait)?;
        }
        for cpu in self.samples.cpus() {
            self.sampled(packets, cpu, u64::MAX)?;
        }
        let last_ns = self.last_ns;
        for set in self.group.sets() {
            set.count.write(packets, set.sequence, last_ns)?;
        }
        for cpu in self.cpus.all() {
            Cpu::finish(cpu, packets, last_ns)?;
        }
        self.reclaim.finish(packets, &self.group, last_ns)?;
        if let Some(after) = &info.after {
            let at_ns = info.t_off_ns.unwrap_or(last_ns).max(last_ns);
            self.state(packets, at_ns, Zoneinfo::populated(&after.zoneinfo))?;
        }
        Ok(())
    }

    /// Number of waits, work items and reclaims with a beginning but no end, or with an end but no beginning.
    pub(super) fn unpaired(&self) -> u64 {
        self.waits.unpaired() + self.reclaim.unpaired + self.cpus.unpaired()
    }
}

/// Returns the block that an event is about, if its frame and order are possible by the survey's rules.
fn block_of(event: &Event) -> Option<(u64, Order)> {
    let (pfn, order) = event.frame().zip(event.block_order())?;
    pfn.is_aligned(order).then_some((pfn.0, order))
}

fn number<'a>(number: impl Into<u64>) -> Value<'a> {
    Value::Number(number.into())
}

/// The facts that the viewer shows at an allocation or free: the block, the thread, the process, and the CPU
/// that freed or allocated the block.
fn facts_of_block<'a>(
    event: &Event,
    (thread, process): (u32, Option<&'a str>),
    other_cpu: u16,
) -> Vec<Fact<'a>> {
    let facts = [
        (Key::Pfn, Value::Number(event.pfn)),
        (Key::Order, Value::Number(u64::from(event.order))),
        (Key::Thread, Value::Number(u64::from(thread))),
        (Key::Cpu, Value::Number(u64::from(other_cpu))),
    ];
    let process = process.map(|process| (Key::Process, Value::Text(process)));
    facts.into_iter().chain(process).collect()
}

fn to_i64(pages: u64) -> i64 {
    i64::try_from(pages).unwrap_or(i64::MAX)
}
