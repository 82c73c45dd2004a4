//! A reader of the written format, which shares no code with the writer. The reader parses bytes into fields,
//! and builds slices and counters from fields.
//!
//! The reader follows the published description of the format. Each sequence has a table of names, and a
//! clock that counts from packet to packet.

use std::collections::BTreeMap;

/// A field of a message.
#[derive(Clone, Copy, Debug)]
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, each with its number.
struct Fields<'a>(Vec<(u64, Field<'a>)>);

impl<'a> Fields<'a> {
    fn parse(mut bytes: &'a [u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let field = match tag & 7 {
                0 => Field::Number(varint(&mut bytes)),
                1 => {
                    let (number, rest) = bytes.split_at(8);
                    bytes = rest;
                    Field::Number(u64::from_le_bytes(number.try_into().unwrap()))
                }
                2 => {
                    let length = varint(&mut bytes) as usize;
                    let (inner, rest) = bytes.split_at(length);
                    bytes = rest;
                    Field::Bytes(inner)
                }
                other => panic!("wire type {other}"),
            };
            fields.push((tag >> 3, field));
        }
        Self(fields)
    }

    fn all(&self, number: u64) -> impl Iterator<Item = Field<'a>> {
        self.0.iter().filter(move |(other, _)| *other == number).map(|(_, field)| *field)
    }

    fn number(&self, number: u64) -> Option<u64> {
        self.all(number).find_map(|field| if let Field::Number(value) = field { Some(value) } else { None })
    }

    fn messages(&self, number: u64) -> impl Iterator<Item = Fields<'a>> {
        let bytes = self
            .all(number)
            .filter_map(|field| if let Field::Bytes(bytes) = field { Some(bytes) } else { None });
        bytes.map(Fields::parse)
    }

    fn text(&self, number: u64) -> Option<String> {
        self.all(number).find_map(|field| match field {
            Field::Bytes(bytes) => Some(String::from_utf8(bytes.to_vec()).expect("text is UTF-8")),
            Field::Number(_) => None,
        })
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("a number ends");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    panic!("a number has ten bytes at most")
}

/// A slice, or a moment, which has no length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) track: String,
    pub(super) category: String,
    pub(super) name: String,
    pub(super) at_ns: u64,
    pub(super) length_ns: u64,
    pub(super) numbers: BTreeMap<String, u64>,
    pub(super) texts: BTreeMap<String, String>,
    /// The arrows that begin at this slice, and the arrows that end at this slice.
    pub(super) flows: (Vec<u64>, Vec<u64>),
}

/// A trace of Perfetto.
#[derive(Debug, Default)]
pub(super) struct ReadBack {
    pub(super) slices: Vec<Slice>,
    /// Number of slices that began and did not end.
    pub(super) unfinished: usize,
    /// Values of each counter, by time.
    pub(super) counters: BTreeMap<String, Vec<(u64, i64)>>,
    pub(super) tracks: Vec<String>,
}

#[derive(Default)]
struct Sequence {
    clock_ns: u64,
    names: [BTreeMap<u64, String>; 3],
}

#[derive(Default)]
struct State {
    sequences: BTreeMap<u64, Sequence>,
    /// For each track number, the track's full name, and whether the track is a counter.
    tracks: BTreeMap<u64, (String, bool)>,
    /// For each packet with an event: time, place in the file, sequence, and the event.
    events: Vec<(u64, usize, u64, usize)>,
}

