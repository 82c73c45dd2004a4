//! What a fetch has so far.

use super::parts::Parts;
use crate::arrays::{Batch, Class, Entry, ZeroState};
use crate::ledger::Ledger;

/// Words of bits that are taken from the depot at once, so that their frames are looked up without its lock: all of a batch
/// mostly, since one word is 64 pages.
const TOGETHER: usize = 12;

/// Blocks that were taken for somebody: a batch of them, and those of which it is not looked up yet what is in them.
///
/// # Invariants
/// Both together are at most `wanted`, and the batch has room for that.
pub(crate) struct Taken<'b> {
    pub(crate) class: Class,
    wanted: usize,
    batch: &'b mut Batch,
    words: [Parts; TOGETHER],
    word_count: usize,
    /// Blocks in all words.
    blocks: usize,
}

impl<'b> Taken<'b> {
    /// Nothing yet; the batch is empty.
    pub(crate) fn new(class: Class, wanted: usize, batch: &'b mut Batch) -> Self {
        let wanted = wanted.min(batch.capacity());
        Self { class, wanted, batch, words: [Parts::NONE; TOGETHER], word_count: 0, blocks: 0 }
    }

    /// Blocks that are wanted and not there yet.
    #[inline]
    pub(crate) fn missing(&self) -> usize {
        self.wanted - self.batch.len() - self.blocks
    }

    /// Adds blocks, the next to be used last, as the first of all.
    #[inline]
    pub(super) fn fill(&mut self, entries: &[Entry]) {
        self.batch.fill(entries);
    }

    /// Adds blocks of one word. If there is room for no other word, those that are there are looked up first.
    #[inline]
    pub(super) fn push_word(&mut self, parts: Parts, ledger: &Ledger) {
        if self.word_count == TOGETHER {
            self.look_up(ledger);
        }
        self.words[self.word_count] = parts;
        self.word_count += 1;
        self.blocks += parts.count as usize;
    }

    /// Adds one block, to be used last.
    pub(crate) fn push(&mut self, frame: u32, ledger: &Ledger) {
        let zero = ledger.hand_out(frame..frame + self.class.frames());
        self.batch.push_front(Entry::with_zero(frame, zero));
    }

    /// Looks up what is known of the blocks.
    #[inline]
    pub(crate) fn look_up(&mut self, ledger: &Ledger) {
        for word in 0..self.word_count {
            let parts = self.words[word];
            match self.class {
                Class::Order0 => {
                    let zero = ledger.hand_out_bits(parts.first, parts.bits);
                    for frame in parts.frames(Class::Order0) {
                        let zero = ZeroState::of_bit(zero >> (frame % 64));
                        self.batch.push_front(Entry::with_zero(frame, zero));
                    }
                }
                Class::Order9 => {
                    let zero = ledger.hand_out_pageblock(parts.first);
                    self.batch.push_front(Entry::with_zero(parts.first, zero));
                }
                class => parts.frames(class).for_each(|frame| self.push(frame, ledger)),
            }
        }
        self.word_count = 0;
        self.blocks = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Contents;

    #[test]
    fn more_words_than_fit_are_looked_up_on_the_way() {
        let ledger = Ledger::new(2048, Contents::Zero).unwrap();
        ledger.hand_out(64..128);
        let batch: &mut Batch = &mut Batch::new();
        let mut taken = Taken::new(Class::Order0, TOGETHER + 3, batch);
        taken.fill(&[Entry::dirty(7)]);
        for word in 0..=TOGETHER as u32 {
            taken.push_word(Parts::one(word * 64 + 1, Class::Order0), &ledger);
        }
        assert_eq!(taken.missing(), 1);
        taken.look_up(&ledger);
        taken.push(2000, &ledger);
        assert_eq!(taken.missing(), 0);
        let used: Vec<_> = std::iter::from_fn(|| batch.pop_back()).map(|entry| entry.frame()).collect();
        let words = (0..=TOGETHER as u32).map(|word| word * 64 + 1);
        assert!([7].into_iter().chain(words).chain([2000]).eq(used), "as they were taken");
        assert!(!ledger.is_zero(1..2) && ledger.is_zero(2..64), "only those that were handed out");
    }

    #[test]
    fn a_whole_pageblock_is_one_block() {
        let ledger = Ledger::new(2048, Contents::Zero).unwrap();
        let batch: &mut Batch = &mut Batch::new();
        let mut taken = Taken::new(Class::Order9, 1, batch);
        taken.push_word(Parts::pageblock(1024), &ledger);
        taken.look_up(&ledger);
        let entry = batch.pop_back();
        assert_eq!(entry, Some(Entry::with_zero(1024, ZeroState::Zero)));
        assert_eq!(ledger.hand_out_pageblock(1024), ZeroState::Unknown);
    }
}
