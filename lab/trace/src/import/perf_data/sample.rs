//! Finds the needed fields of a sample. Source: perf_event_open(2), "PERF_RECORD_SAMPLE".

/// Bits of `sample_type`.
mod bit {
    pub(super) const IP: u64 = 1 << 0;
    pub(super) const TID: u64 = 1 << 1;
    pub(super) const TIME: u64 = 1 << 2;
    pub(super) const ADDR: u64 = 1 << 3;
    pub(super) const READ: u64 = 1 << 4;
    pub(super) const CALLCHAIN: u64 = 1 << 5;
    pub(super) const ID: u64 = 1 << 6;
    pub(super) const CPU: u64 = 1 << 7;
    pub(super) const PERIOD: u64 = 1 << 8;
    pub(super) const STREAM_ID: u64 = 1 << 9;
    pub(super) const RAW: u64 = 1 << 10;
    pub(super) const IDENTIFIER: u64 = 1 << 16;
}

/// For each event id, the fields that the event requests for its samples.
#[derive(Default)]
pub(super) struct SampleFormats {
    /// Sorted by id.
    by_id: Vec<(u64, u64)>,
    /// The fields of all events, if all events request the same fields.
    common: Option<u64>,
}

/// A sample of a tracepoint.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sample<'body> {
    pub(super) ts_ns: u64,
    pub(super) cpu: u16,
    /// The kernel's own record. The record is empty if the event has no record.
    pub(super) raw: &'body [u8],
}

impl SampleFormats {
    /// Makes a reader of samples. Each entry of `events` has the fields that an event requests, and the
    /// event's ids.
    ///
    /// # Errors
    /// A sentence about the fields that samples lack.
    pub(super) fn new(events: &[(u64, Vec<u64>)]) -> Result<Self, &'static str> {
        let needed = bit::TIME | bit::CPU;
        // Skip events that are not tracepoints. perf adds such events only to get other kinds of records.
        let sampled = || events.iter().map(|(asked, _)| *asked).filter(|asked| asked & bit::RAW != 0);
        let Some(first) = sampled().next() else { return Err("it has no tracepoints") };
        if sampled().any(|asked| asked & needed != needed) {
            return Err("its samples lack a time or a CPU");
        }
        if sampled().any(|asked| asked & bit::READ != 0) {
            return Err("its samples have values of counters");
        }
        let are_alike = events.iter().all(|(asked, _)| *asked == first);
        if !are_alike && events.iter().any(|(asked, _)| asked & bit::IDENTIFIER == 0) {
            return Err(
                "its events have samples of different forms, and the samples do not name their event",
            );
        }
        let mut by_id: Vec<_> =
            events.iter().flat_map(|(asked, ids)| ids.iter().map(|id| (*id, *asked))).collect();
        by_id.sort_by_key(|(id, _)| *id);
        Ok(Self { by_id, common: are_alike.then_some(first) })
    }

    /// Reads the fields of a sample. `None` if the sample is too short or contradicts itself.
    pub(super) fn sample<'body>(&self, body: &'body [u8]) -> Option<Sample<'body>> {
        let asked = match self.common {
            Some(asked) => asked,
            None => {
                let id = u64::from_ne_bytes(*body.first_chunk()?);
                let at = self.by_id.binary_search_by_key(&id, |(id, _)| *id).ok()?;
                self.by_id[at].1
            }
        };
        let mut rest = Rest(body);
        let has = |bit| asked & bit != 0;
        rest.pass(has(bit::IDENTIFIER))?;
        rest.pass(has(bit::IP))?;
        rest.pass(has(bit::TID))?;
        let ts_ns = if has(bit::TIME) { rest.u64()? } else { 0 };
        rest.pass(has(bit::ADDR))?;
        rest.pass(has(bit::ID))?;
        rest.pass(has(bit::STREAM_ID))?;
        let cpu = if has(bit::CPU) { rest.u64()? as u32 } else { 0 };
        rest.pass(has(bit::PERIOD))?;
        if has(bit::CALLCHAIN) {
            let calls = usize::try_from(rest.u64()?).ok()?;
            rest.take(calls.checked_mul(8)?)?;
        }
        let raw = if has(bit::RAW) {
            let bytes = rest.u32()? as usize;
            rest.take(bytes)?
        } else {
            &[]
        };
        Some(Sample { ts_ns, cpu: u16::try_from(cpu).ok()?, raw })
    }
}

/// The bytes of a sample that were not yet read.
struct Rest<'body>(&'body [u8]);

impl<'body> Rest<'body> {
    fn take(&mut self, bytes: usize) -> Option<&'body [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        let bytes = self.take(4)?;
        bytes.first_chunk().copied().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        let bytes = self.take(8)?;
        bytes.first_chunk().copied().map(u64::from_ne_bytes)
    }

    /// Skips a number if the sample has this number.
    fn pass(&mut self, is_there: bool) -> Option<()> {
        if is_there { self.u64().map(drop) } else { Some(()) }
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;

    const NEEDED: u64 = bit::TID | bit::TIME | bit::CPU | bit::RAW;

    fn sample(asked: u64, words: &[u64], raw: &[u8]) -> Option<(u64, u16, Vec<u8>)> {
        let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        body.extend((raw.len() as u32).to_le_bytes());
        body.extend(raw);
        let formats = SampleFormats::new(&[(asked, vec![])]).unwrap();
        let sample = formats.sample(&body)?;
        Some((sample.ts_ns, sample.cpu, sample.raw.to_vec()))
    }

    #[test]
    fn what_is_wanted_is_found_among_the_rest() {
        let expected = Some((99, 3, b"raw!".to_vec()));
        let thread = 7 << 32 | 6;
        assert_eq!(sample(NEEDED, &[thread, 99, 3], b"raw!"), expected);
        let all = NEEDED | bit::IDENTIFIER | bit::IP | bit::ADDR | bit::ID | bit::STREAM_ID | bit::PERIOD;
        assert_eq!(sample(all, &[1, 2, thread, 99, 4, 5, 6, 3, 1], b"raw!"), expected);
        assert_eq!(sample(NEEDED | bit::CALLCHAIN, &[thread, 99, 3, 2, 8, 8], b"raw!"), expected);
    }

    #[test]
    fn what_is_cut_off_is_no_sample() {
        assert_eq!(sample(NEEDED, &[0, 99], b""), None);
        assert_eq!(sample(NEEDED | bit::CALLCHAIN, &[0, 99, 3, u64::MAX], b"raw!"), None);
        assert_eq!(sample(NEEDED, &[0, 99, 1 << 16], b"raw!"), None, "there is no such CPU");
    }

    #[test]
    fn events_that_differ_need_their_numbers() {
        let differ = [(NEEDED, vec![1]), (NEEDED | bit::IP, vec![2])];
        assert!(SampleFormats::new(&differ).is_err());
        let named = differ.map(|(asked, ids)| (asked | bit::IDENTIFIER, ids));
        let formats = SampleFormats::new(&named).unwrap();
        let words = [2, 0xffff, 7 << 32, 99, 3, 0];
        let body: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        assert_eq!(formats.sample(&body), Some(Sample { ts_ns: 99, cpu: 3, raw: &[] }));
        assert_eq!(formats.sample(&[9; 48]), None, "no event has this number");
        for asked in [0, bit::RAW, NEEDED | bit::READ] {
            assert!(SampleFormats::new(&[(asked, vec![])]).is_err());
        }
    }
}