impl ReadBack {
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let mut state = State::default();
        let file = Fields::parse(bytes);
        let mut bodies = Vec::new();
        for packet in file.messages(1) {
            let sequence = packet.number(10).expect("each packet belongs to a sequence");
            assert!(sequence > 0);
            begin_state(&mut state, sequence, &packet);
            for track in packet.messages(60) {
                describe(&mut state, &track);
            }
            for event in packet.messages(11) {
                assert_eq!(packet.number(13), Some(2), "an event comes after the names of its sequence");
                let time = packet.number(8).expect("each event has a time");
                let at_ns = match packet.number(58) {
                    Some(6) => time,
                    None => {
                        let clock = &mut state.sequences.get_mut(&sequence).expect("it began").clock_ns;
                        *clock += time;
                        *clock
                    }
                    Some(other) => panic!("clock {other}"),
                };
                state.events.push((at_ns, bodies.len(), sequence, bodies.len()));
                bodies.push(event);
            }
        }
        // Events with the same time stay in the order of the file.
        state.events.sort_by_key(|(at_ns, place, ..)| (*at_ns, *place));
        let mut found = Self::default();
        let mut open: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (at_ns, _, sequence, body) in &state.events {
            found.event(&state, &mut open, (*at_ns, *sequence), &bodies[*body]);
        }
        found.unfinished = open.values().map(Vec::len).sum();
        found.tracks = state.tracks.into_values().map(|(name, _)| name).collect();
        found
    }

    fn event(
        &mut self,
        state: &State,
        open: &mut BTreeMap<u64, Vec<usize>>,
        (at_ns, sequence): (u64, u64),
        event: &Fields<'_>,
    ) {
        let uuid = event.number(11).expect("each event belongs to a track");
        let (track, is_counter) = &state.tracks[&uuid];
        let names = &state.sequences[&sequence].names;
        let kind = event.number(9).expect("each event has a type");
        assert_eq!(*is_counter, kind == 4, "{track}");
        let (mut numbers, mut texts) = (BTreeMap::new(), BTreeMap::new());
        for fact in event.messages(4) {
            let key = names[2][&fact.number(1).expect("each fact about an event has a name")].clone();
            match fact.text(6) {
                Some(text) => drop(texts.insert(key, text)),
                None => drop(numbers.insert(key, fact.number(3).or(fact.number(7)).expect("a value"))),
            }
        }
        match kind {
            1 | 3 => {
                let flow = |field| event.all(field).filter_map(number).collect::<Vec<_>>();
                let name = names[1][&event.number(10).expect("each slice on a track has a name")].clone();
                let category =
                    names[0][&event.number(3).expect("each slice on a track has a category")].clone();
                let flows = (flow(47), flow(48));
                let (track, length_ns) = (track.clone(), 0);
                self.slices.push(Slice { track, category, name, at_ns, length_ns, numbers, texts, flows });
                if kind == 1 {
                    open.entry(uuid).or_default().push(self.slices.len() - 1);
                }
            }
            2 => {
                let slice = open
                    .get_mut(&uuid)
                    .and_then(Vec::pop)
                    .expect("the end of a slice comes after its beginning");
                let slice = &mut self.slices[slice];
                slice.length_ns = at_ns - slice.at_ns;
                slice.numbers.extend(numbers);
            }
            4 => {
                let value = event.number(30).expect("each event of a counter has a value") as i64;
                self.counters.entry(track.clone()).or_default().push((at_ns, value));
            }
            other => panic!("type {other}"),
        }
    }

    /// The number of slices of a category with this name, and the sum of their pages.
    pub(super) fn sum(&self, category: &str, name: &str) -> (u64, u64) {
        let these = self.slices.iter().filter(|slice| slice.category == category && slice.name == name);
        these.fold((0, 0), |(count, pages), slice| {
            (count + 1, pages + slice.numbers.get("pages").copied().unwrap_or(0))
        })
    }

    /// The last value of a counter.
    pub(super) fn last(&self, track: &str) -> Option<i64> {
        self.counters.get(track)?.last().map(|(_, value)| *value)
    }
}

fn number(field: Field<'_>) -> Option<u64> {
    if let Field::Number(value) = field { Some(value) } else { None }
}

fn begin_state(state: &mut State, sequence: u64, packet: &Fields<'_>) {
    if packet.number(13) != Some(1) {
        assert!(state.sequences.contains_key(&sequence), "a sequence begins with its names");
        return;
    }
    let mut begun = Sequence::default();
    for interned in packet.messages(12) {
        for (list, names) in (1..).zip(&mut begun.names) {
            let entries = interned.messages(list);
            names.extend(entries.map(|entry| (entry.number(1).unwrap(), entry.text(2).unwrap())));
        }
    }
    let defaults: Vec<_> = packet.messages(59).filter_map(|defaults| defaults.number(58)).collect();
    assert_eq!(defaults, [64]);
    for snapshot in packet.messages(6) {
        let clocks: Vec<_> = snapshot.messages(1).collect();
        let clock = |id| clocks.iter().find(|clock| clock.number(1) == Some(id)).expect("a clock");
        assert_eq!(clock(6).number(2), clock(64).number(2));
        assert_eq!(clock(64).number(3), Some(1), "the clock of a sequence counts from packet to packet");
        begun.clock_ns = clock(64).number(2).unwrap();
    }
    assert!(state.sequences.insert(sequence, begun).is_none(), "each packet sequence begins only once");
}

fn describe(state: &mut State, track: &Fields<'_>) {
    let uuid = track.number(1).expect("each description of a track has a number");
    let thread = track.messages(4).next().map(|thread| format!("thread {}", thread.number(2).unwrap()));
    let name = track.text(2).or(thread).expect("each description of a track has a name");
    let name = match track.number(5) {
        Some(parent) => format!("{} / {name}", state.tracks[&parent].0),
        None => name,
    };
    let is_counter = track.messages(8).next().is_some();
    let before = state.tracks.insert(uuid, (name.clone(), is_counter));
    assert!(
        before.is_none_or(|before| before == (name, is_counter)),
        "each track number belongs to only one track"
    );
}
