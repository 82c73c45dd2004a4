//! Packets, the parts of a trace of Perfetto.
//!
//! Packets come in sequences. The packets of one sequence share a table of names and a clock. The time of a
//! packet is written as the difference from the time of the packet before, unless the packet's time is
//! earlier. Field numbers and meanings come from Perfetto's published protos (`trace_packet.proto`,
//! `track_event.proto`, `track_descriptor.proto`, `interned_data.proto`, `clock_snapshot.proto`), and from
//! its page "Writing TrackEvent Protos Synthetically"
//! (<https://perfetto.dev/docs/reference/synthetic-track-event>).

use std::io::{self, Write};

use super::names::{Key, Name};
use super::wire::Message;

/// `BUILTIN_CLOCK_BOOTTIME`: the clock whose times the viewer shows.
const CLOCK_BOOT: u64 = 6;
/// A clock with this number or a higher number belongs to a single sequence.
const CLOCK_OF_SEQUENCE: u64 = 64;
/// `SEQ_INCREMENTAL_STATE_CLEARED`.
const STATE_BEGINS: u64 = 1;
/// `SEQ_NEEDS_INCREMENTAL_STATE`.
const STATE_IS_NEEDED: u64 = 2;
/// The number of the category. Each sequence has exactly one category.
const CATEGORY: u64 = 1;
/// The latest time that a trace can have.
const TIME_NS_MAX: u64 = i64::MAX as u64;

/// Fields of `TracePacket`.
mod packet {
    pub(super) const CLOCK_SNAPSHOT: u32 = 6;
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const SEQUENCE: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const INTERNED_DATA: u32 = 12;
    pub(super) const SEQUENCE_FLAGS: u32 = 13;
    pub(super) const TIMESTAMP_CLOCK: u32 = 58;
    pub(super) const DEFAULTS: u32 = 59;
    pub(super) const TRACK_DESCRIPTOR: u32 = 60;
    pub(super) const IS_FIRST_OF_SEQUENCE: u32 = 87;
}

/// Fields of `TrackEvent`, and the numbers of its types.
mod event {
    pub(super) const CATEGORY: u32 = 3;
    pub(super) const FACT: u32 = 4;
    pub(super) const TYPE: u32 = 9;
    pub(super) const NAME: u32 = 10;
    pub(super) const TRACK: u32 = 11;
    pub(super) const COUNTER_VALUE: u32 = 30;
    pub(super) const FLOW: u32 = 47;
    pub(super) const FLOW_ENDS: u32 = 48;

    pub(super) const BEGIN: u64 = 1;
    pub(super) const END: u64 = 2;
    pub(super) const INSTANT: u64 = 3;
    pub(super) const COUNTER: u64 = 4;
}

/// The number of a track in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TrackId(pub(super) u64);

/// A sequence of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sequence(usize);

/// The kind of data that a track shows.
#[derive(Clone, Copy, Debug)]
pub(super) enum TrackKind<'a> {
    /// Slices, or other tracks.
    Slices,
    /// Numbers of pages. The viewer draws counters with equal texts in `scale` to the same scale.
    Pages { scale: Option<&'a str> },
    /// The slices of a thread.
    Thread { tid: u32 },
}

/// The description of a track, which is written before its first event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptor<'a> {
    pub(super) id: TrackId,
    pub(super) parent: Option<TrackId>,
    pub(super) name: &'a str,
    /// The description that the viewer shows.
    pub(super) description: &'a str,
    pub(super) kind: TrackKind<'a>,
    /// The position of the track among the tracks with the same parent.
    pub(super) rank: i64,
}

/// An event on a track.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// A slice begins.
    Begin(Name),
    /// The slice that began last on this track ends.
    End,
    /// An event without a length happens.
    Moment(Name),
    /// A counter changes to this value.
    Value(i64),
}

/// An arrow between two events.
#[derive(Clone, Copy, Debug)]
pub(super) enum Flow {
    Begins(u64),
    Ends(u64),
}

/// A fact that the viewer shows about an event: its name and its value.
pub(super) type Fact<'a> = (Key, Value<'a>);

/// The value of a fact.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Number(u64),
    Address(u64),
    Text(&'a str),
}

/// Writes packets.
pub(super) struct Packets<'w> {
    out: &'w mut dyn Write,
    message: Message,
    /// The time of the last packet of each sequence.
    clocks_ns: Vec<u64>,
    first_ns: u64,
    tracks: u64,
    pub(super) written: u64,
    pub(super) bytes: u64,
}

impl<'w> Packets<'w> {
    /// Makes a writer for the packets of a trace. `first_ns` is the time of the trace's first event.
    pub(super) fn new(out: &'w mut dyn Write, first_ns: u64) -> Self {
        let first_ns = first_ns.min(TIME_NS_MAX);
        let message = Message::default();
        Self { out, message, clocks_ns: Vec::new(), first_ns, tracks: 0, written: 0, bytes: 0 }
    }

    /// Returns a new track number.
    pub(super) fn new_track(&mut self) -> TrackId {
        self.tracks += 1;
        TrackId(self.tracks)
    }

