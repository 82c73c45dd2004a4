//! Lists that grow with the length of a recording, for example the acts, the times of acts, and the recorded
//! kernel's decisions. The lists take bounded memory: a part of a long list is in a file.
//!
//! A list consists of portions of 2 MiB. A long list keeps its first and last portions in memory, and its
//! other portions in a nameless file below `$TMPDIR`. The last portions stay in memory, because later events
//! still correct their values. A correction of a value in the file writes to the file.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use super::act::{Act, ActKind, BlockKind};
use crate::memory;

/// Number of acts in a portion of 2 MiB.
pub(super) const PORTION: usize = Acts::VALUES;
const PORTION_BYTES: usize = 2 << 20;
/// Maximum number of bytes of the bundles of one portion of acts: a third of the bytes of these acts.
pub(super) const BUNDLES_BYTES_MAX: usize = PORTION_BYTES / 3;
/// Minimum of `in_memory_max`. This number of portions takes 8 MiB, without bundles.
const IN_MEMORY_MIN: usize = 4;
/// Number of free bytes of memory for each portion that a list may keep in memory. If the list has more than
/// `IN_MEMORY_MIN` portions in memory, acts and bundles then take at most a quarter of the free memory.
const BYTES_FOR_ONE: usize = 4 * (PORTION_BYTES + BUNDLES_BYTES_MAX);

/// A value that takes `BYTES` bytes in a file.
pub(super) trait Stored<const BYTES: usize>: Copy + PartialEq {
    /// Maximum of `in_memory_max`, for a list of values of this type.
    const IN_MEMORY_MAX: usize;
    fn to_bytes(self) -> [u8; BYTES];
    fn from_bytes(bytes: [u8; BYTES]) -> Self;
}

/// The list of the acts of a recording.
pub(super) type Acts = Portions<Act, 8>;

/// A list of values, in portions. Each value takes `BYTES` bytes in the file of the list.
#[derive(Debug)]
pub(super) struct Portions<T, const BYTES: usize> {
    portions: Vec<Portion<T>>,
    len: usize,
    /// Maximum number of portions in memory.
    in_memory_max: usize,
    in_memory: usize,
    file: Option<File>,
    /// Number of portions in the file.
    in_file: usize,
    /// The first error of the memory or of the file. After an error, the list lacks values, or has wrong
    /// values.
    error: Option<io::Error>,
}

#[derive(Debug)]
enum Portion<T> {
    Memory(Vec<T>),
    /// The portion's number in the file.
    File(usize),
}

impl<T: Stored<BYTES>, const BYTES: usize> Default for Portions<T, BYTES> {
    fn default() -> Self {
        let room = memory::to_be_had().map_or(T::IN_MEMORY_MAX, |bytes| {
            usize::try_from(bytes / BYTES_FOR_ONE as u64).unwrap_or(T::IN_MEMORY_MAX)
        });
        Self::with_room(room.clamp(IN_MEMORY_MIN, T::IN_MEMORY_MAX))
    }
}

impl<T, const BYTES: usize> Portions<T, BYTES> {
    /// Number of values in a portion.
    const VALUES: usize = PORTION_BYTES / BYTES;
}

