//! Draws one CPU's activity: its periodic work, and its sums of allocated and freed pages. Also finds the
//! reasons for the CPU's drains.

use std::collections::BTreeMap;
use std::io;

use pageset_trace::Decision;
use pageset_trace::{Event, EventKind, Layout, Work};

use crate::export::perfetto::curve::Curve;
use crate::export::perfetto::group::Group;
use crate::export::perfetto::names::Name;
use crate::export::perfetto::packets::{Descriptor, Packets, Sequence, TrackId, TrackKind, What};

/// The CPUs that had an event.
pub(super) struct Cpus {
    /// The node of each CPU of the machine.
    nodes: Vec<u16>,
    seen: BTreeMap<u16, Cpu>,
}

/// The tracks of one CPU, and its last events.
pub(super) struct Cpu {
    sequence: Sequence,
    track: TrackId,
    allocated: Curve,
    freed: Curve,
    /// The work item that runs now, and the time when the item began.
    work: Option<(Name, u64)>,
    /// The kind and thread of the last event that was neither about a lock nor a fallback. If blocks move
    /// after this event, the kind of the event is the reason for the move.
    last: Option<(EventKind, u32)>,
    /// The reason why the last run of blocks moved, and the task that moved them.
    run: (&'static str, u32),
    unpaired: u64,
}

impl Cpus {
    pub(super) fn new(machine: &Layout) -> Self {
        let nodes = (0..machine.cpus).map(|cpu| machine.node_of_cpu(cpu).unwrap_or(0)).collect();
        Self { nodes, seen: BTreeMap::new() }
    }

    /// Whether the machine's description has this CPU.
    pub(super) fn exists(&self, cpu: u32) -> bool {
        (cpu as usize) < self.nodes.len()
    }

    pub(super) fn node(&self, cpu: u16) -> Option<u16> {
        self.nodes.get(usize::from(cpu)).copied()
    }

    /// Returns a CPU, and describes its tracks at the first call.
    pub(super) fn of(
        &mut self,
        packets: &mut Packets<'_>,
        group: &mut Group,
        cpu: u16,
    ) -> io::Result<&mut Cpu> {
        let entry = match self.seen.entry(cpu) {
            std::collections::btree_map::Entry::Occupied(entry) => return Ok(entry.into_mut()),
            std::collections::btree_map::Entry::Vacant(entry) => entry,
        };
        let sequence = group.of_cpu(packets, u32::from(cpu))?;
        let [track, allocated, freed] = [(); 3].map(|()| packets.new_track());
        let name = format!("CPU {cpu}");
        // The tracks of zones are shown above the tracks of CPUs.
        let rank = i64::from(cpu) + 1000;
        packets.describe(
            sequence,
            &Descriptor {
                id: track,
                parent: Some(group.root),
                name: &name,
                description: "Periodic work, and pages that are freed on another CPU than they were allocated on.",
                kind: TrackKind::Slices,
                rank,
            },
        )?;
        for (rank, (id, what)) in
            [(allocated, "pages allocated"), (freed, "pages freed")].into_iter().enumerate()
        {
            packets.describe(
                sequence,
                &Descriptor {
                    id,
                    parent: Some(track),
                    name: &format!("{name} {what}"),
                    description: "Since the recording began.",
                    kind: TrackKind::Pages { scale: None },
                    rank: rank as i64,
                },
            )?;
        }
        Ok(entry.insert(Cpu {
            sequence,
            track,
            allocated: Curve::rare(allocated),
            freed: Curve::rare(freed),
            work: None,
            last: None,
            run: ("", 0),
            unpaired: 0,
        }))
    }

    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Cpu> {
        self.seen.values_mut()
    }

    pub(super) fn unpaired(&self) -> u64 {
        self.seen.values().map(|cpu| cpu.unpaired).sum()
    }
}

impl Cpu {
    pub(super) const fn sequence(&self) -> Sequence {
        self.sequence
    }

