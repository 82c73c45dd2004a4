//! Draws reclaim: the times when kswapd of a node runs, and the times when a task reclaims memory for itself.

use std::collections::{BTreeMap, HashMap};
use std::io;

use pageset_trace::{Event, EventKind};

use crate::export::perfetto::group::Group;
use crate::export::perfetto::names::{Key, Name};
use crate::export::perfetto::packets::{Descriptor, Packets, TrackId, TrackKind, Value, What};
use crate::export::perfetto::threads::Threads;

/// Maximum number of nodes whose kswapd is followed. No kernel has more nodes, but a damaged or malicious
/// recording may name more nodes.
const NODES_MAX: usize = 1 << 10;
/// Maximum number of tasks whose reclaim is followed at the same time.
const TASKS_MAX: usize = 64 << 10;

/// Tasks and kswapds that reclaim at the moment.
#[derive(Debug, Default)]
pub(super) struct Reclaim {
    /// For each node, the node's track, and the time when the node's kswapd woke up. The time is `None` while
    /// kswapd sleeps.
    nodes: BTreeMap<u64, (TrackId, Option<u64>)>,
    /// The node of each kswapd, by thread.
    kswapds: BTreeMap<u32, u64>,
    /// The time when each task began to reclaim, by pid and CPU. The CPU distinguishes idle tasks, which all
    /// have pid 0.
    tasks: HashMap<(u32, u16), u64>,
    /// Number of reclaims whose beginning or end the recording does not show, or that exceed `NODES_MAX` or
    /// `TASKS_MAX`.
    pub(super) unpaired: u64,
}

impl Reclaim {
    /// Adds an event. Only events about reclaim change anything.
    pub(super) fn event(
        &mut self,
        packets: &mut Packets<'_>,
        (group, threads): (&Group, &mut Threads<'_>),
        event: &Event,
    ) -> io::Result<()> {
        match event.kind {
            EventKind::KswapdWake => self.wakes(packets, group, event),
            EventKind::KswapdSleep => self.sleeps(packets, group, event.pfn, event.ts_ns),
            // kswapd also sleeps between two rounds of reclaim, and then no sleep event is recorded.
            EventKind::KswapdSwitchedOut if event.pfn == 1 => match self.kswapds.get(&event.pid) {
                Some(&node) => self.sleeps(packets, group, node, event.ts_ns),
                None => Ok(()),
            },
            EventKind::DirectReclaimBegin => self.begins(packets, (group, threads), event),
            EventKind::DirectReclaimEnd => self.ends(packets, (group, threads), event),
            _ => Ok(()),
        }
    }

    fn wakes(&mut self, packets: &mut Packets<'_>, group: &Group, event: &Event) -> io::Result<()> {
        let node = event.pfn;
        // The recording may lack the event of kswapd's last sleep.
        self.sleeps(packets, group, node, event.ts_ns)?;
        let track = match self.nodes.get(&node) {
            Some((track, _)) => *track,
            None if self.nodes.len() >= NODES_MAX => {
                self.unpaired += 1;
                return Ok(());
            }
            None => describe(packets, group, node, self.nodes.len())?,
        };
        self.nodes.insert(node, (track, Some(event.ts_ns)));
        if self.kswapds.len() < NODES_MAX {
            self.kswapds.insert(event.pid, node);
        }
        let order = (Key::Order, Value::Number(u64::from(event.order)));
        packets.event(group.sequence, event.ts_ns, track, What::Begin(Name::Kswapd), &[order])
    }

    fn sleeps(&mut self, packets: &mut Packets<'_>, group: &Group, node: u64, at_ns: u64) -> io::Result<()> {
        let Some((track, awake)) = self.nodes.get_mut(&node) else { return Ok(()) };
        // Do not let the slice end before its beginning: the clock may have gone back.
        match awake.take() {
            Some(since_ns) => packets.event(group.sequence, at_ns.max(since_ns), *track, What::End, &[]),
            None => Ok(()),
        }
    }

    fn begins(
        &mut self,
        packets: &mut Packets<'_>,
        (group, threads): (&Group, &mut Threads<'_>),
        event: &Event,
    ) -> io::Result<()> {
        if self.tasks.len() >= TASKS_MAX {
            self.unpaired += 1;
            return Ok(());
        }
        let track = threads.track(packets, group.sequence, (event.pid, event.cpu), event.ts_ns)?;
        if let Some(since_ns) = self.tasks.insert(task(event), event.ts_ns) {
            // The recording lacks the end of this task's previous reclaim.
            self.unpaired += 1;
            packets.event(group.sequence, event.ts_ns.max(since_ns), track, What::End, &[])?;
        }
        let order = (Key::Order, Value::Number(u64::from(event.order)));
        packets.event(group.sequence, event.ts_ns, track, What::Begin(Name::DirectReclaim), &[order])
    }

    fn ends(
        &mut self,
        packets: &mut Packets<'_>,
        (group, threads): (&Group, &mut Threads<'_>),
        event: &Event,
    ) -> io::Result<()> {
        let Some(since_ns) = self.tasks.remove(&task(event)) else {
            self.unpaired += 1;
            return Ok(());
        };
        let track = threads.track(packets, group.sequence, (event.pid, event.cpu), event.ts_ns)?;
        let pages = (Key::Pages, Value::Number(event.pfn));
        packets.event(group.sequence, event.ts_ns.max(since_ns), track, What::End, &[pages])
    }

    /// Ends the slices of kswapds at the end of the recording. If a task still reclaims then, counts its
    /// reclaim in `unpaired`, and leaves its slice open.
    pub(super) fn finish(
        &mut self,
        packets: &mut Packets<'_>,
        group: &Group,
        last_ns: u64,
    ) -> io::Result<()> {
        self.unpaired += self.tasks.len() as u64;
        let nodes: Vec<u64> = self.nodes.keys().copied().collect();
        nodes.into_iter().try_for_each(|node| self.sleeps(packets, group, node, last_ns))
    }
}

fn task(event: &Event) -> (u32, u16) {
    (event.pid, if event.pid == 0 { event.cpu } else { 0 })
}

fn describe(packets: &mut Packets<'_>, group: &Group, node: u64, place: usize) -> io::Result<TrackId> {
    let id = packets.new_track();
    packets.describe(
        group.sequence,
        &Descriptor {
            id,
            parent: Some(group.root),
            name: &format!("kswapd of node {node}"),
            description: "kswapd is awake: from waking up to falling asleep.",
            kind: TrackKind::Slices,
            // The tracks of nodes are shown below the tracks of zones, and above the tracks of CPUs.
            rank: 500 + place as i64,
        },
    )?;
    Ok(id)
}