impl<T: Stored<BYTES>, const BYTES: usize> Portions<T, BYTES> {
    /// Makes an empty list that may keep `in_memory_max` portions in memory.
    pub(super) fn with_room(in_memory_max: usize) -> Self {
        Self {
            portions: Vec::new(),
            len: 0,
            in_memory_max,
            in_memory: 0,
            file: None,
            in_file: 0,
            error: None,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of bytes of all values, and the number of bytes in the file.
    pub(super) const fn bytes(&self) -> (u64, u64) {
        ((self.len * BYTES) as u64, (self.in_file * PORTION_BYTES) as u64)
    }

    #[inline]
    pub(super) fn push(&mut self, value: T) {
        match self.portions.last_mut() {
            Some(Portion::Memory(values)) if values.len() < Self::VALUES => values.push(value),
            _ => self.push_portion(value),
        }
        self.len += 1;
    }

    #[cold]
    fn push_portion(&mut self, value: T) {
        let mut values = Vec::new();
        let is_full = self.in_memory >= self.in_memory_max;
        if is_full || values.try_reserve_exact(Self::VALUES).is_err() {
            match self.write_one() {
                Ok(freed) => values = freed,
                Err(error) => {
                    // The list is incomplete after an error, so discard the portions that the list has.
                    self.error.get_or_insert(error);
                    self.portions.clear();
                    (self.in_memory, self.in_file) = (0, 0);
                }
            }
        }
        values.push(value);
        self.portions.push(Portion::Memory(values));
        self.in_memory += 1;
    }

    /// Moves one portion to the file: the middle portion of the portions in memory. Returns the empty buffer
    /// of this portion.
    fn write_one(&mut self) -> io::Result<Vec<T>> {
        let candidates =
            self.portions.iter().enumerate().filter(|(_, portion)| matches!(portion, Portion::Memory(_)));
        let at = candidates.map(|(at, _)| at).nth(self.in_memory / 2);
        let at = at.ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        if self.file.is_none() {
            self.file = Some(tempfile::tempfile()?);
        }
        let (Portion::Memory(values), Some(file)) = (&mut self.portions[at], &self.file) else {
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(PORTION_BYTES / 64)?;
        // Write the portion in small pieces, because memory is short.
        for (piece, of_piece) in values.chunks(Self::VALUES / 64).enumerate() {
            bytes.clear();
            of_piece.iter().for_each(|value| bytes.extend(value.to_bytes()));
            file.write_all_at(&bytes, (self.in_file * PORTION_BYTES + piece * PORTION_BYTES / 64) as u64)?;
        }
        let mut freed = std::mem::take(values);
        freed.clear();
        self.portions[at] = Portion::File(self.in_file);
        self.in_file += 1;
        self.in_memory -= 1;
        Ok(freed)
    }

    /// Calls `mend` with the value at index `at`, in memory or in the file, and returns the result of `mend`.
    /// Returns `None` if the list has no value at this index, or if the file cannot be read or written.
    #[inline]
    pub(super) fn mend<R>(&mut self, at: usize, mend: impl FnOnce(&mut T) -> R) -> Option<R> {
        match self.portions.get_mut(at / Self::VALUES)? {
            Portion::Memory(values) => values.get_mut(at % Self::VALUES).map(mend),
            Portion::File(portion) => {
                let place = (*portion * PORTION_BYTES + at % Self::VALUES * BYTES) as u64;
                let file = self.file.as_ref()?;
                let mut bytes = [0; BYTES];
                let mended = file.read_exact_at(&mut bytes, place).and_then(|()| {
                    let before = T::from_bytes(bytes);
                    let mut value = before;
                    let result = mend(&mut value);
                    if value != before {
                        file.write_all_at(&value.to_bytes(), place)?;
                    }
                    Ok(result)
                });
                mended.map_err(|error| self.error.get_or_insert(error)).ok()
            }
        }
    }

    /// Calls `mend` with every value of the list.
    pub(super) fn mend_all(&mut self, mut mend: impl FnMut(&mut T)) {
        let mut bytes = Vec::new();
        for portion in &mut self.portions {
            match portion {
                Portion::Memory(values) => values.iter_mut().for_each(&mut mend),
                Portion::File(portion) => {
                    let Some(file) = &self.file else { continue };
                    let place = (*portion * PORTION_BYTES) as u64;
                    let room = resize(&mut bytes, PORTION_BYTES);
                    let mended = room.and_then(|()| file.read_exact_at(&mut bytes, place)).and_then(|()| {
                        for bytes in bytes.as_chunks_mut::<BYTES>().0 {
                            let mut value = T::from_bytes(*bytes);
                            mend(&mut value);
                            *bytes = value.to_bytes();
                        }
                        file.write_all_at(&bytes, place)
                    });
                    if let Err(error) = mended {
                        self.error.get_or_insert(error);
                    }
                }
            }
        }
    }

    /// Checks that no value was lost.
    ///
    /// # Errors
    /// The first error of the memory or of the file. For example, neither had room for all values.
    pub(super) fn check(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// Passes the values with the indices of `range` to `each`, in order. Each call of `each` gets values of
    /// one portion. Stops when `each` returns false.
    ///
    /// # Errors
    /// An error if the file cannot be read, or if there is no memory to read the file's values.
    pub(super) fn each(&self, range: Range<usize>, mut each: impl FnMut(&[T]) -> bool) -> io::Result<()> {
        let mut read = Vec::new();
        let mut bytes = Vec::new();
        let mut from = range.start;
        while from < range.end {
            let end = range.end.min((from / Self::VALUES + 1) * Self::VALUES);
            let within = from % Self::VALUES..from % Self::VALUES + (end - from);
            let values = match &self.portions[from / Self::VALUES] {
                Portion::Memory(values) => &values[within],
                Portion::File(portion) => {
                    let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
                    resize(&mut bytes, within.len() * BYTES)?;
                    file.read_exact_at(&mut bytes, (portion * PORTION_BYTES + within.start * BYTES) as u64)?;
                    read.clear();
                    read.try_reserve_exact(within.len())?;
                    read.extend(bytes.as_chunks().0.iter().map(|bytes| T::from_bytes(*bytes)));
                    &read
                }
            };
            if !each(values) {
                return Ok(());
            }
            from = end;
        }
        Ok(())
    }

    /// Returns the values of each portion, or `None` for a portion in the file.
    pub(super) fn portions_in_memory(&self) -> Vec<Option<&[T]>> {
        let values = self.portions.iter().map(|portion| match portion {
            Portion::Memory(values) => Some(values.as_slice()),
            Portion::File(_) => None,
        });
        values.collect()
    }

    /// Passes all values to `each`, one by one.
    pub(super) fn each_one(&self, mut each: impl FnMut(&T)) -> io::Result<()> {
        self.each(0..self.len, |values| {
            values.iter().for_each(&mut each);
            true
        })
    }

    /// Returns a cursor at the first value of the list.
    pub(super) fn cursor(&self) -> Cursor<'_, T, BYTES> {
        Cursor { list: self, next: 0, ahead: Vec::new(), at: 0 }
    }

    /// Calls `mend` with the last value of the list, and returns the result of `mend`. Returns `None` if the
    /// list is empty, or if the file cannot be read or written.
    pub(super) fn mend_last<R>(&mut self, mend: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.mend(self.len.checked_sub(1)?, mend)
    }

    /// Whether a value was lost. [`check`](Self::check) returns the error.
    pub(super) const fn is_incomplete(&self) -> bool {
        self.error.is_some()
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> Vec<T> {
        let mut all = Vec::new();
        self.each_one(|value| all.push(*value)).unwrap();
        all
    }
}

impl<T: Stored<BYTES>, const BYTES: usize> Extend<T> for Portions<T, BYTES> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

impl<T: Stored<BYTES>, const BYTES: usize> FromIterator<T> for Portions<T, BYTES> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut all = Self::default();
        all.extend(values);
        all
    }
}

/// A place in a list, to read the list value by value.
pub(super) struct Cursor<'l, T, const BYTES: usize> {
    list: &'l Portions<T, BYTES>,
    /// The index of the first value that is not yet in `ahead`.
    next: usize,
    /// Values that were read ahead. `at` is the index of the cursor's value in `ahead`.
    ahead: Vec<T>,
    at: usize,
}

impl<T: Stored<BYTES>, const BYTES: usize> Cursor<'_, T, BYTES> {
    /// If `is_wanted` is true of the cursor's value, returns this value, and moves the cursor to the next
    /// value. Otherwise, and at the list's end, returns `None`.
    ///
    /// # Errors
    /// An error if the file cannot be read, or if there is no memory to read ahead.
    #[inline]
    pub(super) fn next_if(&mut self, is_wanted: impl FnOnce(&T) -> bool) -> io::Result<Option<T>> {
        if self.at == self.ahead.len() && self.next < self.list.len {
            self.read_ahead()?;
        }
        let wanted = self.ahead.get(self.at).copied().filter(is_wanted);
        self.at += usize::from(wanted.is_some());
        Ok(wanted)
    }