    pub(super) const fn track(&self) -> TrackId {
        self.track
    }

    /// Records an event that may be the reason for a drain. Returns true for the first event of a run of
    /// moved blocks.
    #[inline]
    pub(super) fn follow(&mut self, event: &Event) -> bool {
        use EventKind::{
            ContentionBegin, ContentionEnd, MmPageAllocExtfrag, MmPageAllocZoneLocked, MmPageFree,
            MmPageFreeBatched, MmPagePcpuDrain,
        };
        if matches!(event.kind, ContentionBegin | ContentionEnd | MmPageAllocExtfrag) {
            return false;
        }
        let last = self.last.replace((event.kind, event.pid));
        if !matches!(event.kind, MmPageAllocZoneLocked | MmPagePcpuDrain)
            || last.is_some_and(|(kind, _)| kind == event.kind)
        {
            return false;
        }
        if event.kind == MmPagePcpuDrain {
            let is_free = matches!(last, Some((MmPageFree | MmPageFreeBatched, pid)) if pid == event.pid);
            let reason = match self.work {
                Some((Name::Tick, _)) => "tick",
                _ if is_free => "free",
                _ => "demand",
            };
            self.run = (reason, event.pid);
        } else {
            self.run = ("empty list", event.pid);
        }
        true
    }

    /// The reason why the last run of blocks moved, and the thread that moved them.
    pub(super) const fn reason(&self, decision: &Decision) -> (&'static str, u32) {
        match decision.refill {
            Some(_) => ("empty list", self.run.1),
            None => self.run,
        }
    }

    pub(super) fn allocated(&mut self, packets: &mut Packets<'_>, at_ns: u64, pages: u32) -> io::Result<()> {
        let sum = self.allocated.value().unwrap_or(0) + i64::from(pages);
        self.allocated.note(packets, self.sequence, at_ns, sum)
    }

    pub(super) fn freed(&mut self, packets: &mut Packets<'_>, at_ns: u64, pages: u32) -> io::Result<()> {
        let sum = self.freed.value().unwrap_or(0) + i64::from(pages);
        self.freed.note(packets, self.sequence, at_ns, sum)
    }

    /// Draws the beginning or end of a work item.
    pub(super) fn work(&mut self, packets: &mut Packets<'_>, event: &Event) -> io::Result<()> {
        let name = match event.work() {
            Some(Work::VmstatUpdate) => Name::Tick,
            Some(Work::LruAddDrainPerCpu) => Name::LruDrain,
            _ => return Ok(()),
        };
        if event.kind == EventKind::WorkqueueExecuteEnd {
            if self.work.is_some_and(|(runs, _)| runs == name) {
                return self.end_work(packets, event.ts_ns);
            }
            self.unpaired += 1;
            return Ok(());
        }
        if self.work.is_some() {
            // The recording lacks the end of the work item before the item that begins now.
            self.unpaired += 1;
            self.end_work(packets, event.ts_ns)?;
        }
        self.work = Some((name, event.ts_ns));
        packets.event(self.sequence, event.ts_ns, self.track, What::Begin(name), &[])
    }

    /// Ends the slice of the current work item. The slice never ends before its beginning, even if the clock
    /// went back.
    fn end_work(&mut self, packets: &mut Packets<'_>, at_ns: u64) -> io::Result<()> {
        let Some((_, since_ns)) = self.work.take() else { return Ok(()) };
        packets.event(self.sequence, at_ns.max(since_ns), self.track, What::End, &[])
    }

    pub(super) fn finish(&mut self, packets: &mut Packets<'_>, last_ns: u64) -> io::Result<()> {
        self.unpaired += u64::from(self.work.is_some());
        self.end_work(packets, last_ns)?;
        self.allocated.write(packets, self.sequence, last_ns)?;
        self.freed.write(packets, self.sequence, last_ns)
    }
}