    /// Begins a sequence whose slices are all of one category.
    pub(super) fn begin_sequence(&mut self, category: &str) -> io::Result<Sequence> {
        let (sequence, first_ns) = (Sequence(self.clocks_ns.len()), self.first_ns);
        self.clocks_ns.push(first_ns);
        self.packet(sequence, |packet| {
            packet.uint(packet::SEQUENCE_FLAGS, STATE_BEGINS);
            packet.uint(packet::IS_FIRST_OF_SEQUENCE, 1);
            packet.message(packet::DEFAULTS, |defaults| {
                defaults.uint(packet::TIMESTAMP_CLOCK, CLOCK_OF_SEQUENCE);
            });
            packet.message(packet::INTERNED_DATA, |interned| {
                let mut list = |field, number, text: &str| {
                    interned.message(field, |entry| {
                        entry.uint(1, number);
                        entry.text(2, text);
                    });
                };
                list(1, CATEGORY, category);
                Name::ALL.into_iter().for_each(|name| list(2, name.number(), name.text()));
                Key::ALL.into_iter().for_each(|key| list(3, key.number(), key.text()));
            });
            // Every sequence sets its clock to the same time, because readers reject a file that sets a clock
            // back.
            packet.message(packet::CLOCK_SNAPSHOT, |snapshot| {
                snapshot.message(1, |clock| {
                    clock.uint(1, CLOCK_BOOT);
                    clock.uint(2, first_ns);
                });
                snapshot.message(1, |clock| {
                    clock.uint(1, CLOCK_OF_SEQUENCE);
                    clock.uint(2, first_ns);
                    // The sequence's clock is incremental: each time is the difference from the time before.
                    clock.uint(3, 1);
                });
            });
        })?;
        Ok(sequence)
    }

    /// Describes a track. A track may be described again with the same description.
    pub(super) fn describe(&mut self, sequence: Sequence, track: &Descriptor<'_>) -> io::Result<()> {
        self.packet(sequence, |packet| {
            packet.message(packet::TRACK_DESCRIPTOR, |descriptor| {
                descriptor.uint(1, track.id.0);
                if let Some(parent) = track.parent {
                    descriptor.uint(5, parent.0);
                }
                // The track's children are shown in the order of their ranks.
                descriptor.uint(11, 3);
                descriptor.int(12, track.rank);
                if !track.description.is_empty() {
                    descriptor.text(14, track.description);
                }
                match track.kind {
                    TrackKind::Slices => descriptor.text(2, track.name),
                    TrackKind::Pages { scale } => {
                        descriptor.text(2, track.name);
                        descriptor.message(8, |counter| {
                            counter.text(6, "pages");
                            if let Some(scale) = scale {
                                counter.text(7, scale);
                            }
                        });
                    }
                    TrackKind::Thread { tid } => descriptor.message(4, |thread| {
                        thread.uint(1, u64::from(tid));
                        thread.uint(2, u64::from(tid));
                        if !track.name.is_empty() {
                            thread.text(5, track.name);
                        }
                    }),
                }
            });
        })
    }

    /// Writes an event of a track.
    pub(super) fn event(
        &mut self,
        sequence: Sequence,
        at_ns: u64,
        track: TrackId,
        what: What,
        facts: &[Fact<'_>],
    ) -> io::Result<()> {
        self.linked_event(sequence, at_ns, track, what, facts, None)
    }

    /// Writes an event. If `flow` is given, an arrow begins or ends at the event.
    pub(super) fn linked_event(
        &mut self,
        sequence: Sequence,
        at_ns: u64,
        track: TrackId,
        what: What,
        facts: &[Fact<'_>],
        flow: Option<Flow>,
    ) -> io::Result<()> {
        let at_ns = at_ns.min(TIME_NS_MAX);
        let clock_ns = &mut self.clocks_ns[sequence.0];
        let since_ns = at_ns.checked_sub(*clock_ns);
        *clock_ns = at_ns.max(*clock_ns);
        self.packet(sequence, |packet| {
            packet.uint(packet::SEQUENCE_FLAGS, STATE_IS_NEEDED);
            match since_ns {
                Some(since_ns) => packet.uint(packet::TIMESTAMP, since_ns),
                // The event was reported late, or the clock went back. Write an absolute time.
                None => {
                    packet.uint(packet::TIMESTAMP, at_ns);
                    packet.uint(packet::TIMESTAMP_CLOCK, CLOCK_BOOT);
                }
            }
            packet.message(packet::TRACK_EVENT, |event| {
                event.uint(event::TRACK, track.0);
                let (kind, name) = match what {
                    What::Begin(name) => (event::BEGIN, Some(name)),
                    What::End => (event::END, None),
                    What::Moment(name) => (event::INSTANT, Some(name)),
                    What::Value(value) => {
                        event.int(event::COUNTER_VALUE, value);
                        (event::COUNTER, None)
                    }
                };
                event.uint(event::TYPE, kind);
                if let Some(name) = name {
                    event.uint(event::CATEGORY, CATEGORY);
                    event.uint(event::NAME, name.number());
                }
                for (key, value) in facts {
                    event.message(event::FACT, |fact| {
                        fact.uint(1, key.number());
                        match value {
                            Value::Number(number) => fact.uint(3, *number),
                            Value::Address(address) => fact.uint(7, *address),
                            Value::Text(text) => fact.text(6, text),
                        }
                    });
                }
                match flow {
                    Some(Flow::Begins(number)) => event.fixed64(event::FLOW, number),
                    Some(Flow::Ends(number)) => event.fixed64(event::FLOW_ENDS, number),
                    None => {}
                }
            });
        })
    }

    /// Writes a packet as a field of the file. The whole file is one message.
    fn packet(&mut self, sequence: Sequence, make: impl FnOnce(&mut Message)) -> io::Result<()> {
        self.message.clear();
        self.message.message(1, |packet| {
            // The number 0 stands for no sequence, so the first sequence has number 1.
            packet.uint(packet::SEQUENCE, sequence.0 as u64 + 1);
            make(packet);
        });
        self.written += 1;
        self.bytes += self.message.bytes().len() as u64;
        self.out.write_all(self.message.bytes())
    }
}