    #[cold]
    fn read_ahead(&mut self) -> io::Result<()> {
        /// Maximum number of values that one call reads.
        const VALUES: usize = 1 << 12;
        let range = self.next..self.list.len.min(self.next + VALUES);
        self.next = range.end;
        self.at = 0;
        self.ahead.clear();
        self.ahead.try_reserve(range.len())?;
        self.list.each(range, |values| {
            self.ahead.extend_from_slice(values);
            true
        })
    }
}

/// Sets the length of a buffer of bytes. Returns an error if there is no memory for this length.
fn resize(bytes: &mut Vec<u8>, len: usize) -> io::Result<()> {
    bytes.try_reserve(len.saturating_sub(bytes.len()))?;
    bytes.resize(len, 0);
    Ok(())
}

impl Stored<8> for Act {
    /// 40 portions of acts take 80 MiB. With the bundles of these and other portions, acts take at most
    /// 192 MiB of the 256 MiB that a subcommand may use for a recording.
    const IN_MEMORY_MAX: usize = 40;

    fn to_bytes(self) -> [u8; 8] {
        let Self { kind, block, count, at } = self;
        let ([c0, c1], [a0, a1, a2, a3]) = (count.to_le_bytes(), at.to_le_bytes());
        [kind as u8, block.to_byte(), c0, c1, a0, a1, a2, a3]
    }

    #[inline]
    fn from_bytes([kind, block, c0, c1, a0, a1, a2, a3]: [u8; 8]) -> Self {
        Self {
            kind: ActKind::ALL[usize::from(kind) % ActKind::ALL.len()],
            block: BlockKind::from_byte(block),
            count: u16::from_le_bytes([c0, c1]),
            at: u32::from_le_bytes([a0, a1, a2, a3]),
        }
    }
}

