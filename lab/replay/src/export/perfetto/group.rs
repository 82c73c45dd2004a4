//! The tracks of one kernel, recorded or replayed. The root track has a track for each zone, and the track of
//! a zone has a track for each CPU's page set.

use std::collections::BTreeMap;
use std::io;

use pageset_core::ZoneKind;

use super::curve::Curve;
use super::packets::{Descriptor, Packets, Sequence, TrackId, TrackKind};

/// The tracks of one kernel, recorded or replayed.
pub(super) struct Group {
    /// The category of the group's slices.
    category: String,
    /// The packet sequence for events that belong to no single CPU.
    pub(super) sequence: Sequence,
    pub(super) root: TrackId,
    zones: Vec<Zone>,
    /// The packet sequences, by CPU. A CPU gets a sequence at its first event, because a damaged or malicious
    /// recording may name any CPU number.
    sequences: BTreeMap<u32, Sequence>,
    sets: BTreeMap<(usize, u32), PageSet>,
}

struct Zone {
    name: String,
    track: TrackId,
}

/// The tracks of a page set.
pub(super) struct PageSet {
    pub(super) sequence: Sequence,
    /// The track with the slices of refills and drains.
    pub(super) slices: TrackId,
    pub(super) count: Curve,
    pub(super) high: Curve,
}

impl Group {
    /// Begins a group, and describes the tracks of its zones.
    pub(super) fn begin(
        packets: &mut Packets<'_>,
        (name, description, rank): (&str, &str, i64),
        category: &str,
        zones: impl Iterator<Item = (u16, ZoneKind)>,
    ) -> io::Result<Self> {
        let sequence = packets.begin_sequence(category)?;
        let root = packets.new_track();
        let kind = TrackKind::Slices;
        packets.describe(sequence, &Descriptor { id: root, parent: None, name, description, kind, rank })?;
        let mut described = Vec::new();
        for (rank, (node, kind)) in zones.enumerate() {
            let name = format!("node {node} {}", kind.name());
            let track = packets.new_track();
            packets.describe(
                sequence,
                &Descriptor {
                    id: track,
                    parent: Some(root),
                    name: &name,
                    description: "",
                    kind: TrackKind::Slices,
                    rank: rank as i64,
                },
            )?;
            described.push(Zone { name, track });
        }
        Ok(Self {
            category: category.to_owned(),
            sequence,
            root,
            zones: described,
            sequences: BTreeMap::new(),
            sets: BTreeMap::new(),
        })
    }

    /// Returns the sequence of Perfetto packets for one CPU's events. The first call for a CPU begins the
    /// CPU's sequence.
    pub(super) fn of_cpu(&mut self, packets: &mut Packets<'_>, cpu: u32) -> io::Result<Sequence> {
        if let Some(sequence) = self.sequences.get(&cpu) {
            return Ok(*sequence);
        }
        let sequence = packets.begin_sequence(&self.category)?;
        self.sequences.insert(cpu, sequence);
        Ok(sequence)
    }

    /// Describes a counter of a zone's pages. All counters of a zone are drawn in the same scale.
    pub(super) fn zone_counter(
        &self,
        packets: &mut Packets<'_>,
        zone: usize,
        (name, rank): (&str, i64),
    ) -> io::Result<TrackId> {
        let track = packets.new_track();
        let scale = format!("free {} {}", self.category, self.zones[zone].name);
        packets.describe(
            self.sequence,
            &Descriptor {
                id: track,
                parent: Some(self.zones[zone].track),
                name: &format!("{} {name}", self.zones[zone].name),
                description: "",
                kind: TrackKind::Pages { scale: Some(&scale) },
                rank,
            },
        )?;
        Ok(track)
    }

    /// Returns the page set of a zone and a CPU, and describes its tracks at the first call.
    pub(super) fn set(
        &mut self,
        packets: &mut Packets<'_>,
        zone: usize,
        cpu: u32,
    ) -> io::Result<&mut PageSet> {
        let sequence = self.of_cpu(packets, cpu)?;
        let Self { zones, sets, category, .. } = self;
        let entry = match sets.entry((zone, cpu)) {
            std::collections::btree_map::Entry::Occupied(entry) => return Ok(entry.into_mut()),
            std::collections::btree_map::Entry::Vacant(entry) => entry,
        };
        let Zone { name: zone_name, track: parent } = &zones[zone];
        let [slices, count, high] = [(); 3].map(|()| packets.new_track());
        let name = format!("{zone_name} CPU {cpu}");
        // Tracks of watermarks and free pages are shown above the tracks of page sets.
        let rank = i64::from(cpu) + 10;
        packets.describe(
            sequence,
            &Descriptor {
                id: slices,
                parent: Some(*parent),
                name: &name,
                description: "Refills and drains of this CPU's page set.",
                kind: TrackKind::Slices,
                rank,
            },
        )?;
        let scale = format!("held {category} {name}");
        for (rank, (track, what)) in [(count, "count"), (high, "high")].into_iter().enumerate() {
            packets.describe(
                sequence,
                &Descriptor {
                    id: track,
                    parent: Some(slices),
                    name: &format!("{name} {what}"),
                    description: "",
                    kind: TrackKind::Pages { scale: Some(&scale) },
                    rank: rank as i64,
                },
            )?;
        }
        let set = PageSet { sequence, slices, count: Curve::new(count), high: Curve::new(high) };
        Ok(entry.insert(set))
    }

    /// Returns the number of pages in each page set of a CPU, by zone.
    pub(super) fn counts_of(&self, cpu: u32) -> Vec<(usize, i64)> {
        let of_cpu = self.sets.iter().filter(|((_, other), _)| *other == cpu);
        of_cpu.filter_map(|((zone, _), set)| Some((*zone, set.count.value()?))).collect()
    }

    /// Returns all page sets whose tracks were described.
    pub(super) fn sets(&mut self) -> impl Iterator<Item = &mut PageSet> {
        self.sets.values_mut()
    }
}