impl Stored<8> for u64 {
    /// 40 portions of times take 80 MiB. Acts with times are played without bundles.
    const IN_MEMORY_MAX: usize = 40;

    fn to_bytes(self) -> [u8; 8] {
        self.to_le_bytes()
    }

    fn from_bytes(bytes: [u8; 8]) -> Self {
        Self::from_le_bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use pageset_core::{MigrateType, Order};

    use super::super::load::{Decided, Moved};
    use super::*;

    fn act(at: usize) -> Act {
        let block = BlockKind::new(Order::new((at % 11) as u8).unwrap(), MigrateType::ALL[at % 3], at % 4);
        Act { kind: ActKind::ALL[at % ActKind::ALL.len()], block, count: (at % 70_000) as u16, at: at as u32 }
    }

    /// Tests a list with few portions in memory and most portions in the file. The list must return the acts
    /// that were added, in their order, with all corrections.
    #[test]
    fn acts_are_the_same_wherever_they_are() {
        const ALL: usize = 9 * PORTION + 5;
        let mut acts = Acts::with_room(3);
        let mut expected: Vec<Act> = (0..ALL).map(act).collect();
        for (at, act) in expected.iter_mut().enumerate() {
            acts.push(*act);
            // Correct an old act and the newest act.
            if at % 100_000 == 7 {
                for at in [at / 2, at] {
                    let mended = acts.mend(at, |act| {
                        act.count = 9;
                        act.kind
                    });
                    assert_eq!(mended, Some(self::act(at).kind));
                }
            }
        }
        for at in (7..ALL).step_by(100_000) {
            (expected[at / 2].count, expected[at].count) = (9, 9);
        }
        assert_eq!(acts.mend(ALL, |_| ()), None);
        acts.check().unwrap();
        assert!(
            acts.in_memory <= 3 && acts.in_file >= 6,
            "expected at most 3 portions in memory and at least 6 in the file, got {} and {}",
            acts.in_memory,
            acts.in_file
        );
        assert_eq!(acts.bytes(), ((ALL * 8) as u64, (acts.in_file * PORTION_BYTES) as u64));
        assert!(acts.all() == expected);
        acts.mend_all(|act| act.at += 1);
        expected.iter_mut().for_each(|act| act.at += 1);
        assert!(acts.all() == expected);
        let (from, to) = (PORTION - 3, 8 * PORTION + 2);
        let (mut part, mut portions) = (Vec::new(), 0);
        acts.each(from..to, |acts| {
            part.extend_from_slice(acts);
            portions += 1;
            portions < 4
        })
        .unwrap();
        assert!(
            part == expected[from..4 * PORTION],
            "expected the acts up to the portion at which the callback returned false"
        );
    }

    #[test]
    fn times_are_the_same_wherever_they_are() {
        let expected: Vec<u64> = (0..5 * PORTION as u64 + 7).map(|at| (at << 32) | (at * at)).collect();
        let mut times_ns = Portions::<u64, 8>::with_room(2);
        times_ns.extend(expected.iter().copied());
        times_ns.check().unwrap();
        assert!(times_ns.in_file >= 3, "expected at least 3 portions in the file, got {}", times_ns.in_file);
        assert!(times_ns.all() == expected);
    }

    #[test]
    fn a_cursor_reads_decisions_wherever_they_are() {
        const ALL: u32 = 5 * (1 << 17) + 7;
        let decision = |number: u32| Decided {
            before: number / 3,
            set: number % 192,
            pages: u32::MAX - number,
            refill: (!number.is_multiple_of(3)).then_some(BlockKind::from_byte(number as u8)),
        };
        let mut decisions = Portions::<Decided, 16>::with_room(2);
        decisions.extend((0..ALL).map(decision));
        assert!(
            decisions.in_file >= 3,
            "expected at least 3 portions in the file, got {}",
            decisions.in_file
        );
        let mut cursor = decisions.cursor();
        assert_eq!(cursor.next_if(|first| first.before > 0).unwrap(), None, "the first is not wanted");
        for number in 0..ALL {
            assert_eq!(cursor.next_if(|_| true).unwrap(), Some(decision(number)));
        }
        assert_eq!(cursor.next_if(|_| true).unwrap(), None, "the list ends");
        let moved = Moved { before: 7, set: 3, block: BlockKind::from_byte(0xf3), blocks: -5 };
        assert_eq!(Moved::from_bytes(moved.to_bytes()), moved);
    }
}
